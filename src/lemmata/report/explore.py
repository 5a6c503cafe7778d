"""The data behind a picture, for a grid in the page: every cell with its values, how its runs ended, and its command."""

import json
import shlex
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lemmata.draw.sweeps import PREFERRED
from lemmata.status import STATUS

if TYPE_CHECKING:
    import xarray as xr

MOST_VALUES = 30_000
"""The largest number of values that a page holds for one picture."""

MOST_VARIABLES = 12
"""The largest number of variables that a reader chooses from."""


def explorable(results: "xr.Dataset", command: str = "", adjustable: bool = True) -> Mapping[str, Any] | None:
    """Return the axes, seeds, variables, ends and commands of results as plain data, or None if there is no number.

    `command`: what gives all results again. `adjustable`: whether `--set` gives one cell of it.
    """
    if "status" not in results:
        return None
    status = results["status"] if "seed" in results["status"].dims else results["status"].expand_dims("seed")
    axes = [str(dim) for dim in status.dims if dim != "seed" and status.sizes[dim] > 1]
    fixed = [dim for dim in status.dims if dim not in (*axes, "seed")]
    cells = prod(status.sizes[dim] for dim in axes)
    shape = (cells, status.sizes["seed"])
    variables = []
    for name in _variables(results, status.dims):
        values = _last(results[name])
        if not set(values.dims) <= {*status.dims} or values.dtype.kind not in "biuf":
            continue
        wide = values.broadcast_like(status).isel(dict.fromkeys(fixed, 0)).transpose(*axes, "seed")
        numbers = np.asarray(wide.values, float).reshape(shape)
        if (len(variables) + 1) * numbers.size > MOST_VALUES or len(variables) == MOST_VARIABLES:
            break
        if np.isfinite(numbers).any():
            meaning = str(results[name].attrs.get("long_name", name.replace("_", " ")))
            variables.append(
                {
                    "name": name,
                    "meaning": meaning,
                    "values": [[_short(v) for v in row] for row in numbers],
                }
            )
    if not variables:
        return None
    ends = np.nan_to_num(status.isel(dict.fromkeys(fixed, 0)).transpose(*axes, "seed").values).astype(int)
    labels = {axis: [_label(one) for one in results[axis].values.tolist()] for axis in axes}
    return {
        "axes": [
            {
                "name": axis,
                "meaning": str(results[axis].attrs.get("long_name", axis.replace("_", " "))),
                "labels": labels[axis],
            }
            for axis in axes
        ],
        "seeds": [int(seed) for seed in np.atleast_1d(status["seed"].values)]
        if "seed" in status.coords
        else [0],
        "variables": variables,
        "ends": ends.reshape(shape).tolist(),
        "names": ["not run", *STATUS[1:]],
        "command": command,
        "settable": [axis for axis in axes if adjustable],
    }


def as_script(data: Mapping[str, Any]) -> str:
    """Return plain data as an element that a script reads; no text in it can end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'


def cell_command(data: Mapping[str, Any], cell: int) -> str:
    """Return the command that makes one cell again, as the page does.

    >>> data = {"command": "lemmata run s/f", "settable": ["n"], "axes": [{"name": "n", "labels": ["2", "4"]}]}
    >>> cell_command(data, 1)
    'lemmata run s/f --set n=4'
    """
    sizes = [len(axis["labels"]) for axis in data["axes"]]
    place = np.unravel_index(cell, sizes) if sizes else ()
    words = [data["command"]]
    for axis, index in zip(data["axes"], place, strict=True):
        if axis["name"] in data["settable"]:
            words += ["--set", shlex.quote(f"{axis['name']}={axis['labels'][index]}")]
    return " ".join(words)


def _variables(results: "xr.Dataset", dims: tuple[Any, ...]) -> list[str]:
    """Return the variables that can be shown, those first that pictures prefer."""
    names = [str(name) for name in results.data_vars if name != "status"]
    plain = [name for name in names if set(_last(results[name]).dims) <= set(dims)]
    return sorted(
        plain, key=lambda name: (PREFERRED.index(name) if name in PREFERRED else len(PREFERRED), name)
    )


def _last(values: "xr.DataArray") -> "xr.DataArray":
    """Return the last known value of a curve over training, and anything else as it is."""
    dim = next((dim for dim in ("step", "log") if dim in values.dims), None)
    if dim is None or values.dtype.kind != "f":
        return values
    known = values.notnull()
    last = (values.sizes[dim] - 1 - known.isel({dim: slice(None, None, -1)}).argmax(dim)).drop_vars(
        dim, errors="ignore"
    )
    return values.isel({dim: last}).drop_vars(dim, errors="ignore")


def _short(value: float) -> float | None:
    return float(f"{value:.4g}") if np.isfinite(value) else None


def _label(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
