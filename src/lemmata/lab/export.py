"""Results for other programs: netCDF (everything) or parquet (one row a run, scalars only)."""

from pathlib import Path

import xarray as xr

from lemmata.errors import BadInput
from lemmata.lab.disk import taking_its_place


def export(results: xr.Dataset, path: Path) -> Path:
    """Write results to a file; its ending says how."""
    plain = results.drop_vars("trial")
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
    except OSError as error:
        raise BadInput(f"cannot write '{path}': {error.strerror or error}.") from None
    return path
