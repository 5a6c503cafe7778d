"""Claims of the figure `neurons` about Lemma 2: keys, queries, values and the output, pattern by pattern."""

from math import inf

import numpy as np
import xarray as xr

from lemmata.figure import Holds, Made, about, at_least, at_most, made, positive, proof
from lemmata.measure.simple import mean
from lemmata.measure.times import last_value, time_exponent
from lemmata.measure.trend import difference
from lemmata.results import trial_at
from lemmata.studies.shallow_vit.figures.common import ramp, setting
from lemmata.studies.shallow_vit.figures.lucky import TAKEN_AS_ONE, ends, per_token

# What is measured ------------------------------------------------------------------------------------------------------


def keys_over_queries(r: xr.Dataset):
    """The logarithm of the growth of discriminative keys over that of queries, beyond 1 - lambda (168)."""
    keys, queries = (
        xr.ufuncs.log(end / start).isel(pattern=slice(0, 2)).mean("pattern")
        for start, end in map(ends, (r.key_norm_curve, r.query_norm_curve))
    )
    noise = setting(r).token_noise
    return mean(keys / queries - (1 - (2 * noise + noise**2)))


def query_leak(r: xr.Dataset):
    """What the query of pattern 1 gains along the key of another pattern, over what it gains along its own, as a share of
    |S_j|/(|S| - |S_1|), the largest over patterns: at most 1 by (147, 148)."""
    gained = abs(last_value(r.query_gain_curve).isel(asking=0))
    data = trial_at(r).data
    rest = [data.rest / (data.patterns - 2)] * (data.patterns - 2)
    share = xr.DataArray([data.confusion_fraction, *rest], dims="pattern") / (1 - data.relevant_fraction)
    return mean((gained.isel(pattern=slice(1, None)) / gained.isel(pattern=0) / share).max("pattern"))


def queries_turn(r: xr.Dataset):
    """What queries of the other patterns gain along the keys of the discriminative ones, the smallest (164)."""
    gained = last_value(r.query_gain_curve).isel(asking=slice(2, None), pattern=slice(0, 2))
    return mean(gained.min(["asking", "pattern"]))


def change_elsewhere(norm: xr.DataArray):
    """The largest relative change of a norm over the patterns that do not discriminate."""
    start, end = (one.isel(pattern=slice(2, None)) for one in ends(norm))
    return mean(abs(end / start - 1).max("pattern"))


def value_growth(r: xr.Dataset):
    """Growth of the shorter discriminative value beyond that of the longest other one."""
    start, end = ends(r.value_norm_curve)
    grown = end / start
    return difference(
        grown.isel(pattern=slice(0, 2)).min("pattern"), grown.isel(pattern=slice(2, None)).max("pattern")
    )


def output_exponent(r: xr.Dataset):
    """The exponent in time of the mean margin where it lies between 0.02 and 0.5."""
    margin = r.margin_curve
    return time_exponent(margin.where(margin > 0), (margin > 0.02) & (margin < 0.5))


# What it can refute ----------------------------------------------------------------------------------------------------


def grown(own: float, other: float):
    """Lengths that grow from 1 to `own` for the two discriminative patterns, and to `other` for the rest."""
    return lambda t, step, pattern: 1 + ramp(step) * (np.where(pattern <= 2, own, other) - 1)


def gains(own: float, other: float) -> Made:
    """Queries that gain `own` along the key of their pattern, and `other` along the others."""
    return made(
        query_gain_curve=lambda t, step, asking, pattern: ramp(step) * np.where(asking == pattern, own, other)
    )


FIFTH = "a fifth of the norm, where discriminative keys grow by more than half"

KEYS_VALUES = (
    per_token(
        "keys-aligned", "Keys of discriminative patterns keep their direction",
        proof("Lemma 2, (47)"), lambda r: mean(last_value(r.key_cosine_curve).isel(pattern=slice(0, 2)).min("pattern")),
        at_least(0.9, because="keys grow along their start; a cosine of 0.9 is an angle of 26 degrees"),
        made(key_cosine_curve=lambda t, step, pattern: 0.7), made(key_cosine_curve=lambda t, step, pattern: 0.95),
    ),
    per_token(
        "keys-elsewhere", "Keys of the other patterns keep their length", proof("(174)"),
        lambda r: change_elsewhere(r.key_norm_curve), at_most(0.2, because=FIFTH),
        made(key_norm_curve=grown(1.0, 1.4)), made(key_norm_curve=grown(1.0, 1.1)),
    ),
    per_token(
        "keys-follow", "Keys grow at least 1 - lambda times as fast as queries", proof("(168)"), keys_over_queries,
        at_least(0.0, because="Q >= K (1 - lambda) as printed, in the logarithm of the lengths: what is above it"),
        made(key_norm_curve=grown(1.5, 1.0), query_norm_curve=grown(2.0, 1.0)),
        made(key_norm_curve=grown(2.0, 1.0), query_norm_curve=grown(1.8, 1.0)),
    ),
    per_token(
        "query-leak",
        "What the query of pattern 1 gains along another pattern j is at most |S_j|/(|S| - |S_1|) of what it gains along its "
        "own",
        proof("(147), (148)"), query_leak, at_most(1.0, because=TAKEN_AS_ONE), gains(1.0, 0.2), gains(1.0, 0.06),
    ),
    per_token(
        "queries-turn", "Queries of the other patterns turn towards the discriminative keys", proof("(164)"), queries_turn,
        positive(because="the smallest gain over patterns; a direction, so any positive gain counts"), gains(1.0, -0.5),
        gains(1.0, 0.5),
    ),
    per_token(
        "values-grow", "Values of discriminative patterns grow, and the others keep their length",
        proof("Lemma 2, (49), (50)"), value_growth,
        Holds("order", 0.2, inf, "the discriminative values must outgrow the others by a fifth"),
        made(value_norm_curve=grown(1.18, 1.1)), made(value_norm_curve=grown(1.6, 1.1)),
    ),
    per_token(
        "values-elsewhere", "Values of the other patterns keep their length",
        proof("Lemma 2, (51)"), lambda r: change_elsewhere(r.value_norm_curve),
        at_most(0.2, because="a fifth of the norm, where discriminative values grow several times"),
        made(value_norm_curve=grown(1.0, 1.4)), made(value_norm_curve=grown(1.0, 1.1)),
    ),
    per_token(
        "values-aligned", "Values of discriminative patterns grow along the sum of their lucky neurons",
        proof("Lemma 2, (49)"), lambda r: mean(last_value(r.value_growth_cosine_curve).min("lucky")),
        at_least(0.9, because="a cosine of 0.9 is an angle of 26 degrees"),
        made(value_growth_cosine_curve=lambda t, step, lucky: 0.7), made(value_growth_cosine_curve=lambda t, step, lucky: 0.95),
    ),
    per_token(
        "output-growth",
        "The output grows as a sum of a second and a fifth power of the time, not linearly as the proof sketch says",
        proof("(63)"), output_exponent,
        about(2.0, 1.75, 5.0, rivals={"proof sketch": 1.0}, because="a quarter below the second power keeps it apart from "
                                                                    "linear growth; while the mean margin goes from 0.02 to "
                                                                    "0.5"),
        made(margin_curve=lambda t, step: 0.005 * step), made(margin_curve=lambda t, step: 2e-4 * step**2.0),
        uses=(),
    ),
)  # fmt: skip
