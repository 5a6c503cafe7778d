"""Level sets: where a continuous quantity (a test loss) passes a level in a two-axis sweep, the law of that line, and peaks."""

import numpy as np
import xarray as xr

from lemmata.measure.columns import logarithm
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.exponent import PowerLaw, power_law, spanned
from lemmata.measure.simple import mean


@answering(PowerLaw.absent)
def level_set(
    values: xr.DataArray, level: float, threshold: str, over: str, paired: bool = False
) -> PowerLaw:
    """Return the law of the value of the axis `threshold` at which `values` pass `level`, as a power of the axis `over`.

    Each seed has its own crossing in each row (`crossings`), so that the seeds carry the interval. A row in which a seed
    does not cross inside the grid counts as a bound.
    """
    where, side = crossings(values, level, threshold)
    return power_law(where, over, side, paired)


def crossings(values: xr.DataArray, level: float, along: str) -> tuple[xr.DataArray, xr.DataArray]:
    """Return where a quantity passes `level` along an axis, in each row of the others, and whether that is only a bound:
    1 where the crossing lies above the grid, -1 where it lies below, 0 where it was seen.

    Noise is taken out by monotone regression (rising or falling, as the mean over all rows goes); the place is
    interpolated in the logarithm of the axis.
    """
    needs(along in values.coords, f"the results have no axis '{along}'.")
    (dim,) = values.coords[along].dims
    place = logarithm(np.asarray(values.coords[along].values, float), along)
    needs(len(place) > 1, f"a level set needs at least two values of '{along}', and there is one.")
    order = np.argsort(place)
    rows = np.moveaxis(np.asarray(values.values, float), values.dims.index(dim), -1)[..., order]
    known = np.isfinite(rows)
    needs(known.any(), "no run has a value to measure (all records are missing or not finite).")
    centred = place[order] - place.mean()
    sign = np.sign(np.nansum(np.where(known, (rows - np.nanmean(rows)) * centred, 0.0))) or 1.0
    found = np.array(
        [_crossing(place[order], sign * row, sign * level) for row in rows.reshape(-1, len(place))]
    )
    where, side = np.exp(found[:, 0]), found[:, 1].astype(int)
    kept = [d for d in values.dims if d != dim]
    coords = {name: c for name, c in values.coords.items() if dim not in c.dims}
    shape = rows.shape[:-1]
    return xr.DataArray(where.reshape(shape), coords, kept), xr.DataArray(side.reshape(shape), coords, kept)


def _crossing(place: np.ndarray, rising: np.ndarray, level: float) -> tuple[float, int]:
    known = np.isfinite(rising)
    if known.sum() < 2:
        return np.nan, 0
    x, y = place[known], _monotone(rising[known])
    i = int(np.searchsorted(y, level))
    if i == 0:
        return x[0], -1
    if i == len(y):
        return x[-1], 1
    return float(x[i - 1] + (level - y[i - 1]) / (y[i] - y[i - 1]) * (x[i] - x[i - 1])), 0


def _monotone(y: np.ndarray) -> np.ndarray:
    """Return the closest rising sequence in least squares (pool adjacent violators)."""
    heights: list[float] = []
    sizes: list[int] = []
    for value in y:
        height, size = float(value), 1
        while heights and heights[-1] > height:
            before, many = heights.pop(), sizes.pop()
            height, size = (height * size + before * many) / (size + many), size + many
        heights.append(height)
        sizes.append(size)
    return np.repeat(heights, sizes)


@answering(Estimate.absent)
def peak(values: xr.DataArray, along: str, level: float = 0.95) -> Estimate:
    """Return the place along an axis at which a quantity is largest: that of each seed, averaged over the seeds.

    A place is known to the grid at best. So the interval reaches at least to the neighbouring grid points, even where all seeds
    agree. Where a seed has its largest value on the end of the grid, that end of the interval is infinite.
    """
    needs(along in values.coords, f"the results have no axis '{along}'.")
    (dim,) = values.coords[along].dims
    rows = values.mean([d for d in values.dims if d not in ("seed", dim)]).sortby(along)
    place = np.asarray(rows.coords[along].values, float)
    needs(len(place) > 2, f"a largest value inside the grid needs three values of '{along}'.")
    rows = rows.dropna("seed", how="any") if "seed" in rows.dims else rows.expand_dims("seed")
    needs(rows.sizes["seed"] > 0, f"no seed ran every value of '{along}'.")
    best = np.asarray(rows.argmax(dim).values)
    value = float(place[best].mean())
    around = np.concatenate([[-np.inf], place, [np.inf]])
    low, high = float(around[best].min()), float(around[best + 2].max())
    found = mean(place[best], level)
    if found.exists:
        low, high = min(low, found.low), max(high, found.high)
    return Estimate(value, low, high, len(best), level, seen=spanned(along, place))
