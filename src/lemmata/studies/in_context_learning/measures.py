"""Results to numbers with intervals."""

from typing import Any

import numpy as np
import xarray as xr

from lemmata.measure.boundary import boundary
from lemmata.measure.columns import below
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.measure.times import first_value, last_value, time_exponent
from lemmata.measure.trend import arms, ordering, smallest
from lemmata.results import over_cells, trial_at
from lemmata.studies.in_context_learning import theory

REACHED = 0.05  # hinge loss on unseen tasks from which a training counts as done


# Regions ---------------------------------------------------------------------------------------------------------------


def one_shift(results: xr.Dataset) -> xr.DataArray:
    """The smallest cyclic set of tasks, U = 1."""
    return results["task_shifts"] == 1


def four_shifts(results: xr.Dataset) -> xr.DataArray:
    """Training tasks with U = 4."""
    return results["task_shifts"] == 4


def layer(results: xr.Dataset) -> xr.DataArray:
    return results["model"] == "one layer"


def gpt2(results: xr.Dataset) -> xr.DataArray:
    return results["model"] == "GPT-2 style"


def enough_tasks(results: xr.Dataset) -> xr.DataArray:
    """At least M_1 training tasks."""
    return results["tasks_per_pattern"] >= 1


def half_the_tasks(results: xr.Dataset) -> xr.DataArray:
    """At most M_1/2 training tasks."""
    return results["tasks_per_pattern"] <= 0.5


# Attention (figure 6.2) ------------------------------------------------------------------------------------------------


def mass(results: xr.Dataset, kind: str = "") -> xr.DataArray:
    """Attention on contexts of the query's pattern at the end, in domain or for a kind of out-of-domain patterns."""
    found = results["ood_mass"].sel(kind=kind) if kind else results["mass"]
    return found.isel(fraction=0, length=-1)


def mass_missing(results: xr.Dataset, kind: str = "") -> xr.DataArray:
    """Attention elsewhere, over what (E.71) allows: (2 - alpha')/(alpha' M_1)."""
    allowed = over_cells(results, lambda t: 1 - theory.trained_mass(t.test.fractions[0], t.data.relevant))
    return (1 - mass(results, kind)) / allowed


def hinge_at_end(results: xr.Dataset, kind: str = "") -> xr.DataArray:
    """The hinge loss at the first fraction and the longest prompt."""
    found = results["ood_hinge"].sel(kind=kind) if kind else results["hinge"]
    return found.isel(fraction=0, length=-1)


def own_growth(results: xr.Dataset, norm: str) -> xr.DataArray:
    """A projection at the end over the one at the start, out of domain (partners)."""
    curve = results["now_ood_norms_curve"].sel(kind="partners", norm=norm)
    return last_value(curve) / first_value(curve)


def own_ratio(results: xr.Dataset, matrix: str, kind: str) -> Estimate:
    """The part of W p along its own pattern over its length, at the end."""
    curves = results["now_ood_norms_curve"].sel(kind=kind)
    return mean(
        last_value(curves.sel(norm=f"{matrix} along its pattern")) / last_value(curves.sel(norm=matrix))
    )


def own_size(results: xr.Dataset, matrix: str) -> xr.DataArray:
    """The smallest own component mu_j^T W mu_j over sqrt(log M_1)."""
    norm = over_cells(results, lambda t: t.data.pattern_norm**2 / theory.main_projection(t.data.relevant))
    return results[f"{matrix}_worst"].sel(direction="own") * norm


def stray(results: xr.Dataset, matrix: str, direction: str) -> xr.DataArray:
    """The largest component along other patterns over the smallest own one, in units of what (E.81) and (E.82) allow."""
    return _share(results[f"{matrix}_worst"], direction) / _allowed_share(results, direction)


def _share(worst: xr.DataArray, direction: str) -> xr.DataArray:
    """The largest component over the smallest own one; beyond every bound where that is not positive."""
    return worst.sel(direction=direction) / worst.sel(direction="own").clip(min=1e-12)


def _allowed_share(results: xr.Dataset, direction: str) -> xr.DataArray:
    def allowed(trial) -> float:
        if direction == "irrelevant":
            return theory.irrelevant_share(trial.data.irrelevant)
        return theory.other_share(trial.data.relevant)

    return over_cells(results, allowed)


def partner_balance(results: xr.Dataset) -> Estimate:
    """What keys gained along a partner over what they gained along their own pattern: -1/(number of partners) by the conserved
    sum, in units of that."""
    parts = results["key_parts"]
    start = over_cells(results, lambda t: t.diagonal)
    gained = parts.sel(direction="partner") / (parts.sel(direction="own") - start)
    return mean(
        gained / over_cells(results, lambda t: theory.partner_share(t.data.relevant, t.data.task_shifts))
    )


def key_drift(results: xr.Dataset) -> xr.DataArray:
    return results["key_drift"]


# Neurons (figure 6.2 C, D) ---------------------------------------------------------------------------------------------


def large(results: xr.Dataset) -> xr.DataArray:
    """The neurons above the largest relative gap of the lengths of their rows of W_O W_V, at the end."""
    feature, label = (last_value(results[f"{part}_size_curve"]) for part in ("feature", "label"))
    length = ((feature**2 + label**2) ** 0.5).transpose(..., "neuron")

    def above(row: np.ndarray) -> np.ndarray:
        if not np.isfinite(row).all():
            return np.zeros(len(row), bool)
        order = np.argsort(row)
        chosen = np.ones(len(row), bool)
        chosen[order[: theory.largest_gap(row)]] = False
        return chosen

    return length.copy(data=np.apply_along_axis(above, -1, length.values))


def feature_cosine(results: xr.Dataset) -> xr.DataArray:
    """The cosine of every large neuron's feature part with the mean pattern."""
    return last_value(results["feature_cosine_curve"]).where(large(results))


def label_cosine(results: xr.Dataset) -> xr.DataArray:
    """The cosine of every large neuron's label part with sign(a_i) q."""
    return (last_value(results["label_cosine_curve"]) * results["sign"]).where(large(results))


def middle_cosine(results: xr.Dataset, part: str) -> xr.DataArray:
    """The median over large neurons."""
    found = feature_cosine(results) if part == "feature" else label_cosine(results)
    return found.median("neuron")


def lowest_cosine(results: xr.Dataset, part: str) -> xr.DataArray:
    """The smallest over large neurons."""
    found = feature_cosine(results) if part == "feature" else label_cosine(results)
    return found.min("neuron")


def small_longest(results: xr.Dataset) -> xr.DataArray:
    """The longest of the small neurons, over 1/sqrt(M_2)."""
    scale = over_cells(results, lambda t: theory.small_size(t.data.irrelevant))
    return _at_gap(results, 0) / scale


def large_shortest(results: xr.Dataset) -> xr.DataArray:
    """The shortest of the large neurons, over 1/beta."""
    return _at_gap(results, 1) / over_cells(results, lambda t: theory.large_size(t.data.pattern_norm))


def _at_gap(results: xr.Dataset, which: int) -> xr.DataArray:
    sizes = results["sizes"].transpose(..., "neuron")

    def at(row: np.ndarray) -> float:
        return float(np.sort(row)[theory.largest_gap(row) - 1 + which]) if np.isfinite(row).all() else np.nan

    return sizes.isel(neuron=0, drop=True).copy(data=np.apply_along_axis(at, -1, sizes.values))


def small_share(results: xr.Dataset) -> xr.DataArray:
    """The share of neurons below the largest gap."""
    sizes = results["sizes"].transpose(..., "neuron")

    def at(row: np.ndarray) -> float:
        return theory.largest_gap(row) / len(row) if np.isfinite(row).all() else np.nan

    return sizes.isel(neuron=0, drop=True).copy(data=np.apply_along_axis(at, -1, sizes.values))


def mean_small_share(results: xr.Dataset) -> Estimate:
    return mean(small_share(results))


def idle_lucky(results: xr.Dataset) -> xr.DataArray:
    """The share of (lucky neuron, prompt of its label) pairs that are not active at the end."""
    return results["lucky_idle"]


def idle_on_own(results: xr.Dataset) -> xr.DataArray:
    """The same for prompts that the neuron is lucky for."""
    return results["lucky_own_idle"]


# Lemmas E.4.5 to E.4.7 along a run -------------------------------------------------------------------------------------


def learning(results: xr.Dataset) -> xr.DataArray:
    """Logged steps t_0 >= 1 before the hinge loss on unseen tasks first passes `REACHED`."""
    low = (results["now_hinge_curve"] <= REACHED).transpose(..., "step")
    before = low.copy(data=~np.logical_or.accumulate(low.values, -1)) & results["now_hinge_curve"].notnull()
    return before & (results["step"] > 0)


def update_over_bound(results: xr.Dataset, matrix: str) -> xr.DataArray:
    """How far W_Q or W_K has moved along a pattern, (mu_j; 0) dW (mu_j; 0), over what (E.6) and (E.10) say it has at least:
    `eta/M_1 sum_b zeta_b delta gamma_b beta^4`. Smallest pattern, smallest step; the sum over logged steps is by trapezoids."""
    own = results[f"{matrix}_update_curve"].sel(direction="own")
    product = (results["zeta_curve"] * results["gamma_curve"]).transpose(..., "step")
    steps = np.asarray(results["step"].values, float)
    pieces = np.diff(steps) * (product.values[..., 1:] + product.values[..., :-1]) / 2
    total = np.concatenate([np.zeros((*pieces.shape[:-1], 1)), np.cumsum(pieces, -1)], -1)
    square = over_cells(results, lambda t: t.data.pattern_norm**2)
    said = over_cells(results, lambda t: theory.update_growth(theory.setting(t)))
    return (own * square / (product.copy(data=total) * said)).where(learning(results)).min("step")


def update_share(results: xr.Dataset, matrix: str, direction: str) -> xr.DataArray:
    """The largest update along other patterns over the smallest along the pattern itself, in units of what (E.8), (E.9) allow,
    at the worst step; along partners, in units of 1/M_1 at the last step before the task is learnt, where (E.7) has come to
    M_1^-Theta(1)."""
    found = _share(results[f"{matrix}_update_curve"], direction) / _allowed_share(results, direction)
    found = found.where(learning(results))
    return last_value(found) if direction == "partner" else found.max("step")


def value_lucky(results: xr.Dataset) -> xr.DataArray:
    """a V_i of lucky neurons over beta^2 (1 - gamma_t): smallest neuron and token, smallest step (E.15), (E.18)."""
    square = over_cells(results, lambda t: t.data.pattern_norm**2)
    found = results["value_lucky_curve"] / (square * (1 - results["gamma_curve"]).clip(min=1e-6))
    return found.where(learning(results)).min("step")


def value_opposite(results: xr.Dataset) -> xr.DataArray:
    """The mean V_i of neurons that are lucky for the other label over that of those for this label, times beta^2 + 1, at the
    worst token and step (E.16), (E.19)."""
    scale = over_cells(results, lambda t: t.data.pattern_norm**2 + 1)
    return (results["value_opposite_curve"] * scale).where(learning(results)).max("step")


def value_rest(results: xr.Dataset) -> xr.DataArray:
    """a |V_i| of prompts that the neuron is not lucky for, over sqrt(log B/B): largest neuron, token, step (E.17), (E.20)."""
    scale = over_cells(results, lambda t: theory.batch_noise(t.descent.batch))
    return (results["value_rest_curve"] / scale).where(learning(results)).max("step")


def value_irrelevant(results: xr.Dataset) -> xr.DataArray:
    """|V'_i| over |V_i|, times M_2, at the worst neuron, pattern and step (E.22)."""
    scale = over_cells(results, lambda t: t.data.irrelevant)
    return (results["value_irrelevant_curve"] * scale).where(learning(results)).max("step")


def neuron_growth(results: xr.Dataset) -> xr.DataArray:
    """What a lucky neuron's row of W_O has gained along (mu_a; +-q) over what (E.24), (E.26) say: smallest neuron, pattern,
    step."""
    said = over_cells(results, lambda t: theory.neuron_growth(theory.setting(t))) * results["step"]
    return (results["neuron_growth_curve"] / said.clip(min=1e-12)).where(learning(results)).min("step")


def neuron_norm(results: xr.Dataset) -> xr.DataArray:
    """The length of a lucky neuron's row of W_O over what (E.27) says: shortest neuron, smallest step."""
    said = over_cells(results, lambda t: theory.neuron_norm(theory.setting(t))) * results["step"]
    return (results["neuron_norm_curve"] / said.clip(min=1e-12)).where(learning(results)).min("step")


def neuron_irrelevant(results: xr.Dataset) -> xr.DataArray:
    """What it has gained along (nu_c; 0) over what it has along (mu_a; +-q), times M_2: worst neuron, patterns, step (E.28)."""
    scale = over_cells(results, lambda t: t.data.irrelevant)
    return (results["neuron_irrelevant_curve"] * scale).where(learning(results)).max("step")


# Times (figures E.1) ---------------------------------------------------------------------------------------------------


def steps_needed(results: xr.Dataset) -> xr.DataArray:
    """The step at which the hinge loss on unseen tasks first passes `REACHED`, between logged steps in proportion."""
    curve = results["now_hinge_curve"].transpose(..., "step")
    steps = np.asarray(curve["step"].values, float)

    def at(row: np.ndarray) -> float:
        hits = np.flatnonzero(row <= REACHED)
        if not len(hits):
            return np.nan
        i = int(hits[0])
        if i == 0:
            return steps[0]
        share = (row[i - 1] - REACHED) / (row[i - 1] - row[i])
        return float(steps[i - 1] + share * (steps[i] - steps[i - 1]))

    values = np.apply_along_axis(at, -1, np.asarray(curve.values, float))
    return curve.isel(step=0, drop=True).copy(data=values)


def steps_exponent(results: xr.Dataset, over: str) -> Estimate:
    """The exponent of the steps needed; runs that never get there count as bounds."""
    steps = steps_needed(results)
    never = steps.isnull() & results["status"].notnull()
    cap = float(results["step"].max())
    return exponent(steps.where(~never, cap), over, censored=never)


def steps_over_patterns(results: xr.Dataset) -> Estimate:
    """The exponent in M_1 of the steps needed over M_1 sqrt(log M_1); runs that never get there count as bounds."""
    steps = steps_needed(results)
    never = steps.isnull() & results["status"].notnull()
    said = over_cells(results, lambda t: theory.iterations(1.0, t.data.relevant, 1.0, 1.0))
    return exponent(steps.where(~never, float(results["step"].max())) / said, "patterns", censored=never)


def length_exponent(results: xr.Dataset) -> Estimate:
    """The exponent in alpha of the training prompt length from which unseen tasks are learnt."""
    return boundary(
        below(results["hinge"].isel(fraction=0, length=-1), REACHED), "examples", "relevant_fraction"
    ).exponent


# Errors ----------------------------------------------------------------------------------------------------------------


def at_end(results: xr.Dataset, variable: str) -> xr.DataArray:
    """A test in domain at the first fraction and the longest prompt, run by run."""
    return results[variable].isel(fraction=0, length=-1)


def mean_at_end(results: xr.Dataset, variable: str) -> Estimate:
    return mean(at_end(results, variable))


def beyond_one(results: xr.Dataset, variable: str, kind: str) -> xr.DataArray:
    """The largest value at S_1 >= 1."""
    found = results[variable].sel(kind=kind)
    return found.where(found["sum"] >= 1).max("sum")


def excess_beyond_one(results: xr.Dataset, kind: str) -> xr.DataArray:
    """The largest hinge loss at S_1 >= 1, over that in domain."""
    return beyond_one(results, "sum_hinge", kind) - hinge_at_end(results)


def fall_with_sum(results: xr.Dataset, variable: str, kind: str, low: float, high: float) -> Estimate:
    """The value at one S_1 minus that at a larger one."""
    found = results[variable].sel(kind=kind)
    return mean(found.sel(sum=low, method="nearest") - found.sel(sum=high, method="nearest"))


def below_over_above(results: xr.Dataset, kind: str) -> Estimate:
    """The mean error at S_1 <= 0.3 minus five times the largest one at S_1 >= 1."""
    found = results["sum_error"].sel(kind=kind)
    low = found.where(found["sum"] <= 0.3).mean("sum")
    return mean(low - 5 * found.where(found["sum"] >= 1).max("sum"))


def effective_gap(results: xr.Dataset) -> xr.DataArray:
    """How far F on clean tokens is from the effective output of two groups of equal neurons, at the worst S_1."""
    found = xr.full_like(results["clean_output"], np.nan)
    stacked = results[["clean_output", "feature_response", "label_response", "sign", "sizes"]]
    dims = [d for d in stacked["clean_output"].dims if d not in ("sum", "given")]
    sums = np.asarray(results["sum"].values, float)
    for index in np.ndindex(*(results.sizes[d] for d in dims)):
        place = dict(zip(dims, index, strict=True))
        one = stacked.isel(place)
        feature, label = (np.asarray(one[n].values, float) for n in ("feature_response", "label_response"))
        if not np.isfinite(feature).all():
            continue
        weight = np.hypot(feature, label)
        order = np.argsort(weight)
        keep = np.ones(len(weight), bool)
        keep[order[: theory.largest_gap(np.asarray(one["sizes"].values, float))]] = False
        groups = theory.answers(np.asarray(one["sign"].values), feature, label, keep)
        said = np.stack([theory.effective_output(groups, sums, y) for y in (1, -1)], -1)
        found[place] = np.abs(np.asarray(one["clean_output"].transpose("sum", "given").values) - said)
    return found.max(("sum", "given"))


# Lengths (figures 6.3 B, 6.4) ------------------------------------------------------------------------------------------


def vote_law(results: xr.Dataset) -> xr.DataArray:
    """The law of the vote at every fraction and length."""
    values = [
        [theory.vote_error(float(f), int(n)) for n in results["length"].values]
        for f in results["fraction"].values
    ]
    return xr.DataArray(values, {d: results[d] for d in ("fraction", "length")}, ("fraction", "length"))


def vote_gap(results: xr.Dataset) -> xr.DataArray:
    """How far the error in domain is from the law of the vote, at the worst fraction and length."""
    return abs(results["error"] - vote_law(results)).max(("fraction", "length"))


def errors_of(results: xr.Dataset, variable: str, kind: str) -> xr.DataArray:
    return results[variable].sel(kind=kind) if kind else results[variable]


def length_needed(results: xr.Dataset, variable: str, kind: str = "", level: float = 0.05) -> xr.DataArray:
    """The first tested length from which on the error stays at most `level`; infinite where it never does."""
    low = (errors_of(results, variable, kind) <= level).transpose(..., "length")
    stays = np.flip(np.logical_and.accumulate(np.flip(low.values, -1), -1), -1)
    lengths = xr.DataArray(
        np.asarray(results["length"].values, float), {"length": results["length"]}, ("length",)
    )
    found = lengths.where(low.copy(data=stays)).min("length").fillna(np.inf)
    return found.where(errors_of(results, variable, kind).notnull().all("length"))


def asked_length_exponent(results: xr.Dataset, variable: str, kind: str = "") -> Estimate:
    """The exponent in alpha' of the test prompt length at which the error passes 5 %."""
    return boundary(below(errors_of(results, variable, kind), 0.05), "length", "fraction").exponent


def length_order(results: xr.Dataset, variable: str, kind: str = "", length: int = 5) -> Estimate:
    """The smallest rise of the error from one alpha' to the next smaller one, at one length."""
    values = errors_of(results, variable, kind).sel(length=length).sortby("fraction", ascending=False)
    return ordering(arms(values, "fraction"))


def icl_lead(
    results: xr.Dataset, variable: str, fraction: float, kind: str = "", level: float = 0.05
) -> Estimate:
    """The ratio of the length that the best classic learner needs to the one that the layer needs, as logarithm; a learner that
    never gets there counts with twice the longest length."""
    needed = length_needed(results.sel(fraction=fraction), variable, kind, level)
    needed = xr.ufuncs.log(
        needed.where(np.isfinite(needed) | needed.isnull(), 2 * float(results["length"].max()))
    )
    own = needed.sel(learner="in context")
    others = [needed.sel(learner=m) - own for m in needed["learner"].values if m != "in context"]
    return smallest(others)


# Pruning (figure 6.5) --------------------------------------------------------------------------------------------------


def pruned_small(results: xr.Dataset) -> xr.DataArray:
    """What pruning the small neurons adds to the hinge loss: the largest change up to their share."""
    found = results["pruned_hinge"].sel(order="smallest first").isel(fraction=0)
    inside = found["rate"] <= small_share(results) + 1e-6
    return abs(found - found.sel(rate=0)).where(inside).max("rate")


def random_over_small(results: xr.Dataset) -> xr.DataArray:
    """The smallest excess of random pruning over pruning from below, over all rates above 0."""
    found = results["pruned_hinge"].isel(fraction=0)
    gap = found.sel(order="random") - found.sel(order="smallest first")
    return gap.where(gap["rate"] > 0).min("rate")


def large_slope(results: xr.Dataset) -> Estimate:
    """The slope of the hinge loss in R when a share R of all neurons goes, largest first, up to R = 0.5."""
    found = results["pruned_hinge"].sel(order="largest first").isel(fraction=0)
    part = found.where(found["rate"] <= 0.5, drop=True)
    x = part["rate"] - part["rate"].mean()
    return mean((part * x).sum("rate") / (x**2).sum("rate"))


def large_bound(results: xr.Dataset, fraction: float) -> xr.DataArray:
    """The hinge loss less what (E.109) says it is at least, largest first, at the worst rate from 0.1 to 0.5."""
    found = results["pruned_hinge"].sel(order="largest first", fraction=fraction)
    one: Any = trial_at(results)
    d = one.data
    bound = [
        theory.pruned_large(float(r), d.relevant, d.relevant_fraction, fraction) for r in found["rate"].values
    ]
    gap = found - xr.DataArray(bound, {"rate": found["rate"]}, ("rate",))
    return gap.where((gap["rate"] >= 0.1) & (gap["rate"] <= 0.5)).min("rate")


def pruned_order(results: xr.Dataset, rate: float) -> Estimate:
    """The smallest rise of the pruned model's hinge loss from one alpha' to the next smaller one."""
    values = results["pruned_hinge"].sel(order="smallest first").sel(rate=rate, method="nearest")
    return ordering(arms(values.sortby("fraction", ascending=False), "fraction"))


def head_mass(results: xr.Dataset) -> xr.DataArray:
    """The attention of the head that looks at the query's pattern least."""
    return results["head_mass"].min("head")


# Output growth, agreement ----------------------------------------------------------------------------------------------


def margin_exponent(results: xr.Dataset) -> Estimate:
    """The log-log slope in time of the margin 1 - hinge, from 2 % to 80 %."""
    margin = 1 - results["now_hinge_curve"]
    needs(bool((margin > 0.8).any()), "the margin never grows.")
    return time_exponent(margin.where(margin > 0), (margin > 0.02) & (margin < 0.8))


def disagreement(results: xr.Dataset) -> xr.DataArray:
    """The largest difference of the two simulators along the hinge loss, and in the lengths of neurons."""
    curves = results["now_hinge_curve"]
    along = abs(curves.sel(simulator="tokens") - curves.sel(simulator="patterns")).max("step")
    sizes = abs(results["sizes"].sel(simulator="tokens") - results["sizes"].sel(simulator="patterns")).max(
        "neuron"
    )
    return xr.ufuncs.maximum(along, sizes).expand_dims(simulator=results["simulator"])
