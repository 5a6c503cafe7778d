"""Exports results to netCDF (everything), parquet or CSV (one row a run, scalars only)."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr

from lemmata.arguments import checks_arguments
from lemmata.errors import BadInput, require
from lemmata.lab.disk import replacing


@checks_arguments
def export(results: xr.Dataset, path: Path | str) -> Path:
    """Write results to a file and return its path.

    `path`: its suffix chooses the format: `.nc` for netCDF (everything), `.parquet` or `.csv` (a row for each run).

    The coordinate `trial` is left out, as no file can hold its objects. A complex variable becomes two.

    >>> export(xr.Dataset(), "results.nc")
    Traceback (most recent call last):
    lemmata.errors.BadInput: these results have no 'status'; take them as `run` gives them.
    """
    require("status" in results, "these results have no 'status'; take them as `run` gives them.")
    path = Path(path)
    plain = _real(results.drop_vars("trial", errors="ignore"))
    runs = set(results["status"].dims)
    try:
        with replacing(path) as temporary, _true_reason(temporary):
            if path.suffix == ".nc":
                plain.to_netcdf(temporary)
            elif path.suffix == ".parquet":
                scalars = [name for name in plain.data_vars if set(plain[name].dims) <= runs]
                plain[scalars].to_dataframe().reset_index().to_parquet(temporary)
            elif path.suffix == ".csv":
                scalars = [name for name in plain.data_vars if set(plain[name].dims) <= runs]
                plain[scalars].to_dataframe().reset_index().to_csv(temporary, index=False)
            else:
                raise BadInput(f"can export to .nc (netCDF), .parquet or .csv, not to '{path.name}'.")
    except ImportError as error:
        raise BadInput(f"cannot export to '{path.name}': {error}; install lemmata[export].") from None
    except (OSError, RuntimeError) as error:  # netCDF's own
        raise BadInput(f"cannot write '{path}': {getattr(error, 'strerror', None) or error}.") from None
    return path


PROBE = 1 << 20
"""Bytes that are written to find out whether the disk is full."""


@contextlib.contextmanager
def _true_reason(path: Path) -> Iterator[None]:
    """Replace an error of the netCDF library by that of the system. On a full disk the library reports "Permission denied"."""
    try:
        yield
    except (OSError, RuntimeError):
        with path.open("ab") as file:
            file.write(bytes(PROBE))
            file.flush()
            os.fsync(file.fileno())
        raise


def _real(results: xr.Dataset) -> xr.Dataset:
    parts = {
        f"{name}_{part}": getattr(values, part)
        for name, values in results.items()
        if np.iscomplexobj(values)
        for part in ("real", "imag")
    }
    return results.drop_vars([name for name, values in results.items() if np.iscomplexobj(values)]).assign(
        parts
    )
