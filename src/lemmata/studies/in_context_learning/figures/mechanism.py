"""Figure 6.2: one training looked at from all sides, tested in domain and on three kinds of mixtures of its patterns."""

import numpy as np
import xarray as xr

from lemmata.figure import (
    Claim,
    Figure,
    about,
    at_least,
    at_most,
    every_run,
    experiment,
    made,
    ours,
    proof,
    theorem,
)
from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import mean
from lemmata.measure.times import first_value, last_value
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.in_context_learning import theory
from lemmata.studies.in_context_learning.figures import neurons
from lemmata.studies.in_context_learning.figures.common import (
    LAYER,
    ONE_WHY,
    UNSAID_OUT,
    ZERO_WHY,
    allowed_share,
    at_end,
    hinge_at_end,
    labels,
    largest_share,
    of_kind,
    scaled,
    seeds,
    template,
)  # fmt: skip
from lemmata.studies.in_context_learning.figures.mechanism_picture import draw
from lemmata.studies.in_context_learning.figures.neurons import one_shift
from lemmata.studies.in_context_learning.theory import in_domain, out_of_domain
from lemmata.studies.in_context_learning.trials import NORMS
from lemmata.sweep import Sweep, axis
from lemmata.trial import put_all

LOGGED = (*range(0, 200, 4), *range(200, 801, 25))


def sweep(scale: Scale) -> Sweep:
    trial = put_all(
        template(),
        {
            "detailed": True, "test.kinds": ("partners", "apart", "sums"), "descent.log_at": LOGGED,
            "descent.steps": 800,
        },
    )  # fmt: skip
    shifts = by_scale(scale, (1,), (1, 4), (1, 4))
    return Sweep(scaled(trial, scale), (axis("data.task_shifts", shifts),), seeds(scale, 5))


# What is measured ------------------------------------------------------------------------------------------------------


def four_shifts(r: xr.Dataset) -> xr.DataArray:
    """Training tasks with U = 4."""
    return r["task_shifts"] == 4


def mass_missing(r: xr.Dataset, kind: str = "") -> xr.DataArray:
    """Attention on contexts of other patterns, over what (E.71) allows: (2 - alpha')/(alpha' M_1)."""
    allowed = over_cells(r, lambda t: 1 - theory.trained_mass(t.test.fractions[0], t.data.relevant))
    return (1 - at_end(r, "ood_mass" if kind else "mass", kind)) / allowed


def own_growth(r: xr.Dataset) -> xr.DataArray:
    """The length of queries along their own pattern at the end over the one at the start, out of domain (partners)."""
    curve = of_kind(r, "now_ood_norms_curve", "partners").sel(norm="query along its pattern")
    return last_value(curve) / first_value(curve)


def own_ratio(r: xr.Dataset) -> Estimate:
    """The length of queries along their own pattern over their whole length, at the end, out of domain (partners)."""
    curves = of_kind(r, "now_ood_norms_curve", "partners")
    return mean(last_value(curves.sel(norm="query along its pattern")) / last_value(curves.sel(norm="query")))


def own_size(r: xr.Dataset) -> xr.DataArray:
    """The smallest own component mu_j^T W_K mu_j over sqrt(log M_1)."""
    norm = over_cells(r, lambda t: t.data.pattern_norm**2 / theory.main_projection(t.data.relevant))
    return r["key_worst"].sel(direction="own") * norm


def stray(r: xr.Dataset, direction: str) -> xr.DataArray:
    """The largest component along other patterns over the smallest own one, in units of what (E.81) and (E.82) allow."""
    return largest_share(r["key_worst"], direction) / over_cells(r, lambda t: allowed_share(t, direction))


def partner_balance(r: xr.Dataset) -> Estimate:
    """What keys gained along a partner over what they gained along their own pattern: -1/(number of partners) by the conserved
    sum, in units of that."""
    parts = r["key_parts"]
    start = over_cells(r, lambda t: t.diagonal)
    gained = parts.sel(direction="partner") / (parts.sel(direction="own") - start)
    return mean(gained / over_cells(r, lambda t: theory.partner_share(t.data.relevant, t.data.task_shifts)))


# What it can refute ----------------------------------------------------------------------------------------------------


def learnt(id: str, statement: str, kind: str = "", cells=one_shift, headline: bool = False) -> Claim:
    """The hinge loss is of order eps."""
    variable, where = ("ood_hinge", "Theorem 6.3.4") if kind else ("hinge", "Theorem 6.3.3")
    return Claim(
        id, statement, theorem(where), headline=headline,
        number=lambda r: hinge_at_end(r, kind), holds=every_run(at_most(0.05, because=ZERO_WHY)), cells=cells,
        conditions=out_of_domain if kind else in_domain,
        refuted_by=made({variable: lambda t: 0.12}),
    )  # fmt: skip


def concentrated(id: str, statement: str, where: str, kind: str = "", headline: bool = False) -> Claim:
    """Attention on contexts of other patterns is at most what (E.71) allows."""
    return Claim(
        id, statement, proof(where), headline=headline,
        number=lambda r: mass_missing(r, kind), holds=every_run(at_most(1.0, because=ONE_WHY)), cells=one_shift,
        conditions=out_of_domain if kind else in_domain,
        refuted_by=made({"ood_mass" if kind else "mass": lambda t: 0.5}),
    )  # fmt: skip


def strays(id: str, statement: str, where: str, direction: str, refuted: list[float]) -> Claim:
    """The component along other patterns is at most the printed share of the own one."""
    return Claim(
        id, statement, proof(where),
        number=lambda r: stray(r, direction), holds=every_run(at_most(1.0, because=ONE_WHY)), cells=one_shift,
        conditions=in_domain,
        refuted_by=made(key_worst=lambda t: refuted),
    )  # fmt: skip


def lengths(ratio: float, growth: float):
    """Lengths that grow evenly from 1, and a constant share of them along the own pattern."""
    return lambda t, step, kind, norm: (
        np.where(np.isin(norm, NORMS[1::2]), ratio, 1.0) * (1 + (growth - 1) * step / t.descent.steps)
    )


UPHELD = made(
    neurons.UPHELD, noise=0.001,
    hinge=lambda t: 0.02, ood_hinge=lambda t: 0.02, mass=lambda t: 0.9, ood_mass=lambda t: 0.9,
    now_ood_norms_curve=lengths(0.95, 3.0),
    key_worst=lambda t: [0.3, 0.025, 0.025, 0.006],  # at most 0.05, 0.05 and 0.0125 are allowed beside 0.3
    key_parts=lambda t: [t.diagonal + 0.6, -0.3, 0.0, 0.0],
)  # fmt: skip

mechanism = Figure(
    "fig6-2", "Attention, projections and neurons along training, in and out of domain", LAYER + " S_1 = 1.28 (a = b).",
    sweep, draw, labels=labels, upheld_by=UPHELD,
    claims=[
        learnt("in-domain", "After training on M_1 tasks that cover every pattern and label, the hinge loss on unseen tasks is of "
               "order eps", headline=True),
        learnt("out-of-domain", "The hinge loss is of order eps on the mixtures of the experiments, whose coefficient sums are at "
               "least 1; they mix patterns that meet in training", "partners", headline=True),
        learnt("out-of-domain-apart", "The hinge loss is of order eps on mixtures with coefficient sums of at least 1 of patterns "
               "that do not meet in training", "apart", headline=True),
        learnt("out-of-domain-shifts", "With training tasks of four shifts (U = 4) the hinge loss is of order eps on the mixtures "
               "of the experiments", "partners", four_shifts),
        learnt("out-of-domain-sums", "The hinge loss is of order eps on any orthonormal mixtures with coefficient sums of at least "
               "1, here 2, 1 and 1", "sums"),
        learnt("out-of-domain-sums-shifts", "With training tasks of four shifts (U = 4) the hinge loss is of order eps on mixtures "
               "with coefficient sums 2, 1 and 1", "sums", four_shifts),
        concentrated("attention", "In domain, the attention on contexts of other patterns than the query's is at most "
                     "(2 - alpha')/(alpha' M_1)", "Corollary 6.4.3, (E.55)", headline=True),
        concentrated("attention-partners", "On the mixtures of the experiments, the attention on contexts of other patterns is at "
                     "most (2 - alpha')/(alpha' M_1)", "Corollary 6.4.3, (E.71), Figure 6.2 (B)", "partners"),
        concentrated("attention-apart", "On mixtures of patterns that do not meet in training, the attention on contexts of other "
                     "patterns is at most (2 - alpha')/(alpha' M_1)", "Corollary 6.4.3, (E.71)", "apart"),
        Claim(
            "projection-grows", "Out of domain, the length of queries along their own pattern grows in training, at least 1.5 times",
            experiment("Figure 6.2 (A), (6.17)", proxy=UNSAID_OUT),
            number=own_growth, holds=every_run(at_least(1.5, because="half as much again tells growth from noise")),
            cells=one_shift, conditions=out_of_domain,
            refuted_by=made(now_ood_norms_curve=lengths(0.95, 1.0)),
        ),
        Claim(
            "projection-close", "Out of domain, the length of queries along their own pattern is close to their whole length: at "
            "least 0.9 of it", experiment("Figure 6.2 (A)", proxy=UNSAID_OUT),
            number=own_ratio, holds=at_least(0.9, because="close: nine tenths"), cells=one_shift, conditions=out_of_domain,
            refuted_by=made(now_ood_norms_curve=lengths(0.6, 3.0)),
        ),
        Claim(
            "own-component", "Under W_K, the component of a pattern along itself grows to at least sqrt(log M_1)",
            theorem("Proposition 6.4.1, (6.17)"),
            number=own_size, holds=every_run(at_least(1.0, because=ONE_WHY)), cells=one_shift, conditions=in_domain,
            refuted_by=made(key_worst=lambda t: [0.08, 0.0, 0.0, 0.0]),
        ),
        strays("partner-component", "Under W_K, the component along a pattern that forms a training task with it is at most 1/M_1 "
               "of that along itself", "Proposition 6.4.1, (6.18), (E.84)", "partner", [0.3, 0.1, 0.0, 0.0]),
        strays("other-component", "Under W_K, components along other relevant patterns are at most 1/M_1 of that along itself",
               "Proposition 6.4.1, (6.18), (E.83)", "other", [0.3, 0.0, 0.1, 0.0]),
        strays("irrelevant-component", "Under W_K, components along irrelevant patterns are at most 1/M_2 of that along itself",
               "Proposition 6.4.1, (6.19), (E.85)", "irrelevant", [0.3, 0.0, 0.0, 0.025]),
        Claim(
            "partner-balance", "Each of the two partners loses half of what the pattern itself gains, since W_K sum_j mu_j is "
            "conserved", ours("README, the conserved sum"),
            number=partner_balance,
            holds=about(1.0, 0.85, 1.15, because="what other patterns gain or lose is a few per cent"),
            cells=one_shift, conditions=in_domain,
            refuted_by=made(key_parts=lambda t: [t.diagonal + 0.6, -0.15, 0.0, 0.0]),
        ),
        *neurons.CLAIMS,
    ],
)  # fmt: skip
