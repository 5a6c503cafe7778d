"""Figure 2: Gaussian patches with convolutional labels are learned without any association of patches."""

import xarray as xr

from lemmata.draw import attention
from lemmata.draw.curves import BAND, line, lines, one_run, reference
from lemmata.draw.palette import GREEN
from lemmata.draw.style import Drawn, canvas, log_to_zero, panel, picture
from lemmata.figure import Claim, Figure, about, at_most, experiment, made, ours
from lemmata.measure.simple import mean
from lemmata.measure.trend import arms, smallest
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.figures.common import always, changed, groups_of, heat, labels, seeds
from lemmata.studies.spatial_structure.trials import GaussianDescent
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all


def with_learner(trial: GaussianDescent, learner: str) -> GaussianDescent:
    if learner == "wide":
        return trial
    plain = {"learning_rate": 3e-4, "attention_rate": 3000.0, "method": "gd", "batch": 2048}
    return put_all(trial, {"learner": learner} | {f"descent.{name}": value for name, value in plain.items()})


def sweep(scale: Scale) -> Sweep:
    steps, samples = by_scale(scale, (60, 3000), (3000, 50_000), (30_000, 200_000))
    trial = changed(GaussianDescent(), descent__steps=steps, descent__logs=24, samples=samples)
    return Sweep(trial, (Axis("learner", ("wide", "analysed"), with_learner),), seeds(scale, 2, 4, 10))


def wide(r):
    return r.learner == "wide"


def overlap_above_chance(r):
    """The share of the top C inside the group, less what logits without any order would give."""
    return mean(r.overlap - over_cells(r, lambda t: theory.chance_overlap(t.data.patches, t.data.group_size)))


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(4, width=3.2, height=3.4)
    for axes, name in zip(panels, ("test_error", "auc"), strict=False):
        lines(axes, results[f"{name}_curve"], "step", "learner", "{} learner")
        log_to_zero(axes, "x", 1)
    shown = "wide" if "wide" in results.learner else results.learner.values[0]
    line(panels[1], results.slot_auc_curve.sel(learner=shown), "step", GREEN, f"{shown} learner, slots", "--")
    reference(panels[0], y=float(results.vote_error.median()), label="vote of the filters")
    reference(panels[1], y=0.5, label="chance")
    panel(panels[0], "step", "test error", "test error", ylim=(0, 0.6))
    panel(panels[1], "step", "AUC", "AUC of the logits, same group", ylim=(0, 1))
    one = one_run(results.sel(learner=shown))
    group_of = groups_of(one)
    attention.true_mask(panels[2], group_of)
    panels[2].set_title("pairs in a common group")
    heat(figure, panels[3], one.logits.values, group_of, f"learned $P^\\top P$ ({shown})")
    return figure, f"Gaussian patches, convolutional labels; maps in the order of the sets, one seed. {BAND}"


PROXY = "the paper gives no sizes, widths or steps; ours are small"
PAIRS = "48 same-group pairs among 240 have a standard error of 0.05: three of them above chance"

gaussian = Figure(
    "fig2", "Gaussian patches with convolutional labels: low error, no association",
    "The paper gives no sizes: D = 16, C = 4, d = 16, one convolution filter with its own weights for every slot. "
    "Learners: a one-layer transformer with trainable encodings, 32 value channels and a ReLU layer of 64, by Adam; "
    "and network (T), whose single value vector can fit a filter that all slots share, but not one for every slot.",
    sweep, draw, labels=labels,
    readings={"a filter for every slot": {}, "one filter for all slots": {"data.one_filter": True}},
    upheld_by=made(
        test_error=always(0.07), vote_error=always(0.095), auc=always(0.4), overlap=always(0.45), slot_auc=always(0.5)
    ),
    claims=[
        Claim(
            "gaussian-low-error", "On Gaussian patches with convolutional labels a one-layer transformer reaches a small test "
            "error (at most 0.1)", experiment("Section 2, Figure 2 (left)", proxy=PROXY), headline=True,
            number=lambda r: mean(r.test_error),
            holds=at_most(0.1, because="a vote of the filters, which needs no groups, errs 0.095"), cells=wide,
            refuted_by=made(test_error=always(0.2)),
        ),
        Claim(
            "gaussian-beats-vote", "On Gaussian patches the better of two learners errs less than a linear vote of the filters",
            ours("a question about Figure 2"),
            number=lambda r: smallest(arms(r.test_error - r.vote_error, "learner")),
            holds=at_most(0.0, because="below the vote on the same images"),
            refuted_by=made(test_error=always(0.12), vote_error=always(0.09)),
        ),
        Claim(
            "gaussian-no-association", "On Gaussian patches with convolutional labels the learned attention does not show "
            "the groups: the AUC of same-group pairs is not above 1/2",
            experiment("Section 2, Figure 2 (lower right)", proxy=PROXY), headline=True,
            number=lambda r: mean(r.auc), holds=at_most(0.65, because=PAIRS), cells=wide,
            refuted_by=made(auc=always(0.9)),
        ),
        Claim(
            "gaussian-network", "Network (T), trained on Gaussian patches with convolutional labels, does not show the groups",
            ours("Figure 2 for network (T)"),
            number=lambda r: mean(r.auc), holds=at_most(0.65, because=PAIRS), cells=lambda r: r.learner == "analysed",
            refuted_by=made(auc=always(0.9)),
        ),
        Claim(
            "gaussian-overlap", "On Gaussian patches rows have no more of their group among their C largest logits than by "
            "chance",
            experiment("Section 2, Figure 2 (lower right)", proxy=PROXY),
            number=overlap_above_chance,
            holds=at_most(0.15, because="half a slot of the four that a row's group has"), cells=wide,
            refuted_by=made(overlap=always(0.7)),
        ),
        Claim(
            "gaussian-looks-random", "On Gaussian patches the learned P^T P looks random: no pairs come out on top, not "
            "even those of a common slot",
            experiment("Figure 2 (caption)", proxy=PROXY),
            number=lambda r: mean(r.slot_auc),
            holds=about(0.5, 0.35, 0.65, because="48 same-slot pairs among 240 have a standard error of 0.05: three of them "
                                                 "off chance"),
            cells=wide,
            refuted_by=made(slot_auc=always(0.9)),
        ),
        Claim(
            "gaussian-slots", "On Gaussian patches the logits order pairs by slot, since slots share a filter; the AUC of the "
            "groups is then (1 - (L-1)/(D-C)) / 2 = 0.375", ours("Figure 2, README"),
            number=lambda r: mean(r.auc),
            holds=about(0.375, 0.3, 0.45, because="the ties of the other pairs leave a standard error of 0.05 a run"),
            cells=wide,
            refuted_by=made(auc=always(0.5)),
        ),
    ],
)  # fmt: skip
