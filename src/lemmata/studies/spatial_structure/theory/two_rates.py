"""The conditions of figures whose logits and values have two step sizes: no cell of them lies inside the theorems.

They do not ask for clean labels, and read N = poly(d) as N >= d^2. The claims of these figures were judged with them.
"""

import math
from typing import Any

from lemmata.measure.compare import Condition
from lemmata.studies.spatial_structure.theory.conditions import _condition, _tiny_start, dominated
from lemmata.studies.spatial_structure.theory.events import (
    diagonal_margin,
    event1_alignment_scale,
    tied_scores,
)


def population(trial: Any) -> list[Condition]:
    """Theorem 4.1 and the lemmas of Appendices D and G: Assumption 2 and Parametrization 3.1 as far as they can be checked."""
    data, network, rate = trial.data, trial.network, float(trial.descent.attention_rate)
    (D, C, q), d, p = data.facts, data.dimension, network.degree
    tau = network.temperature(d)
    beta = float(network.diagonal) / tau
    gain = tied_scores(D, C, beta).gain
    start = getattr(trial, "alignment", 0.0) or float(network.threshold)
    return [
        *dominated(trial),
        _condition("the diagonal dominates: e^beta >= 2 q D log d", diagonal_margin(D, d, q, beta)),
        _condition("the denominator is of order D: e^beta <= D", D / math.exp(beta)),
        _condition("alpha starts where the sigmoid rests", event1_alignment_scale(C, p, gain) / start),
        Condition("one step size for value and attention", rate == 1, min(rate, 1 / max(rate, 1))),
    ]


def realistic(trial: Any) -> list[Condition]:
    """Theorem 4.2 and the lemmas of Appendix E: those of the population, and a sample of polynomial size."""
    run = getattr(trial, "realistic", trial)
    return [
        *population(trial),
        Condition("N = poly(d), read as N >= d^2", None, run.samples / trial.data.dimension**2),
        _tiny_start(trial),
    ]


def linear_phase(trial: Any) -> list[Condition]:
    """Lemmas E.1 to E.8: a tiny start and a sample of polynomial size; the diagonal as in Lemma G.3."""
    keep = ("diagonal", "N = poly", "omega", "one step")
    return [c for c in realistic(trial) if any(word in c.name for word in keep)]
