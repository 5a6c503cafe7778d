"""Samples and steps over random settings, and the laws that `lemmata predict` fits to them.

    python -m benchmarks.shallow_vit_constants FOLDER

prints these laws from the stored runs of the figure `settings`.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy
import xarray as xr

from lemmata.figure import Figure
from lemmata.measure.threshold import critical_sizes
from lemmata.results import over_cells, trial_at
from lemmata.scale import Scale, by_scale
from lemmata.studies.shallow_vit.figures.common import (
    OPEN,
    SHARED,
    base,
    derived,
    labels,
    moving,
    seeds,
    table,
)
from lemmata.studies.shallow_vit.theory import predictions
from lemmata.studies.shallow_vit.theory.theorem import setting
from lemmata.studies.shallow_vit.trials import ViTTraining
from lemmata.sweep import Axis, Sweep, axis


def drawn_setting(trial: ViTTraining, index: int) -> Mapping[str, Any]:
    """Setting number `index` of a sequence that fills the space of settings evenly (Halton's, of fixed order)."""
    at = scipy.stats.qmc.Halton(6, scramble=False).random(index + 2)[-1]
    low = np.array([math.log(0.15), 0.05, 0.0, 0.02, 0.05, 0.0])
    high = np.array([math.log(0.6), 0.6, 0.06, 0.4, 0.45, 3.0])
    alpha, ratio, std, sigma, delta, size = low + at * (high - low)
    relevant, tokens = round(math.exp(alpha), 3), (25, 50, 100)[int(size)]
    return {
        "data.relevant_fraction": relevant,
        "data.confusion_fraction": round(max(ratio * relevant, 1 / tokens), 3),
        "data.noise_std": round(std, 4),
        "network.value_error": round(sigma, 3),
        "network.key_query_error": round(delta, 3),
        "data.tokens": tokens,
        **(SHARED if index % 2 else {}),
    }


def sweep(scale: Scale) -> Sweep:
    count, sizes = (
        by_scale(scale, 4, 32, 64),
        by_scale(scale, (4, 8), (8, 32, 128, 512), (8, 16, 32, 64, 128, 512)),
    )
    trial = base(scale, (0.4, 0.1), steps=2000, network__initial="perturbed")  # as in constants.json
    drawn = Axis("variant", tuple(range(count)), moving(drawn_setting))
    return Sweep(trial, (drawn, axis("data.samples", sizes)), seeds(scale, 3, 8))


settings = Figure(
    "settings", "Samples and steps over random settings: what predictions are fitted to",
    "Random settings in alpha_*, alpha_#, token noise, initial errors, tokens and votes: `lemmata predict` is fitted to "
    f"them and tested on them. {OPEN}",
    sweep, table("variant", "One extension at a time"), labels=labels, derived=derived,
)  # fmt: skip


# The laws that `predict` uses ------------------------------------------------------------------------------------------


def constants(results: xr.Dataset) -> dict[str, Any]:
    """Laws for samples and steps, log-linear in `theory.predictions.features`, from runs of the figure `settings`.

    Every fourth setting is held out; `error` is the typical factor (root mean square of the logarithm) by which the
    law misses there: the mean steps of a setting, and the samples with which half of its runs succeed where the grid
    shows that."""
    of = {int(i): trial_at(results, variant=i) for i in results["variant"].values}
    rows = {i: predictions.features(setting(t), t.network.output_weights == "shared") for i, t in of.items()}
    names = list(next(iter(rows.values())))
    kept = [i for i in of if i % 4 != 3]
    held_out = [i for i in of if i % 4 == 3]

    def design(i: int) -> np.ndarray:
        return np.array([1.0, *rows[i].values()])

    time = xr.ufuncs.log(results["steps"].where(results["status"] == 1) * _rates(results))
    time = time.mean([d for d in time.dims if d != "variant"])
    timed = [i for i in kept if np.isfinite(time.sel(variant=i))]
    fit = np.linalg.lstsq(np.stack([design(i) for i in timed]), [float(time.sel(variant=i)) for i in timed])[
        0
    ]
    sizes = np.log(np.asarray(results["samples"].values, float))
    flags = [
        (np.array([*design(i), size]), float(v))
        for i in kept
        for size, row in zip(
            sizes, results["success"].sel(variant=i).transpose("samples", ...).values, strict=True
        )
        for v in row[np.isfinite(row)]
    ]
    regressors, success = np.stack([x for x, _ in flags]), np.array([v for _, v in flags])
    import statsmodels.api as sm  # not at the top: it takes as long to import as all else together

    model = sm.GLM(success, regressors, family=sm.families.Binomial()).fit_regularized(alpha=1e-3, L1_wt=0.0)
    need = -model.params[:-1] / model.params[-1]
    sizes_seen = critical_sizes(results["success"].sel(variant=held_out), "samples", "variant")
    seen = {
        "steps": {i: float(time.sel(variant=i)) for i in held_out},
        "samples": {
            i: math.log(float(sizes_seen["value"].sel(variant=i)))
            for i in held_out
            if bool(sizes_seen["inside"].sel(variant=i))
        },
    }
    span = {n: [min(r[n] for r in rows.values()), max(r[n] for r in rows.values())] for n in names}
    laws = {}
    for what, beta in (("steps", fit), ("samples", need)):
        missed = [design(i) @ beta - v for i, v in seen[what].items() if np.isfinite(v)]
        laws[what] = {
            "intercept": round(float(beta[0]), 4),
            "slope": {n: round(float(b), 4) for n, b in zip(names, beta[1:], strict=True)},
            "range": {n: [round(low, 4), round(high, 4)] for n, (low, high) in span.items()},
            "error": round(float(np.exp(np.sqrt(np.mean(np.square(missed))))), 3) if missed else None,
            "held_out": len(missed),
        }
    source = f"figure settings, {results.attrs.get('scale', '')} scale, {results.sizes['seed']} seeds, {len(of)} settings"
    return {"source": source, **laws}


def _rates(results: xr.Dataset) -> xr.DataArray:
    return over_cells(results, lambda t: t.descent.learning_rate)
