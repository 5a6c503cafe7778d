"""The theory of the study: `rho` (Definition C.2.2), `bounds` (Theorem 2, its lemmas, Table 4.1), `population`
(risks and Fisher information by quadrature, sharp asymptotics). Here: conditions of the theorem at a trial, and what
`predict` says."""

from dataclasses import replace
from functools import cache

import numpy as np
import scipy

from lemmata.guard import double
from lemmata.measure.compare import Condition
from lemmata.studies.group_imbalance.data import World, check_teacher, mixture
from lemmata.studies.group_imbalance.theory import bounds, population
from lemmata.studies.group_imbalance.theory.bounds import *  # noqa: F403
from lemmata.studies.group_imbalance.theory.bounds import Setting
from lemmata.studies.group_imbalance.theory.population import *  # noqa: F403
from lemmata.studies.group_imbalance.theory.rho_function import *  # noqa: F403
from lemmata.study import Prediction
from lemmata.trial import random_key


@cache  # every claim of a figure asks for the same trials
def world_of(trial, seed: int = 0) -> World:
    """Mixture and teacher as the run of this trial and seed draws them, checked, in float64."""
    import jax

    with double():
        drawn = trial.world(random_key(trial, seed))
        drawn = jax.tree.map(lambda leaf: np.asarray(leaf, float), drawn)
    return World(mixture(*drawn.mixture), check_teacher(drawn.teacher))


def setting_of(trial, seed: int = 0) -> Setting:
    world = world_of(trial, seed)
    return Setting(world.mixture, world.teacher, kind=trial.population.activation)


def conditions(trial) -> list[Condition]:
    """Theorem 2's conditions at a trial, hidden constants 1, with the teacher of seed 0: enough samples (4.7) as
    (C.92) has them, for convexity (C.82) and for the initialisation (C.86); tau of order one."""
    s, n = setting_of(trial), trial.population.samples
    return [
        Condition("n >= n_sc (4.7, C.92)", None, n / bounds.sample_complexity(s)),
        Condition("samples for local convexity (C.82)", None, n / bounds.convexity_samples(s)),
        Condition("samples for the initialisation (C.86)", None, n / bounds.initialisation_samples(s)),
        Condition("tau = Theta(1)", None, 1 / s.covariance_condition),
    ]


def convexity(trial) -> list[Condition]:
    """What Lemma C.3.1 asks at a trial: samples (C.82) with the trial's own eps_0, constant 1."""
    needed = bounds.convexity_samples(setting_of(trial), trial.slack)
    return [Condition("samples for local convexity (C.82)", None, trial.population.samples / needed)]


def fixed_mixture(trial) -> list[Condition]:
    """What Table 4.1 and the lemmas on the population ask: tau of order one, a teacher of full rank.

    tau is at least 1 by its definition. The two sides of Theta(1) are taken as 1 and 10: Figure 4.7 has the square root of 10.
    """
    s = setting_of(trial)
    tau = s.covariance_condition
    return [
        Condition("tau = Theta(1): at most 10", bool(tau <= 10), 10 / tau),
        Condition("delta_K(W*) > 0", bool(s.singular_values[-1] > 0), float(s.singular_values[-1] / 1e-10)),
    ]


def predict(trial) -> tuple[list[Condition], list[Prediction]]:
    """The practitioner's answer for a mixture: does more of the smallest group help the average, that group, the
    speed; by how much; how many samples."""
    s, n = setting_of(trial), trial.population.samples
    found = population.fisher_information(s.mixture, s.teacher, kind=s.kind)
    weights = np.asarray(s.mixture.weights)
    minority = int(np.argmin(weights))
    counts = n * weights
    now = population.outlook(found, weights, counts)
    more = counts.copy()
    more[minority] *= 1.1
    added = population.outlook(found, weights, more)
    shifted = bounds.varied(s.mixture, minority, "fraction-smallest", min(1.1 * weights[minority], 0.99))
    moved = population.outlook(found, weights, n * shifted.weights)
    closed = bounds.table_quantities(s, minority)
    closed_moved = bounds.table_quantities(replace(s, mixture=shifted), minority)
    entropy = float(weights @ found.entropies)
    predictions = [
        Prediction("minority group", f"group {minority + 1} with fraction {weights[minority]:.3g}"),
        Prediction("smallest possible average risk (entropy of the labels)", entropy),
        Prediction("average excess risk dK/(2n), whatever the mixture", now.average),
        Prediction("minority excess risk", float(now.groups[minority])),
        Prediction("error of the weights sqrt(tr I^-1 / n)", now.error),
        Prediction("contraction factor 1 - lambda_min/lambda_max", 1 - now.speed),
        *_effects("10 % more minority samples on top", now, added, minority),
        *_effects("10 % more minority at the same n", now, moved, minority),
        Prediction("samples for an average excess risk of 0.001", average_samples(s, 1e-3)),
        Prediction("samples for a minority excess risk of 0.001", n * float(now.groups[minority]) / 1e-3),
        Prediction(
            "extra minority samples that halve its excess risk", halving_samples(found, counts, minority)
        ),
        Prediction("samples for a relative error of 10 % of the weights", weight_samples(s, found, 0.1)),
        Prediction("Theorem 2: n_sc (C.92), constants 1", bounds.sample_complexity(s)),
        Prediction("Theorem 2: contraction v = 1 - q/K^2 (4.9)", bounds.contraction_bound(s)),
        Prediction("Theorem 2: convex radius r (C.81)", bounds.convex_radius(s)),
        Prediction(
            "closed forms, 10 % more minority at the same n: E_w, E, E_l, 1 - v change by",
            ", ".join(
                f"{closed_moved[row] / closed[row] - 1:+.2%}" for row in ("error", "average", "group", "rate")
            ),
        ),
        Prediction("Table 4.1 says of a larger fraction of this group", table_says(s, minority)),
    ]
    return conditions(trial), predictions


def _effects(what: str, now, then, minority: int) -> list[Prediction]:
    def said(before: float, after: float, better: int) -> str:
        change = after / before - 1
        word = "no change" if abs(change) < 1e-6 else "helps" if change * better > 0 else "hurts"
        return f"{word} ({change:+.2%})"

    own, later = float(now.groups[minority]), float(then.groups[minority])
    return [
        Prediction(f"{what}: average excess risk", said(now.average, then.average, -1)),
        Prediction(f"{what}: minority excess risk", said(own, later, -1)),
        Prediction(f"{what}: speed 1 - v", said(now.speed, then.speed, 1)),
    ]


def average_samples(s: Setting, excess: float) -> float:
    """n with dK / (2n) = excess."""
    return s.dim * s.neurons / (2 * excess)


def halving_samples(found: population.Information, counts: np.ndarray, group: int) -> float:
    """How many more samples of a group alone halve its excess risk tr(I_l (sum_j n_j I_j)^-1) / 2."""

    def excess(more: float) -> float:
        grown = np.where(np.arange(len(counts)) == group, counts + more, counts)
        return float(population.outlook(found, counts, grown).groups[group])

    low, high = 0.0, float(counts.sum())
    while excess(high) > excess(0.0) / 2:
        low, high = high, 2 * high
    return float(scipy.optimize.brentq(lambda more: excess(more) - excess(0.0) / 2, low, high))  # type: ignore[arg-type]


def weight_samples(s: Setting, found: population.Information, relative: float) -> float:
    """n with sqrt(tr I^-1 / n) = relative |W*|_F."""
    return population.error_constant(found) / (relative * float(np.linalg.norm(s.teacher))) ** 2


def table_says(s: Setting, group: int) -> str:
    """The direction that columns 5 and 6 of Table 4.1 give for a group, if it has the smallest or the largest
    covariance."""
    sizes = s.max_std
    if np.ptp(sizes) < 1e-12:
        return "nothing: all covariances have the same norm"
    if sizes[group] == sizes.min():
        return "everything improves (the smallest covariance)"
    return "everything degrades (the largest covariance)" if sizes[group] == sizes.max() else "nothing"
