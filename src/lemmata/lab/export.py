"""Results for other programs: netCDF (everything) or parquet (one row a run, scalars only)."""

from pathlib import Path

import numpy as np
import xarray as xr

from lemmata.errors import BadInput
from lemmata.lab.disk import taking_its_place


def export(results: xr.Dataset, path: Path) -> Path:
    """Write results to a file; its ending says how. Complex numbers are two variables, as neither format has them."""
    plain = _real(results.drop_vars("trial"))
    runs = set(results["status"].dims)
    try:
        with taking_its_place(path) as temporary:
            if path.suffix == ".nc":
                plain.to_netcdf(temporary)
            elif path.suffix == ".parquet":
                scalars = [name for name in plain.data_vars if set(plain[name].dims) <= runs]
                plain[scalars].to_dataframe().reset_index().to_parquet(temporary)
            else:
                raise BadInput(f"can export to .nc (netCDF) or .parquet, not to '{path.name}'.")
    except ImportError as error:
        raise BadInput(f"cannot export to '{path.name}': {error}; install lemmata[export].") from None
    except (OSError, RuntimeError) as error:  # netCDF's own
        raise BadInput(f"cannot write '{path}': {getattr(error, 'strerror', None) or error}.") from None
    return path


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
