"""The pictures."""

import xarray as xr
from matplotlib.figure import Figure

from lemmata.draw.style import canvas, caption


def steps(results: xr.Dataset, verdicts: list) -> Figure:
    """Steps over the step size, one point a run."""
    figure, axes = canvas()
    for seed in results.seed.values:
        axes.loglog(results.learning_rate, results.steps.sel(seed=seed), "o-", linewidth=0.8)
    axes.set_xlabel("step size")
    axes.set_ylabel("steps to the target loss")
    caption(figure, results, "Gradient descent on a bowl.", verdicts)
    return figure
