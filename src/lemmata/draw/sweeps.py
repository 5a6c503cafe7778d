"""Draws any sweep over one axis or two: curves with their spread, or a phase diagram."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from lemmata.draw.curves import DOTS, lines
from lemmata.draw.curves import line as one_line
from lemmata.draw.phase import Line, phase_diagram
from lemmata.draw.style import canvas, caption, lab_style, panel
from lemmata.errors import BadInput, require, unknown
from lemmata.status import DIVERGED

PREFERRED = (
    *("test_loss", "test_error", "test_hinge", "error", "hinge", "cot_error", "normalised_error", "gap"),
    *("train_loss", "loss", "steps"),
)
"""Variables that are drawn if none is named, the first that there is."""


def wide_axes(results: xr.Dataset) -> list[str]:
    """Return the axes of a sweep, seeds apart, that have more than one value."""
    dims = results["status"].dims if "status" in results else ()
    return [str(dim) for dim in dims if dim != "seed" and results.sizes[dim] > 1]


def draw_sweep(results: xr.Dataset, show: str = "", boundary: Sequence[Line] = ()) -> Figure:
    """Draw one variable of a sweep: a curve over training or over one axis, or a phase diagram over two axes."""
    axes = wide_axes(results)
    require(
        len(axes) <= 2,
        f"a sweep over {', '.join(axes)} has too many axes for one picture; take a part of it, such as "
        f"results.isel({axes[-1] if axes else ''}=0).",
    )
    name = show or _preferred(results, axes)
    if name not in results:
        raise unknown("variable", name, [str(one) for one in results.data_vars])
    values = results[name].where(results["status"].notnull()).squeeze()
    over = [str(dim) for dim in values.dims if dim != "seed"]
    training = [dim for dim in over if dim in ("step", "log")]
    require(
        set(over) <= {*axes, *training} and len(over) <= 2,
        f"'{name}' has the dimensions {', '.join(map(str, values.dims))}; take a part of it, or draw another variable.",
    )
    with lab_style():
        figure, panel_axes = canvas()
        if not over:
            raise BadInput(
                f"'{name}' is one number, {float(values.mean()):.4g}; run more than one setting to draw it."
            )
        if len(over) == 2 and not training and all(_numbers(results[dim]) for dim in over):
            _map(panel_axes, figure, results, values, over, boundary)
            said = f"{_said(results[name])}: mean over seeds."
        else:
            along = training[0] if training else next((d for d in over if _numbers(results[d])), over[0])
            _curves(panel_axes, results, values, along, [dim for dim in over if dim != along])
            said = f"{_said(results[name])}. {DOTS if 'seed' in values.dims else ''}".strip()
        caption(figure, results, said)
    return figure


def _map(axes, figure: Figure, results: xr.Dataset, values: xr.DataArray, over: list[str], boundary) -> None:
    x, y = over
    mean = values.mean("seed") if "seed" in values.dims else values
    diverged = (results["status"] == DIVERGED).squeeze()
    diverged = diverged.any("seed") if "seed" in diverged.dims else diverged
    log_x, log_y = _wide(results[x]), _wide(results[y])
    mesh = phase_diagram(axes, mean, x, y, boundary, log_x, log_y, diverged=diverged)
    figure.colorbar(mesh, ax=axes, label=_said(values))
    panel(axes, _said(results[x]), _said(results[y]))


def _curves(axes, results: xr.Dataset, values: xr.DataArray, along: str, arms: list[str]) -> None:
    style = "-" if along in ("step", "log") else "o-"
    over = "step" if along == "log" else along
    if not _numbers(values[over]):
        values = values.assign_coords({along: np.arange(values.sizes[along])})
    if arms:
        lines(axes, values, over, arms[0], f"{arms[0]} = {{}}", style=style)
    else:
        one_line(axes, values, over, style=style)
    finite = values.values[np.isfinite(values.values.astype(float))]
    steep = finite.size > 0 and finite.min() > 0 and finite.max() > 100 * finite.min()
    panel(axes, _said(results[over]), _said(values), "", "x" * _wide(values[over]) + "y" * bool(steep))
    if not _numbers(results[over]):
        axes.set_xticks(range(results.sizes[along]), [str(label) for label in results[along].values])


def _preferred(results: xr.Dataset, axes: list[str]) -> str:
    if not axes:
        curves = [str(name) for name in results.data_vars if str(name).endswith("_curve")]
        plain = [
            name for name in curves if set(results[name].dims) <= {*results["status"].dims, "step", "log"}
        ]
        first = [f"{name}_curve" for name in PREFERRED if f"{name}_curve" in plain]
        require(
            bool(plain), "these results have no curve over training; run more than one setting to draw them."
        )
        return (first or plain)[0]
    scalars = [
        str(name) for name, one in results.data_vars.items() if set(one.dims) <= set(results["status"].dims)
    ]
    return next((name for name in PREFERRED if name in scalars), scalars[0])


def _said(values: xr.DataArray) -> str:
    """The meaning of a variable, with the paper's symbol."""
    text = str(values.attrs.get("long_name") or values.name)
    return f"{text}, {values.attrs['symbol']}" if "symbol" in values.attrs else text


def _numbers(labels: xr.DataArray) -> bool:
    return bool(np.issubdtype(labels.dtype, np.number)) and labels.dtype != bool


def _wide(labels: xr.DataArray) -> bool:
    """Whether an axis is logarithmic: positive, over a factor of five or more."""
    found = np.asarray(labels.values, float) if _numbers(labels) else np.zeros(1)
    found = found[np.isfinite(found)]
    return bool(len(found) > 1 and (found > 0).all() and found.max() >= 5 * found.min())
