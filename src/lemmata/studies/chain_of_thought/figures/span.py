"""Test patterns inside and outside the span of the training patterns, and one that is never learnt."""

from lemmata.draw.panels import Panel, panels
from lemmata.figure import Claim, Figure, at_least, at_most, every_run, made, ours, theorem
from lemmata.measure.simple import mean
from lemmata.scale import Scale
from lemmata.studies.chain_of_thought.figures.common import (
    LENGTH_LABEL,
    ZERO_WHY,
    labels,
    scaled,
    seeds,
    template,
    vote,
    vote_gap,
)  # fmt: skip
from lemmata.studies.chain_of_thought.theory import cot_conditions
from lemmata.sweep import Sweep, axis
from lemmata.trial import put_all


def sweep(scale: Scale) -> Sweep:
    kinds = ("subset", "rotations", "zero-sum", "mean", "outside")
    trial = put_all(
        scaled(template(), scale),
        {"data.dim": 40, "test.lengths": (12, 40, 80), "test.match_fraction": 0.4, "test.others": "one"},
    )
    return Sweep(trial, (axis("test.kind", kinds),), seeds(scale, 6, 20))


def inside(r):
    return r.kind != "outside"


def inside_off_the_mean(r):
    """No pattern with S^2 near M (the mended condition)."""
    return ~r.kind.isin(["outside", "mean"])


ERRS = made(cot_error=lambda t, length: 0.02)
UNLIKE_THE_VOTE, LIKE_THE_VOTE = (made(cot_error=vote("cot_error", gap)) for gap in (0.12, 0.03))
NO_ERROR = every_run(at_most(0.01, because=ZERO_WHY))
AS_THE_VOTE = every_run(at_most(0.06, because="as cot-vote"))

span = Figure(
    "span", "Test patterns inside and outside the span, and one that is never learnt",
    "Test patterns inside and outside the span (d_X = 40, so that both fit); 40 % of the examples match, the others all begin "
    "with one other pattern, so that a vote that is blind to patterns is lost.",
    sweep,
    panels(Panel(lambda r: r.cot_error, "length", LENGTH_LABEL, "chain-of-thought error", arms="kind"),
           caption="Test patterns of several kinds; 'mean' has one pattern that is the mean of all training patterns."),
    labels=labels,
    upheld_by=made(cot_error=lambda t, length: 0.9 if t.test.kind == "outside" else 0.005),
    claims=[
        Claim(
            "span-printed", "Test patterns in the span of the training patterns, whatever they are, are reasoned on without error",
            theorem("Theorem 4 as printed, (7.19)"), headline=True,
            number=lambda r: r.cot_error.isel(length=-1), holds=NO_ERROR, cells=inside, conditions=cot_conditions,
            refuted_by=ERRS,
        ),
        Claim(
            "span-mended", "Test patterns in the span whose coefficient sums stay away from sqrt(M) are reasoned on without error",
            ours("Theorem 4, mended"), headline=True,
            number=lambda r: r.cot_error.isel(length=-1), holds=NO_ERROR, cells=inside_off_the_mean, conditions=cot_conditions,
            refuted_by=ERRS,
        ),
        Claim(
            "outside-errs", "Test patterns outside the span are not reasoned on",
            ours("a negative control"),
            number=lambda r: mean(r.cot_error.isel(length=-1)),
            holds=at_least(0.5, because="guessing among ten patterns errs in nine of ten"), cells=lambda r: r.kind == "outside",
            refuted_by=made(cot_error=lambda t, length: 0.2),
        ),
        Claim(
            "vote-straight", "On test patterns with equal coefficient sums the error of the layer equals that of the vote, within 0.06",
            ours("README, the vote"),
            number=lambda r: vote_gap(r, "cot_error"), holds=AS_THE_VOTE, cells=lambda r: r.kind.isin(["subset", "zero-sum"]),
            refuted_by=UNLIKE_THE_VOTE, upheld_by=LIKE_THE_VOTE,
        ),
        Claim(
            "vote-rotated", "On random rotations of the training patterns the error of the layer equals that of the vote, within 0.06",
            ours("README, the vote"),
            number=lambda r: vote_gap(r, "cot_error"), holds=AS_THE_VOTE, cells=lambda r: r.kind == "rotations",
            refuted_by=UNLIKE_THE_VOTE, upheld_by=LIKE_THE_VOTE,
        ),
    ],
)  # fmt: skip
