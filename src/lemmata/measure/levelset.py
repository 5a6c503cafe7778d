"""Level sets: where a continuous quantity (a test loss) passes a level in a two-axis sweep, and the law of that line."""

import numpy as np
import xarray as xr

from lemmata.measure.columns import logarithm
from lemmata.measure.estimate import answering, needs
from lemmata.measure.exponent import PowerLaw, power_law


@answering(PowerLaw.absent)
def level_set(
    values: xr.DataArray, level: float, threshold: str, over: str, paired: bool = False
) -> PowerLaw:
    """The law of the value of the axis `threshold` at which `values` pass `level`, as a power of the axis `over`.

    Each seed has its own crossing in each row (`crossings`), so that the seeds carry the interval. A row in which a seed
    does not cross inside the grid counts as a bound.
    """
    where, side = crossings(values, level, threshold)
    return power_law(where, over, side, paired)


def crossings(values: xr.DataArray, level: float, along: str) -> tuple[xr.DataArray, xr.DataArray]:
    """Where a quantity passes `level` along an axis, in each row of the others, and whether that is only a bound:
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
    """The closest rising sequence in least squares (pool adjacent violators)."""
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
