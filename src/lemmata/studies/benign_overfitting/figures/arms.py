"""What promotes what: queries and keys frozen, values frozen, all trained (Section 5.2)."""

from math import inf

import xarray as xr

from lemmata.draw.curves import BAND, lines
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Holds, made, positive, proof
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.trend import difference, ratio
from lemmata.scale import Scale
from lemmata.studies.benign_overfitting.figures.common import derived, labels, paying, seeds
from lemmata.studies.benign_overfitting.figures.dynamics import appendix_a, small_appendix_a
from lemmata.studies.benign_overfitting.theory import benign_conditions, harmful_conditions
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all

# What is run -----------------------------------------------------------------------------------------------------------

ARMS = {"all": (1.0, 1.0), "attention frozen": (0.0, 1.0), "values frozen": (1.0, 0.0)}
"""What is trained: step of queries and keys, step of values."""


def sweep(scale: Scale) -> Sweep:
    """Appendix A's two settings, with queries and keys frozen, or values."""
    regimes = {"benign": (16, 25.0), "harmful": (10, 15.0)}

    def at_regime(trial: BenignOverfitting, name: str) -> BenignOverfitting:
        found = appendix_a(*regimes[name])
        return small_appendix_a(found) if scale == "smoke" else found

    def at_arm(trial: BenignOverfitting, name: str) -> BenignOverfitting:
        attention, value = ARMS[name]
        return put_all(trial, {"descent.attention_rate": attention, "value_rate": value})

    axes = (Axis("regime", tuple(regimes), at_regime), Axis("arm", tuple(ARMS), at_arm))
    return Sweep(appendix_a(16, 25.0), axes, seeds(scale, 2, 8, 20))


# What is measured ------------------------------------------------------------------------------------------------------


def benign(r: xr.Dataset) -> xr.DataArray:
    return r.regime == "benign"


def harmful(r: xr.Dataset) -> xr.DataArray:
    return r.regime == "harmful"


def frozen_attention_time(r: xr.Dataset) -> Estimate:
    """Steps with queries and keys frozen over steps with everything trained; a capped run counts with its cap."""
    return ratio(*(chosen(r.steps, arm=name) for name in ("attention frozen", "all")))


def frozen_values_attention(r: xr.Dataset, key: str) -> Estimate:
    """Attention of the signal query on a key at the end, with everything trained less with values frozen."""
    attention = chosen(r.attention, query="signal", key=key)
    return difference(*(chosen(attention, arm=name) for name in ("all", "values frozen")))


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Training loss and attention on the winner with parts of the network frozen."""
    regimes = results.regime.values.tolist()
    figure, axes = canvas(2 * len(regimes), width=3.6)
    for i, regime in enumerate(regimes):
        key = "signal" if regime == "benign" else "strong"
        one = results.sel(regime=regime)
        lines(axes[2 * i], one.train_loss_curve, "step", "arm")
        lines(axes[2 * i + 1], one.attention_curve.sel(query="signal", key=key), "step", "arm")
        panel(axes[2 * i], "iteration", "training loss", regime, "xy")
        title = f"{regime}: signal query on the {key}"
        panel(axes[2 * i + 1], "iteration", "attention", title, "x", ylim=(-0.03, 1.03))
    return figure, f"Appendix A's settings; frozen parts stay as drawn. {BAND}"


# What it can refute ----------------------------------------------------------------------------------------------------

LATER = Holds("order", 1.0, inf, because="a sign: the ratio of steps is above 1")
MORE = positive(because="a sign: the difference of attention is above 0")


def delayed(factor: float):
    """Steps that take this many times as long with queries and keys frozen."""
    return made(steps=lambda t: 500 * factor ** (1 - t.descent.attention_rate))


def driven(shift: float, to: str):
    """Attention on a key that is so much higher with values trained."""
    return made(attention=paying(lambda t: 0.45 + shift * (t.value_rate - 0.5), to))


arms = Figure(
    "arms", "Queries and keys frozen, values frozen, all trained", "The settings of fig3 and fig4; frozen parts stay as drawn.",
    sweep, draw, labels=labels, derived=derived,
    claims=[
        Claim(
            "attention-speeds-values", "Queries and keys promote the signal's value: with them frozen, the training loss comes "
            "down later", proof("Section 5.2"), headline=True,
            number=frozen_attention_time, holds=LATER, cells=benign, conditions=benign_conditions, uses=("capped",),
            refuted_by=delayed(0.7), upheld_by=delayed(1.5),
        ),
        Claim(
            "attention-speeds-noise", "In the harmful regime too, with queries and keys frozen, the training loss comes down "
            "later", proof("Section 5.2"),
            number=frozen_attention_time, holds=LATER, cells=harmful, conditions=harmful_conditions, uses=("capped",),
            refuted_by=delayed(0.7), upheld_by=delayed(1.5),
        ),
        Claim(
            "values-drive-attention", "Values promote attention on the signal: with them frozen, the signal query pays it less",
            proof("Section 5.2"),
            number=lambda r: frozen_values_attention(r, "signal"), holds=MORE, cells=benign, conditions=benign_conditions,
            uses=("capped",), refuted_by=driven(-0.3, "signal"), upheld_by=driven(0.3, "signal"),
        ),
        Claim(
            "values-drive-noise", "In the harmful regime values promote attention on the strong noise", proof("Section 5.2"),
            number=lambda r: frozen_values_attention(r, "strong"), holds=MORE, cells=harmful, conditions=harmful_conditions,
            uses=("capped",), refuted_by=driven(-0.3, "strong"), upheld_by=driven(0.3, "strong"),
        ),
    ],
)  # fmt: skip
