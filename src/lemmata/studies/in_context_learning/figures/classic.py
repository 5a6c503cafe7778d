"""Figure 6.4: in-context learning against classic learners that are fitted to the contexts of every prompt."""

from math import log
from typing import Any

import numpy as np
import xarray as xr

from lemmata.draw.curves import law, lines
from lemmata.draw.palette import BLACK, BLUE, GREEN, ORANGE, RED, SKY
from lemmata.draw.style import Drawn, canvas, log_to_zero, panel, picture
from lemmata.figure import Claim, Figure, Holds, at_least, at_most, experiment, made
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.trend import smallest
from lemmata.parts.baselines import Learnt
from lemmata.scale import Scale, by_scale
from lemmata.studies.in_context_learning import theory
from lemmata.studies.in_context_learning.figures.common import LAYER, UNSAID, labels, of_kind, seeds, small
from lemmata.studies.in_context_learning.theory import in_domain, out_of_domain
from lemmata.studies.in_context_learning.trials import Classic, Layer, Testing
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all

METHODS: dict[str, Learnt] = {
    "logistic regression": "logistic",
    "SVM, Gaussian": "svm-gaussian",
    "SVM, linear": "svm-linear",
    "1-NN": "1-nn",
    "3-NN": "3-nn",
}


def learner(trial: Layer, method: str) -> Any:
    return trial if method == "in context" else Classic(trial.data, trial.test, METHODS[method])


def sweep(scale: Scale) -> Sweep:
    lengths = by_scale(scale, (4, 8), (2, 4, 6, 8, 12, 16, 24), (2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40))
    test = Testing(fractions=(0.8, 0.6), lengths=lengths, prompts=by_scale(scale, 20, 200, 2000))
    trial = put_all(Layer(test=test), {"descent.logs": 11})
    trial = put_all(small(trial), {"test.prompts": 20}) if scale == "smoke" else trial
    names = ("in context", *METHODS) if scale != "smoke" else ("in context", "logistic regression", "3-NN")
    return Sweep(trial, (Axis("learner", names, learner),), seeds(scale, 3, 10))


def length_needed(error: xr.DataArray, level: float = 0.05) -> xr.DataArray:
    """The first tested length from which on the error stays at most `level`; infinite where it never does."""
    low = (error <= level).transpose(..., "length")
    stays = np.flip(np.logical_and.accumulate(np.flip(low.values, -1), -1), -1)
    lengths = xr.DataArray(
        np.asarray(error["length"].values, float), {"length": error["length"]}, ("length",)
    )
    found = lengths.where(low.copy(data=stays)).min("length").fillna(np.inf)
    return found.where(error.notnull().all("length"))


def icl_lead(r: xr.Dataset, variable: str, fraction: float, kind: str = "") -> Estimate:
    """The ratio of the length that the best classic learner needs to the one that the layer needs, as logarithm. A learner that
    never gets there counts with twice the longest length."""
    needed = length_needed(of_kind(chosen(r, fraction=fraction), variable, kind))
    never = 2 * float(r["length"].max())
    needed = xr.ufuncs.log(needed.where(np.isfinite(needed) | needed.isnull(), never))
    own = chosen(needed, learner="in context")
    return smallest([needed.sel(learner=m) - own for m in needed["learner"].values if m != "in context"])


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Error over the number of contexts, method by method, in and out of domain."""
    figure, axes = canvas(2, 2, sharex=True)
    shades = [BLACK, BLUE, RED, ORANGE, GREEN, SKY]
    kinds = (("error", "in domain"), ("ood_error", "out of domain"))
    for row, (variable, where) in zip(axes, kinds, strict=True):
        for one, fraction, mark in zip(row, results["fraction"].values, "AB", strict=False):
            part = results[variable].sel(fraction=fraction)
            part = part.isel(kind=0) if "kind" in part.dims else part
            lines(one, part, "length", "learner", "{}", shades, style="o-", centre="mean", spread="none")
            lengths = results["length"].values
            said = [theory.vote_error(float(fraction), int(n)) for n in lengths]
            law(one, lengths, said, "law of the vote")
            last = variable == "ood_error"
            title = f"({mark}) α' = {fraction:g}, {where}"
            xlabel = "contexts in the test prompt" if last else ""
            panel(one, xlabel, "error", title, "x", ticks=lengths, keyed=last and mark == "A")
            log_to_zero(one, "y", 0.01)
    return figure, "Classic learners are fitted to the contexts of every prompt. Lines: mean over seeds."


def learnt_from(own: float, others: float):
    """An error that passes 5 % at one length for the layer, and at another for classic learners."""
    return lambda t, length: 0.05 * ((own if isinstance(t, Layer) else others) / length) ** 3


def leads(id: str, statement: str, where: str, fraction: float, holds: Holds, refuted, upheld, kind: str = "",
          headline: bool = False) -> Claim:  # fmt: skip
    variable = "ood_error" if kind else "error"

    def case(own: float, others: float):
        return made({variable: learnt_from(own, others)})

    return Claim(
        id, statement, experiment(where, proxy=UNSAID), headline=headline,
        number=lambda r: icl_lead(r, variable, fraction, kind), holds=holds,
        conditions=out_of_domain if kind else in_domain,
        refuted_by=case(*refuted), upheld_by=case(*upheld),
    )  # fmt: skip


FEWER = at_least(0.0, because="no lead would refute it")
EVEN = at_most(log(2), because="a factor 2 in contexts is two steps of the grid")

classic = Figure(
    "fig6-4", "In-context learning against classic learners on the same contexts", LAYER + " Learners of scikit-learn with C = 1.",
    sweep, draw, labels=labels,
    claims=[
        leads("icl-robust", "In domain, at alpha' = 0.6, in-context learning needs fewer contexts for an error of 5 % than any "
              "classic learner", "Figure 6.4 (B)", 0.6, FEWER, refuted=(11, 7), upheld=(7, 11), headline=True),
        leads("icl-even", "In domain, at alpha' = 0.8, the advantage of in-context learning is not significant: less than a factor "
              "2 in contexts", "Figure 6.4 (A)", 0.8, EVEN, refuted=(5, 15), upheld=(7, 11)),
        leads("icl-robust-out", "Out of domain, at alpha' = 0.6, in-context learning needs fewer contexts for an error of 5 % than "
              "any classic learner", "Figure 6.4 (B)", 0.6, FEWER, refuted=(11, 7), upheld=(7, 11), kind="partners"),
    ],
)  # fmt: skip
