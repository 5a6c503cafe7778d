"""Descent on positional encodings and with self-attention, beside the trained logits of the analysed network."""

import xarray as xr

from lemmata.draw.curves import BAND, lines, one_run
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.figure import Claim, Figure, at_least, at_most, made, ours
from lemmata.measure.simple import mean
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure.figures.common import (
    FAST,
    HALF_LINEAR,
    SMALL,
    always,
    changed,
    groups_of,
    heat,
    labels,
    linear_models,
    over_glm,
    over_linear,
    seeds,
    settings_line,
    to_the_end,
)
from lemmata.studies.spatial_structure.theory.two_rates import realistic
from lemmata.studies.spatial_structure.trials import ImageDescent
from lemmata.sweep import Axis, Sweep


def with_attention(trial: ImageDescent, kind: str) -> ImageDescent:
    """Encodings pull the logits at both ends and with their own length, so they need a smaller step."""
    rate = trial.descent.attention_rate
    return changed(trial, attention=kind, descent__attention_rate=rate if kind == "logits" else rate / 5)


def sweep(scale: Scale) -> Sweep:
    steps, samples = by_scale(scale, (60, 200), (2500, 1500), (3500, 4000))
    trial = ImageDescent(
        data=SMALL, descent=to_the_end(2e-4, 1e4, steps, 21), samples=samples, test_samples=1000
    )
    kinds = Axis("attention", ("logits", "encodings", "self"), with_attention)
    return Sweep(trial, (kinds,), seeds(scale, 2, 6, 10))


def has_encodings(r):
    return r.attention == "encodings"


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Logits, encodings and self-attention: what each knows of the groups, and how it errs."""
    kinds = results.attention.values.tolist()
    figure, panels = canvas(3, 2, width=3.6, height=3.1)
    names = {"test_error": "test error", "exact": "rows whose top C is their group", "auc": "same-group AUC"}
    titles = {"logits": "logits A", "encodings": r"encodings: $P^\top P$", "self": r"self: $P^\top P$"}
    linear_models(panels[0, 0], results)
    for axes, (name, label) in zip(panels[0], names.items(), strict=True):
        lines(axes, results[f"{name}_curve"], "step", "attention")
        panel(axes, "step", label, keyed=False, ylim=(0, None))
    shared_key(figure, panels[0])
    for axes, name in zip(panels[1], kinds, strict=False):
        one = one_run(results.sel(attention=name))
        heat(figure, axes, one.logits.values, groups_of(one), titles[name])
    for axes in panels[1, len(kinds) :]:
        axes.axis("off")
    return figure, f"{settings_line(results)}; maps of one seed at the end, in the order of the sets. {BAND}"


encodings = Figure(
    "encodings", "Trainable positional encodings and self-attention beside the analysed network",
    "The paper trains the logits and mentions both others. D = 36, C = 4, q = 0.4, d = 16; encodings of 256 "
    "dimensions (16 for self-attention), started so that <p_i, p_i> is near beta = 4. Encodings move five times "
    "more slowly than logits. " + FAST,
    sweep, draw, labels=labels,
    claims=[
        Claim(
            "encodings-associate", "Trained positional encodings are most similar within the groups, in every row",
            ours("Definition 2.2, Theorem 4.2 for encodings"),
            number=lambda r: mean(r.exact),
            holds=at_least(0.95, because="one row in twenty may be unlucky with this sample"),
            cells=has_encodings, conditions=realistic,
            refuted_by=made(exact=always(0.5)), upheld_by=made(exact=always(1.0)),
        ),
        Claim(
            "encodings-generalise", "The network with trained positional encodings errs at most half as often as linear models",
            ours("Theorem 4.2 for encodings"),
            number=over_glm, holds=at_most(0.5, because=HALF_LINEAR), cells=has_encodings, conditions=realistic,
            refuted_by=made(test_error=over_linear(1.0)), upheld_by=made(test_error=over_linear(0.3)),
        ),
    ],
)  # fmt: skip
