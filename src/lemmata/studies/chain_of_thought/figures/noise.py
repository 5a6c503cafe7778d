"""Noise on the test tokens, up to its limit, and on the training tokens too."""

from lemmata.draw.panels import Panel, panels
from lemmata.figure import Claim, Figure, at_most, every_run, made, ours, theorem
from lemmata.measure.columns import chosen
from lemmata.scale import Scale, by_scale
from lemmata.studies.chain_of_thought.figures.common import (
    COT_LABEL,
    LENGTH_LABEL,
    LIMIT,
    ZERO_WHY,
    enough_examples,
    labels,
    scaled,
    seeds,
    template,
)  # fmt: skip
from lemmata.studies.chain_of_thought.theory import cot_conditions
from lemmata.sweep import Sweep, axis
from lemmata.trial import put, put_all


def on_the_test(scale: Scale) -> Sweep:
    values = (0.0, LIMIT) if scale == "smoke" else (0.0, 0.2, 0.4, 0.55, LIMIT)
    trial = put(template(), "test.errors", "even")
    return Sweep(scaled(trial, scale), (axis("test.noise", values),), seeds(scale))


def on_the_training(scale: Scale) -> Sweep:
    """Up to the limit of the test's: the weights themselves are trained."""
    values = by_scale(scale, (0.0, LIMIT), (0.0, 0.4, LIMIT), (0.0, 0.2, 0.4, LIMIT))
    trial = put_all(
        scaled(template(), scale), {"simulator": "tokens", "test.lengths": (8, 12, 40), "test.noise": LIMIT}
    )
    return Sweep(trial, (axis("data.noise", values),), seeds(scale, 4, 10))


PICTURE = panels(
    Panel(lambda r: r.cot_error, "length", LENGTH_LABEL, COT_LABEL, arms="noise", names="noise {:g}"),
    caption="Noise of this norm on every token of the examples.",
)


def with_noise(slope: float):
    """An error that rises with the noise of the test and of the training."""
    return made(noise=0.001, cot_error=lambda t, length: 0.1 + slope * (t.test.noise + t.data.noise))


HARMS, HARMLESS = with_noise(0.1), with_noise(0.02)

noise = Figure(
    "noise", "Noise on the test tokens, up to its limit", "Settings of fig7-3; the noise of the test varied.",
    on_the_test, PICTURE, labels=labels, upheld_by=HARMLESS,
    claims=[
        Claim(
            "noise-harmless", "With (alpha' tau rho)^-2 log M examples the chain-of-thought error is zero whatever the noise on the "
            "test tokens, up to norm sqrt(2)/2 and orthogonal to the test patterns", theorem("(7.11), Theorem 4"), headline=True,
            number=lambda r: r.cot_error.isel(length=-1),
            holds=every_run(at_most(0.01, because=ZERO_WHY)), cells=enough_examples, conditions=cot_conditions,
            refuted_by=made(cot_error=lambda t, length: 0.02), upheld_by=made(cot_error=lambda t, length: 0.005),
        ),
        Claim(
            "noise-unchanged", "With fewer examples such noise leaves the error as it is too", ours("README, noise"),
            number=lambda r: abs(r.cot_error - chosen(r, noise=0.0).cot_error).max("length"),
            holds=every_run(at_most(0.03, because="three times the error of a thousand paired prompts")), conditions=cot_conditions,
            refuted_by=HARMS,
        ),
    ],
)  # fmt: skip

training_noise = Figure(
    "training-noise", "Noise on the training tokens too", "Noise in training too; the test's at its limit.",
    on_the_training, PICTURE, labels=labels, upheld_by=HARMLESS,
    claims=[
        Claim(
            "training-noise-harmless", "The same noise on the training tokens does not raise the error",
            ours("README, noise"),
            number=lambda r: (r.cot_error - chosen(r, noise=0.0).cot_error).max("length"),
            holds=every_run(at_most(0.03, because="as for the test")), conditions=cot_conditions,
            refuted_by=HARMS,
        ),
    ],
)  # fmt: skip
