"""Results to numbers with intervals; regions of cells."""

import numpy as np
import xarray as xr

from lemmata.measure.boundary import boundary
from lemmata.measure.columns import below
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.measure.times import at_step, first_value, last_value, settling_time, time_exponent
from lemmata.measure.trend import arms, difference, lead, ordering, ratio
from lemmata.results import over_cells
from lemmata.studies.graph_transformer import theory

SUCCESS = 1e-3
SMALL = 0.05
"""The test hinge loss from which on a run counts as trained, where steps are counted."""


# Labels ----------------------------------------------------------------------------------------------------------------


def success(results: xr.Dataset) -> xr.DataArray:
    """Runs whose test hinge loss is below 0.001."""
    return below(results["test_hinge"], SUCCESS)


def labels_exponent(results: xr.Dataset) -> Estimate:
    """The exponent of the labels needed in gamma_d."""
    return boundary(success(results), "labelled", "discriminative").exponent


def labels_exponent_in_agreement(results: xr.Dataset) -> Estimate:
    """The exponent of the labels needed in 1 - eps_S."""
    rate = success(results)
    return boundary(rate.assign_coords(agreement=1 - rate["confusion"]), "labelled", "agreement").exponent


def labels_exponent_of(results: xr.Dataset, learner: str) -> Estimate:
    return labels_exponent(results.sel(learner=learner))


def labels_exponent_apart(results: xr.Dataset) -> Estimate:
    """How much steeper the convolution's exponent is than the transformer's, on the same sets."""
    of = {name: labels_exponent_of(results, name) for name in ("convolution, core", "transformer, core")}
    for one in of.values():
        needs(one.exists, one.note)
    return of["convolution, core"].minus(of["transformer, core"])


def success_lead(results: xr.Dataset) -> Estimate:
    """Share of runs in which the transformer succeeds less that of the convolution, at the smallest share of discriminative
    nodes."""
    rate = success(results).sortby("discriminative").isel(discriminative=0)
    return difference(rate.sel(learner="transformer, core"), rate.sel(learner="convolution, core"))


# Steps -----------------------------------------------------------------------------------------------------------------


def steps_needed(results: xr.Dataset) -> xr.DataArray:
    """Steps until the test hinge loss stays below 0.05; NaN where it never does."""
    return settling_time(results["test_hinge_curve"], SMALL, "below")


def steps_exponent(results: xr.Dataset, over: str) -> Estimate:
    """The exponent of the steps in an axis; runs that never got there count as lower bounds."""
    found = steps_needed(results)
    late = found.isnull() & results["status"].notnull()
    cap = over_cells(results, lambda trial: trial.steps)
    return exponent(found.where(~late, cap), over, late)


def steps_exponent_of(results: xr.Dataset, learner: str) -> Estimate:
    return steps_exponent(results.sel(learner=learner), "discriminative")


def steps_exponent_apart(results: xr.Dataset) -> Estimate:
    """How much steeper the convolution's steps are than the transformer's on the same sets."""
    return steps_exponent_of(results, "convolution, core").minus(
        steps_exponent_of(results, "transformer, core")
    )


def steps_ratio(results: xr.Dataset, slow: str, fast: str) -> Estimate:
    """Steps of one learner over those of another, seed by seed; a learner that never got there counts with its cap."""
    cap = over_cells(results, lambda trial: trial.steps)
    found = steps_needed(results)
    found = found.where(found.notnull() | results["status"].isnull(), cap)
    return ratio(found.sel(learner=slow), found.sel(learner=fast))


def steps_exponent_in_sharpness(results: xr.Dataset) -> Estimate:
    """The exponent of the steps in 1 - delta."""
    return steps_exponent(results.assign_coords(sharpness=1 - results["query_key_error"]), "sharpness")


# Flipped labels --------------------------------------------------------------------------------------------------------


def excess(results: xr.Dataset) -> xr.DataArray:
    """The final test loss less twice the share of flipped test labels, run by run."""
    return results["test_hinge"] - 2 * results["test_flipped"]


def mean_excess(results: xr.Dataset) -> Estimate:
    return mean(excess(results))


def slower_with_flips(results: xr.Dataset) -> Estimate:
    """The smallest rise, from one share of flipped labels to the next, of the steps to 1.2 times the final loss (plus 0.02)."""
    curves = results["test_hinge_curve"]
    level = 1.2 * last_value(curves) + 0.02
    return ordering(arms(settling_time(curves, level, "below").sortby("flipped"), "flipped"))


# Attention -------------------------------------------------------------------------------------------------------------


def even_graph(results: xr.Dataset) -> xr.DataArray:
    """Runs on the graph where discriminative nodes have neighbours of their own."""
    return results["inner"] == "sixty of its own"


def printed_margin(results: xr.Dataset) -> xr.DataArray:
    return even_graph(results) & (results["hinge_margin"] == 1)


def wide_margin(results: xr.Dataset) -> xr.DataArray:
    return even_graph(results) & (results["hinge_margin"] > 1)


def attention_at_end(results: xr.Dataset) -> xr.DataArray:
    """Attention on class-relevant nodes, the mean over the smaller of both groups, run by run."""
    return last_value(results["attention_curve"]).min("group")


def attention_gain(results: xr.Dataset) -> xr.DataArray:
    """What it gained over training, in the group that gained least."""
    curve = results["attention_curve"]
    return (last_value(curve) - first_value(curve)).min("group")


def attention_rate(results: xr.Dataset) -> Estimate:
    """The exponent in time of the attention that is not on class-relevant nodes, from a tenth of the run on."""
    off = 1 - results["attention_curve"].mean("group")
    return time_exponent(off, where=off["step"] >= 0.1 * float(off["step"].max()))


# Positions -------------------------------------------------------------------------------------------------------------


def _beyond(results: xr.Dataset, name: str) -> xr.DataArray:
    """A quantity at distances 1 to Z - 1, where somebody has such neighbours."""
    return results[name].where((results["bucket"] >= 1) & (results["largest"] > 0))


def bias_lead(results: xr.Dataset) -> xr.DataArray:
    """b at the core distance less the largest b at any other distance, run by run."""
    bias = _beyond(results, "bias")
    core = bias["bucket"] == results["core"]
    return bias.where(core).max("bucket") - bias.where(~core).max("bucket")


EARLY = 40.0
"""A step at which attention has hardly moved yet, and b is clear of the noise of single batches."""


def bias_start(results: xr.Dataset) -> xr.DataArray:
    """The cosine between b at step 40 and the average margin over the distances, both less their means, run by run."""
    bias = at_step(results["bias_curve"], EARLY).where((results["bucket"] >= 1) & (results["largest"] > 0))
    return xr.corr(bias, _beyond(results, "margin"), "bucket")


def bias_correlation(results: xr.Dataset) -> xr.DataArray:
    """Pearson's correlation of b and the average margin over the distances, run by run."""
    return xr.corr(_beyond(results, "bias"), _beyond(results, "margin"), "bucket")


# Samplers and learners -------------------------------------------------------------------------------------------------


def sampler_ratio(results: xr.Dataset) -> Estimate:
    """Steps with over-sampled class-relevant nodes over steps with plain sets, seed by seed."""
    return steps_ratio(results.rename(sampler="learner"), "relevant", "near")


def core_sampler_ratio(results: xr.Dataset) -> Estimate:
    """Steps with sets from the core neighbourhood over steps with plain sets, seed by seed."""
    return steps_ratio(results.rename(sampler="learner"), "core", "near")


def sampler_errors(results: xr.Dataset) -> Estimate:
    """Share of test nodes told wrongly with over-sampled class-relevant nodes less that with plain sets, over all labels."""
    error = results["test_error"].sel(sampler=["relevant", "near"])
    needs(float(error.max()) > 0, "no run tells a node wrongly, so that no sampler is seen to err less.")
    each = error.mean("labelled")
    return difference(each.sel(sampler="relevant"), each.sel(sampler="near"))


def sampler_success(results: xr.Dataset) -> Estimate:
    """Share of runs that succeed with over-sampled class-relevant nodes less that with plain sets, over all label counts."""
    rate = success(results).sel(sampler=["relevant", "near"]).astype(float)
    needs(0 < float(rate.mean()) < 1, "all runs end alike, so that no sampler is seen to succeed more often.")
    each = rate.mean("labelled")
    return difference(each.sel(sampler="relevant"), each.sel(sampler="near"))


def nearest_loss(results: xr.Dataset, graph: str) -> Estimate:
    """Test loss of attention at distance 1 less that of the transformer."""
    loss = results["test_hinge"].sel(graph=graph)
    return difference(loss.sel(learner="attention at distance 1"), loss.sel(learner="transformer"))


# Neurons ---------------------------------------------------------------------------------------------------------------


def lucky_ratio(results: xr.Dataset) -> xr.DataArray:
    """The largest mean component of the lucky neurons along another value feature over that along their own, at the end."""
    along = last_value(results["along_curve"]).values  # seed, sign, pattern
    own = np.stack([along[..., k, k] for k in (0, 1)], -1)
    others = np.stack([np.delete(along[..., k, :], k, -1).max(-1) for k in (0, 1)], -1)
    return results["status"].copy(data=(others / own).max(-1))


def lucky_rise(results: xr.Dataset) -> xr.DataArray:
    """The lucky neurons' component along their own feature at the end over that at the start, the smaller of both labels."""
    curve = results["along_curve"]
    first, last = first_value(curve).values, last_value(curve).values
    rise = np.stack([last[..., k, k] / first[..., k, k] for k in (0, 1)], -1)
    return results["status"].copy(data=rise.min(-1))


def unlucky_size(results: xr.Dataset) -> xr.DataArray:
    """Squared size of the other neurons inside the span of the value features over that of the lucky ones, at the end."""
    size = last_value(results["neuron_size_curve"])
    return size.isel(lucky=1) / size.isel(lucky=0)


def gates_kept(results: xr.Dataset) -> xr.DataArray:
    """The smallest share of lucky gates that are open, over training."""
    return results["gates_curve"].min(("sign", "step"))


def mean_lucky_share(results: xr.Dataset) -> Estimate:
    return mean(first_value(results["lucky_share_curve"]))


def discriminative_growth(results: xr.Dataset) -> xr.DataArray:
    """The least growth of the keys and queries of the discriminative patterns, as a factor."""
    found = [
        (last_value(results[name]) / first_value(results[name])).isel(pattern=slice(2)).min("pattern")
        for name in ("key_norm_curve", "query_norm_curve")
    ]
    return xr.ufuncs.minimum(*found)


def other_keys(results: xr.Dataset) -> xr.DataArray:
    """The largest relative change of a non-discriminative key's length."""
    curve = results["key_norm_curve"]
    return abs(last_value(curve) / first_value(curve) - 1).isel(pattern=slice(2, None)).max("pattern")


def value_cosine(results: xr.Dataset) -> xr.DataArray:
    """The cosine between the shift of a discriminative value and the sum of its lucky rows, the smaller of both."""
    return last_value(results["value_cosine_curve"]).min("sign")


def key_size(results: xr.Dataset) -> xr.DataArray:
    """The length of the discriminative keys at the end, the smaller of both, over the least that (B.45) gives (constant 1)."""
    least = over_cells(results, lambda t: theory.key_size_range(t.steps, t.network.query_key_error)[0])
    return last_value(results["key_norm_curve"]).isel(pattern=slice(2)).min("pattern") / least


def _growing(results: xr.Dataset) -> xr.DataArray:
    """Steps at which there is still something to learn, the first ten left out, where single batches decide."""
    return (results["test_hinge_curve"] > SMALL) & (results["step"] >= 10)


def lucky_growth_exponent(results: xr.Dataset) -> Estimate:
    """The exponent in time of what lucky neurons have gained along their own feature, up to a test loss of 0.05."""
    curve = results["along_curve"]
    own = sum(curve.isel(sign=k, pattern=k) for k in (0, 1)) / 2
    return time_exponent((own - first_value(own)).where(_growing(results)))  # pyright: ignore[reportArgumentType]  (NumPy's function of a DataArray gives one)


def bias_growth_exponent(results: xr.Dataset) -> Estimate:
    """The exponent in time of b at the core distance, up to a test loss of 0.05."""
    curve = results["bias_curve"]
    core = curve.where(curve["bucket"] == results["core"]).max("bucket")
    return time_exponent(core.where(_growing(results)))


# Variants (appendix B.5) -----------------------------------------------------------------------------------------------


def with_laplacian(results: xr.Dataset) -> xr.DataArray:
    return results["position"] == "laplacian"


def cluster_attention(results: xr.Dataset) -> xr.DataArray:
    """Attention on nodes of the own cluster at the end, run by run."""
    return results["inside"]


def laplacian_lead(results: xr.Dataset) -> Estimate:
    """By how much the test loss with Laplacian eigenvectors lies below the next best position's."""
    gained = -results["test_hinge"]
    rest = [name for name in results["position"].values.tolist() if name != "laplacian"]
    return lead(gained.sel(position="laplacian"), [gained.sel(position=name) for name in rest])


def with_distances(results: xr.Dataset) -> xr.DataArray:
    return results["kind"] == "transformer"


def final_loss(results: xr.Dataset) -> xr.DataArray:
    """The test loss at the end, run by run."""
    return results["test_hinge"]


def structure_lead(results: xr.Dataset) -> Estimate:
    """Test error without a bias for distances less that with it."""
    error = results["test_error"]
    return difference(error.sel(kind="no-position"), error.sel(kind="transformer"))


def told_apart(results: xr.Dataset) -> xr.DataArray:
    """The share of test nodes both of whose signs are told, run by run."""
    return 1 - results["test_error"]


def pair_lead(results: xr.Dataset) -> xr.DataArray:
    """b at the core distance of an output less its largest b at any other distance, the smaller of both outputs, run by run."""
    beyond = results["bucket"] >= 1
    bias, margin = results["bias"].where(beyond), results["margin"].where(beyond)
    core = margin == margin.max("bucket")
    return (bias.where(core).max("bucket") - bias.where(~core).max("bucket")).min("output")


# Two ways --------------------------------------------------------------------------------------------------------------


def disagreement(results: xr.Dataset) -> xr.DataArray:
    """The largest difference of b along training between the two simulators."""
    curves = results["bias_curve"]
    gap = abs(curves.sel(simulator="nodes") - curves.sel(simulator="patterns")).max(("step", "bucket"))
    return gap.expand_dims(simulator=results["simulator"])


def bias_drift(results: xr.Dataset) -> xr.DataArray:
    """How far the sum of b has moved."""
    return results["bias_drift"]
