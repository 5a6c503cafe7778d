"""How many samples a mixture needs, in plain English."""

from functools import cache
from typing import Any

import numpy as np

from lemmata.answer import OUT_OF_REACH, Answer, needed
from lemmata.studies.group_imbalance import theory
from lemmata.studies.group_imbalance.theory import bounds, population
from lemmata.trial import put

EXCESS = 1e-3
"""The excess risk that counts as small."""


def _needs(trial: Any) -> tuple[float, float, int]:
    """As `_needs_of`. The needs do not depend on the number of samples, which only changes the draw of the teacher."""
    return _needs_of(put(trial, "population.samples", 20_000))


@cache
def _needs_of(trial: Any) -> tuple[float, float, int]:
    """Samples for a small average excess risk, for a small one of the smallest group, and the number of that group."""
    s, n = theory.setting_of(trial), trial.population.samples
    found = population.fisher_information(s.mixture, s.teacher, kind=s.kind)
    weights = np.asarray(s.mixture.weights)
    group = int(np.argmin(weights))
    now = population.outlook(found, weights, n * weights)
    return theory.average_samples(s, EXCESS), n * float(now.groups[group]) / EXCESS, group + 1


def success(trial: Any) -> bool:
    """Whether the average and the smallest group have an excess risk of at most `EXCESS`."""
    return trial.population.samples >= max(_needs(trial)[:2]) * (1 - 1e-9)


def sentence(trial: Any) -> str:
    average, own, group = _needs(trial)
    asked = bounds.sample_complexity(theory.setting_of(put(trial, "population.samples", 20_000)))
    bound = "is vacuous" if asked > OUT_OF_REACH else f"asks for {needed(asked, 'samples')}"
    return (
        f"You need {needed(average, 'samples')} for an average excess risk of {EXCESS:g}, and "
        f"{needed(own, 'samples')} for that of the smallest group (group {group}); "
        f"Theorem 2 with constants 1 {bound}. Here there are {trial.population.samples:,}."
    )


ANSWER = Answer(
    sentence,
    success,
    goal="excess risks of at most 0.001",
    inputs=(
        *("population.samples", "population.fractions", "population.shifts", "population.spreads"),
        *("population.dim", "population.neurons"),
    ),
    main=("average excess risk", "minority excess risk", "error of the weights"),
    counts=("samples for", "extra minority samples", "Theorem 2: n_sc"),
    claims=("covariance-likelihood", "mean-likelihood"),
)
