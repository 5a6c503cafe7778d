"""What Lemmas E.4.5 to E.4.7 bound, along a run."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from lemmata.draw.curves import BAND, law, line, reference
from lemmata.draw.palette import BLACK, BLUE, GREY, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_least, at_most, every_run, made, proof
from lemmata.measure.times import last_value
from lemmata.results import over_cells, trial_at
from lemmata.scale import Scale
from lemmata.studies.in_context_learning import theory
from lemmata.studies.in_context_learning.figures.common import (
    LAYER,
    ONE_WHY,
    REACHED,
    allowed_share,
    labels,
    largest_share,
    scaled,
    seeds,
    template,
)
from lemmata.studies.in_context_learning.theory import in_domain
from lemmata.sweep import Sweep
from lemmata.trial import put_all


def sweep(scale: Scale) -> Sweep:
    """Until the tasks are learnt."""
    changes = {
        "followed": True, "test.kinds": (), "descent.steps": 240, "descent.log_at": tuple(range(0, 241, 4)),
    }  # fmt: skip
    return Sweep(scaled(put_all(template(), changes), scale), (), seeds(scale, 5))


# What is measured ------------------------------------------------------------------------------------------------------


def learning(r: xr.Dataset) -> xr.DataArray:
    """Logged steps t_0 >= 1 before the hinge loss on unseen tasks first passes `REACHED`."""
    low = (r["now_hinge_curve"] <= REACHED).transpose(..., "step")
    before = low.copy(data=~np.logical_or.accumulate(low.values, -1)) & r["now_hinge_curve"].notnull()
    return before & (r["step"] > 0)


def update_over_bound(r: xr.Dataset, matrix: str) -> xr.DataArray:
    """How far W_Q or W_K has moved along a pattern, (mu_j; 0) dW (mu_j; 0), over what (E.6) and (E.10) say it has at least:
    `eta/M_1 sum_b zeta_b delta gamma_b beta^4`. Smallest pattern, smallest step; the sum over logged steps is by trapezoids."""
    own = r[f"{matrix}_update_curve"].sel(direction="own")
    product = (r["zeta_curve"] * r["gamma_curve"]).transpose(..., "step")
    steps = np.asarray(r["step"].values, float)
    pieces = np.diff(steps) * (product.values[..., 1:] + product.values[..., :-1]) / 2
    total = np.concatenate([np.zeros((*pieces.shape[:-1], 1)), np.cumsum(pieces, -1)], -1)
    square = over_cells(r, lambda t: t.data.pattern_norm**2)
    said = over_cells(r, lambda t: theory.update_growth(theory.setting(t)))
    return (own * square / (product.copy(data=total) * said)).where(learning(r)).min("step")


def update_share(r: xr.Dataset, matrix: str, direction: str) -> xr.DataArray:
    """The largest update along other patterns over the smallest along the pattern itself, in units of what (E.8), (E.9) allow,
    at the worst step; along partners, in units of 1/M_1 at the last step before the task is learnt, where (E.7) has come to
    M_1^-Theta(1)."""
    allowed = over_cells(r, lambda t: allowed_share(t, direction))
    found = largest_share(r[f"{matrix}_update_curve"], direction) / allowed
    found = found.where(learning(r))
    return last_value(found) if direction == "partner" else found.max("step")


def value_lucky(r: xr.Dataset) -> xr.DataArray:
    """a V_i of lucky neurons over beta^2 (1 - gamma_t): smallest neuron and token, smallest step (E.15), (E.18)."""
    square = over_cells(r, lambda t: t.data.pattern_norm**2)
    found = r["value_lucky_curve"] / (square * (1 - r["gamma_curve"]).clip(min=1e-6))
    return found.where(learning(r)).min("step")


def largest(r: xr.Dataset, name: str, unit) -> xr.DataArray:
    """A record over its bound at the worst step."""
    return (r[f"{name}_curve"] * over_cells(r, unit)).where(learning(r)).max("step")


def value_rest(r: xr.Dataset) -> xr.DataArray:
    """a |V_i| of prompts that the neuron is not lucky for, over sqrt(log B/B): largest neuron, token, step (E.17), (E.20)."""
    scale = over_cells(r, lambda t: theory.batch_noise(t.descent.batch))
    return (r["value_rest_curve"] / scale).where(learning(r)).max("step")


def over_time(r: xr.Dataset, name: str, bound) -> xr.DataArray:
    """A record of lucky neurons over a bound that grows with the steps: smallest neuron, pattern, step."""
    said = over_cells(r, lambda t: bound(theory.setting(t))) * r["step"]
    return (r[f"{name}_curve"] / said.clip(min=1e-12)).where(learning(r)).min("step")


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Updates of W_Q and W_K (above), of W_V and W_O (below)."""
    figure, axes = canvas(3, 2, width=4.6, height=3.4)
    trial: Any = trial_at(results)
    s, shown = theory.setting(trial), results.where(learning(results))
    for one, name, sign in zip(axes[0], ("query", "key"), ("W_Q", "W_K"), strict=False):
        _updates(one, shown[f"{name}_update_curve"], sign)
    line(axes[0, 2], shown["gamma_curve"], "step", BLUE, "γ_t: attention off the pattern, largest")
    line(axes[0, 2], shown["zeta_curve"], "step", ORANGE, "ζ_t: preactivation of lucky neurons, smallest")
    panel(axes[0, 2], "step", "", "what (E.6) sums over", "y")
    bound = s.norm**2 * (1 - shown["gamma_curve"])
    line(axes[1, 0], shown["value_lucky_curve"], "step", BLUE, "lucky for the prompt, smallest")
    line(axes[1, 0], bound, "step", BLUE, "(E.15)", "--", spread="none")
    line(axes[1, 0], shown["value_rest_curve"], "step", RED, "not lucky for it, largest")
    reference(axes[1, 0], y=theory.batch_noise(s.batch), label="(E.17)", colour=RED, style="--")
    panel(axes[1, 0], "step", "a V_i", "W_V (Lemma E.4.6)")
    steps = np.asarray(results["step"].where(learning(results).any("seed"), drop=True).values, float)
    line(axes[1, 1], shown["neuron_growth_curve"], "step", BLUE, "gain along (μ; ±q), smallest")
    law(axes[1, 1], steps, theory.neuron_growth(s) * steps, "(E.24)", BLUE)
    line(axes[1, 1], shown["neuron_norm_curve"], "step", ORANGE, "length, shortest")
    law(axes[1, 1], steps, theory.neuron_norm(s) * steps, "(E.27)", ORANGE)
    panel(axes[1, 1], "step", "", "W_O of lucky neurons (Lemma E.4.7)")
    line(axes[1, 2], shown["value_irrelevant_curve"], "step", BLUE, "over the smallest along tokens")
    reference(axes[1, 2], y=theory.irrelevant_share(s.irrelevant), label="1/M_2", colour=BLACK)
    panel(axes[1, 2], "step", "largest share of a neuron", "W_V along irrelevant patterns, (E.22)", "y")
    return figure, f"Until the hinge loss on unseen tasks is 0.05; lemmas with constant 1. {BAND}"


def _updates(axes: Axes, moved: xr.DataArray, sign: str) -> None:
    names = {
        "own": "its own, smallest", "partner": "a partner", "other": "another relevant one",
        "irrelevant": "an irrelevant one",
    }  # fmt: skip
    for colour, direction in zip((BLACK, RED, BLUE, GREY), moved["direction"].values, strict=True):
        line(axes, moved.sel(direction=direction), "step", colour, names[str(direction)])
    panel(axes, "step", "update along ...", f"{sign} (Lemma E.4.5), largest", "y")


# What it can refute ----------------------------------------------------------------------------------------------------

ZETA, GAMMA = 0.01, 0.5
UPDATE = 1.0 * 0.1 * 3.0**2 / 6 * ZETA * GAMMA  # eta delta beta^2/M_1 zeta gamma, (E.6), of unit patterns
GAIN = 0.1 * (3.0**2 + 1) * 0.8 * 1.0 / (2 * 60)  # delta (beta^2 + 1) alpha eta/(2a), (E.24)
LENGTH = 6**0.5 * GAIN / (3.0**2 + 1) ** 0.5  # (E.27)
NOISE = (np.log(120) / 120) ** 0.5  # sqrt(log B/B)


def moved(own: float = 2.0, partner: float = 0.5, other: float = 0.5, irrelevant: float = 0.5):
    """An update that grows evenly: these many times what Lemma E.4.5 asks or allows in every direction."""
    shares = np.array([1.0, partner / 6, other / 6, irrelevant / 24])
    return lambda t, step, direction: own * UPDATE * step * shares


def grown(rate: float):
    return lambda t, step: rate * step


def followed(**given):
    """A run that keeps learning, on which all of Lemmas E.4.5 to E.4.7 hold but for what is given."""
    records = {
        "now_hinge": lambda t: 0.5, "zeta": lambda t: ZETA, "gamma": lambda t: GAMMA,
        "query_update": moved(), "key_update": moved(),
        "value_lucky": lambda t: 9.0, "value_opposite": lambda t: 0.05, "value_rest": lambda t: NOISE / 2,
        "value_irrelevant": lambda t: 0.02, "neuron_growth": grown(2 * GAIN), "neuron_norm": grown(2 * LENGTH),
        "neuron_irrelevant": lambda t: 0.02,
    }  # fmt: skip
    return made({f"{name}_curve": law for name, law in (records | given).items()})


AT_LEAST, AT_MOST = every_run(at_least(1.0, because=ONE_WHY)), every_run(at_most(1.0, because=ONE_WHY))
PLAIN = every_run(at_most(1.0, because="as printed, without a constant"))


def bounded(id: str, statement: str, where: str, number, holds, refuted_by) -> Claim:
    return Claim(
        id, statement, proof(where), number=number, holds=holds, conditions=in_domain, refuted_by=refuted_by
    )


def updated(id: str, statement: str, where: str, matrix: str) -> Claim:
    """The update along a pattern itself is at least what the lemma says."""
    return bounded(id, statement, f"Lemma E.4.5, {where}", lambda r: update_over_bound(r, matrix), AT_LEAST,
                   followed(**{f"{matrix}_update": moved(own=0.5)}))  # fmt: skip


def spared(id: str, statement: str, where: str, matrix: str, direction: str) -> Claim:
    """The update along another pattern is at most a share of that."""
    return bounded(id, statement, f"Lemma E.4.5, {where}", lambda r: update_share(r, matrix, direction), AT_MOST,
                   followed(**{f"{matrix}_update": moved(**{direction: 2.0})}))  # fmt: skip


lemmas = Figure(
    "lemmas", "What the lemmas of the proof bound, along a run",
    LAYER + " Until the hinge loss on unseen tasks is 0.05; 480 training prompts at every look.", sweep, draw, labels=labels,
    upheld_by=followed(),
    claims=[
        updated("query-update", "At every step before the tasks are learnt, W_Q has moved along a query's own pattern by at least "
                "eta/M_1 sum_b zeta_b delta gamma_b beta^4", "(E.6)", "query"),
        updated("key-update", "At every step before the tasks are learnt, W_K has moved along a context's own pattern by at least "
                "eta/M_1 sum_b zeta_b delta gamma_b beta^4", "(E.10)", "key"),
        spared("query-update-partner", "W_Q moves along a pattern that forms a training task with the query's by at most "
               "exp(-Theta((eta t/M_1)^2)) of its move along that. When the tasks are learnt, this share is 1/M_1", "(E.7)", "query", "partner"),
        spared("key-update-partner", "W_K moves along a pattern that forms a training task with the context's by at most "
               "exp(-Theta((eta t/M_1)^2)) of its move along that. When the tasks are learnt, this share is 1/M_1", "(E.11)", "key", "partner"),
        spared("query-update-other", "At every step, W_Q has moved along other relevant patterns by at most 1/M_1 of its move along "
               "the query's own", "(E.8)", "query", "other"),
        spared("key-update-other", "At every step, W_K has moved along other relevant patterns by at most 1/M_1 of its move along "
               "the context's own", "(E.12)", "key", "other"),
        spared("query-update-irrelevant", "At every step, W_Q has moved along irrelevant patterns by at most 1/M_2 of its move along "
               "the query's own", "(E.9)", "query", "irrelevant"),
        spared("key-update-irrelevant", "At every step, W_K has moved along irrelevant patterns by at most 1/M_2 of its move along "
               "the context's own", "(E.13)", "key", "irrelevant"),
        bounded("value-lucky", "In every step, for p of some label, rows of W_O of neurons that are lucky for it enter W_V p. Their "
                "coefficients are at least beta^2 (1 - gamma)/a", "Lemma E.4.6, (E.15) and (E.18)", value_lucky, AT_LEAST,
                followed(value_lucky=lambda t: 2.0)),
        bounded("value-opposite", "Rows of neurons that are lucky for the other label enter with at most 1/(beta^2 + 1) of that, on "
                "average over neurons", "Lemma E.4.6, (E.16) and (E.19), as its proof has it",
                lambda r: largest(r, "value_opposite", lambda t: t.data.pattern_norm**2 + 1),
                every_run(at_most(1.0, because="as printed; means over neurons, which is what (E.175) sums")),
                followed(value_opposite=lambda t: 0.2)),
        bounded("value-rest", "Prompts that a neuron is not lucky for add at most sqrt(log B/B)/a to its coefficient",
                "Lemma E.4.6, (E.17) and (E.20)", value_rest, AT_MOST, followed(value_rest=lambda t: 2 * NOISE)),
        bounded("value-irrelevant", "Along irrelevant patterns, coefficients are at most 1/M_2 of those along tokens",
                "Lemma E.4.6, (E.22)", lambda r: largest(r, "value_irrelevant", lambda t: t.data.irrelevant), PLAIN,
                followed(value_irrelevant=lambda t: 0.08)),
        bounded("neuron-growth", "After t steps, rows of W_O of lucky neurons have gained at least delta (beta^2 + 1) alpha eta "
                "t/(2a) along (mu_a; q) if they vote for +1, and along (mu_a; -q) if they vote for -1",
                "Lemma E.4.7, (E.24) and (E.26)", lambda r: over_time(r, "neuron_growth", theory.neuron_growth), AT_LEAST,
                followed(neuron_growth=grown(GAIN / 2))),
        bounded("neuron-norm", "After t steps, rows of W_O of lucky neurons have a length of at least sqrt(M_1) delta "
                "(beta^2 + 1)^(1/2) alpha eta t/(2a)", "Lemma E.4.7, (E.27)",
                lambda r: over_time(r, "neuron_norm", theory.neuron_norm), AT_LEAST, followed(neuron_norm=grown(LENGTH / 2))),
        bounded("neuron-irrelevant", "Rows of W_O of lucky neurons have gained along irrelevant patterns at most 1/M_2 of what they "
                "have gained along (mu_a; q), or (mu_a; -q)", "Lemma E.4.7, (E.28) without its label part, (E.196)",
                lambda r: largest(r, "neuron_irrelevant", lambda t: t.data.irrelevant), PLAIN,
                followed(neuron_irrelevant=lambda t: 0.08)),
    ],
)  # fmt: skip
