"""Figure 6 on SST-2: the number of heads of a fine-tuned encoder, beyond the number that it was trained with, and from scratch."""

from collections.abc import Callable

import matplotlib.figure
import xarray as xr

from lemmata.draw.curves import MEAN, lines
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, experiment, made, ours, positive
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.trend import difference, falls, rises
from lemmata.scale import Scale, by_scale
from lemmata.studies.multihead.trials.real import TRAINED_HEADS, RealSentences
from lemmata.sweep import Sweep, axis
from lemmata.trial import put_all

PROXY = "a sentence encoder of 6 layers and width 384 in place of RoBERTa; Adam 5e-5; one epoch or less; the paper does not give H"
ANY = "a tie would refute it"
SETUP = (
    "Adam 5e-5, batches of 32, no dropout, an affine map of [CLS]; the weights were trained with 12 heads, and any other number "
    "regroups what they compute. The theorem's conditions do not apply to this network."
)
SCRATCH = "Two layers of width 64 from scratch, Adam 1e-3, batches of 32, the same sentences and word pieces."

SMALL = {
    "text": "made", "start_from_file": False, "heads": 2, "sentences": 64, "tests": 32, "length": 8, "width": 16, "depth": 1,
    "descent.steps": 6, "descent.logs": 3, "descent.learning_rate": 1e-3,
}  # fmt: skip

# What is run -----------------------------------------------------------------------------------------------------------


def tuned_sweep(scale: Scale) -> Sweep:
    sized = {"sentences": by_scale(scale, 64, 1600, 6920), "descent.steps": by_scale(scale, 6, 50, 216)}
    trial = put_all(RealSentences(), SMALL if scale == "smoke" else sized)
    heads = by_scale(scale, (1, 2), (1, 4, 12, 48), (1, 2, 3, 4, 6, 12, 24, 48, 96))
    return Sweep(trial, (axis("heads", heads),), tuple(range(by_scale(scale, 2, 3, 5))))


def scratch_sweep(scale: Scale) -> Sweep:
    fresh = {
        "start_from_file": False,
        "heads": 4,
        "descent.learning_rate": 1e-3,
        "descent.steps": by_scale(scale, 6, 648, 2160),
    }
    trial = put_all(RealSentences(), SMALL if scale == "smoke" else fresh)
    heads = by_scale(scale, (1, 2), (1, 4, 16), (1, 2, 4, 8, 16))
    return Sweep(trial, (axis("heads", heads),), tuple(range(by_scale(scale, 2, 4, 10))))


def scale_sweep(scale: Scale) -> Sweep:
    sized = {
        "heads": 1,
        "sentences": by_scale(scale, 64, 1600, 6920),
        "descent.steps": by_scale(scale, 6, 50, 216),
    }
    trial = put_all(RealSentences(), SMALL | {"heads": 1} if scale == "smoke" else sized)
    return Sweep(trial, (axis("scale", ("own", "twelve")),), tuple(range(by_scale(scale, 2, 3, 5))))


# What is measured ------------------------------------------------------------------------------------------------------


def area(r: xr.Dataset) -> xr.DataArray:
    """The training loss averaged over all steps, which is the area under its curve."""
    return r.loss_sum / r.steps


def of_heads(quantity: xr.DataArray, low: int, high: int) -> xr.DataArray:
    """A quantity at the numbers of heads from `low` to `high`."""
    known = [h for h in quantity.heads.values.tolist() if low <= h <= high]
    needs(len(known) > 1, f"fewer than two numbers of heads from {low} to {high} were run.")
    return chosen(quantity, heads=known)


def area_falls(low: int, high: int) -> Callable[[xr.Dataset], Estimate]:
    """The smallest fall of the area from one number of heads to the next."""
    return lambda r: falls(of_heads(area(r), low, high), "heads")


def accuracy_rises(r: xr.Dataset) -> Estimate:
    """The smallest rise of the accuracy from one number of heads to the next, up to 12."""
    return rises(of_heads(r.accuracy, 1, TRAINED_HEADS), "heads")


def scale_helps(r: xr.Dataset) -> Estimate:
    """By how much the scale of 12 heads lowers the area of one head."""
    return difference(chosen(area(r), scale="own"), chosen(area(r), scale="twelve"))


# How it looks ----------------------------------------------------------------------------------------------------------


def drawing(arms: str, names: str) -> Callable[..., matplotlib.figure.Figure]:
    """A picture of the training loss over steps and of the area, a line for each arm."""

    @picture
    def draw(results: xr.Dataset) -> Drawn:
        figure, (left, right) = canvas(2)
        lines(left, results.train_loss_curve, "step", arms, names, style="-", centre="mean")
        places = range(results.sizes[arms])
        right.plot(places, 100 * results.accuracy.mean("seed"), "o-")
        right.set_xticks(list(places), [str(value) for value in results[arms].values])
        panel(left, "step", "loss of a batch")
        panel(right, names.replace("{}", "").strip() or arms, "accuracy on the development set, %")
        return figure, MEAN

    return draw


# Made results ----------------------------------------------------------------------------------------------------------


def along(slope: float):
    """A mean loss that falls with the logarithm of the heads, and an accuracy that rises with it."""
    return made(
        loss_sum=lambda t: t.steps * 0.6 * t.heads**-slope,
        accuracy=lambda t: 0.6 * t.heads**slope,
        noise=0.001,
    )


def scaled(by: float):
    """A mean loss that the scale of 12 heads lowers by this much."""
    return made(loss_sum=lambda t: t.steps * (0.6 - by * (t.scale == "twelve")), noise=0.001)


tuned = Figure(
    "real-heads", "SST-2: the number of heads of a fine-tuned encoder (Figure 6)", SETUP, tuned_sweep, drawing("heads", "{} heads"),
    claims=[
        Claim(
            "real-heads-speed-up", "Up to the 12 heads that it was trained with, more heads speed up the fine-tuning on SST-2: the area "
            "under the training loss falls", experiment("Figure 6", PROXY),
            number=area_falls(1, TRAINED_HEADS), holds=positive(because=ANY),
            refuted_by=along(-0.02), upheld_by=along(0.02),
        ),
        Claim(
            "real-heads-beyond", "Beyond the 12 heads that it was trained with, more heads still speed up the fine-tuning on SST-2",
            experiment("Figure 6", f"{PROXY}; beyond 12 heads"),
            number=area_falls(TRAINED_HEADS, 96), holds=positive(because=ANY),
            refuted_by=along(-0.02), upheld_by=along(0.02),
        ),
        Claim(
            "real-heads-accuracy", "Up to 12 heads, more heads raise the accuracy on the development set of SST-2",
            experiment("Figure 6", PROXY),
            number=accuracy_rises, holds=positive(because=ANY),
            refuted_by=along(-0.02), upheld_by=along(0.02),
        ),
    ],
)  # fmt: skip

scratch = Figure(
    "real-heads-scratch", "SST-2: the number of heads from scratch", SCRATCH, scratch_sweep, drawing("heads", "{} heads"),
    claims=[
        Claim(
            "real-heads-scratch", "From scratch, more heads speed up the training on SST-2: the area under the training loss falls",
            experiment("Figure 6", "a small network from scratch, as no weights then favour 12 heads"),
            number=area_falls(1, 16), holds=positive(because=ANY),
            refuted_by=along(-0.02), upheld_by=along(0.02),
        ),
    ],
)  # fmt: skip

scale = Figure(
    "real-heads-scale", "SST-2: one head with its own scale and with that of 12 heads", SETUP, scale_sweep, drawing("scale", "{}"),
    claims=[
        Claim(
            "real-heads-scale", "One head fine-tunes faster on SST-2 if its logits keep the scale of 12 heads", ours("Figure 6, control"),
            number=scale_helps, holds=positive(because=ANY),
            refuted_by=scaled(-0.01), upheld_by=scaled(0.01),
        ),
    ],
)  # fmt: skip
