"""Real data sets: which there are, how to get them, and their arrays.

>>> import os, tempfile
>>> os.environ["LEMMATA_DATA"] = tempfile.mkdtemp()
>>> load("mnist")
Traceback (most recent call last):
lemmata.errors.BadInput: data absent: `lemmata data get mnist`
>>> del os.environ["LEMMATA_DATA"]
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemmata.arguments import checks_arguments
from lemmata.data import store
from lemmata.data.catalogue import CATALOGUE, DataSet, Official

if TYPE_CHECKING:
    import numpy as np

__all__ = ["CATALOGUE", "DataSet", "Official", "get", "load", "provenance"]


@checks_arguments
def load(name: str) -> dict[str, "np.ndarray"]:
    """Return the arrays of a data set.

    `name`: the name of the data set, such as `mnist`.

    Raises `BadInput` if the data set is absent, damaged, or does not have its counts and shapes.
    """
    return store.load(name)


@checks_arguments
def provenance(name: str) -> dict[str, Any]:
    """Return where a data set comes from: its file, the files that it was made from, and the sha256 of each.

    `name`: the name of the data set, such as `mnist`.
    """
    return store.provenance(name)


@checks_arguments
def get(name: str, source: str | Path | None = None) -> Path:
    """Get a data set, and return the path of its file.

    `name`: the name of the data set, such as `mnist`.
    `source`: an official archive, a folder with the official files, or an `.npz` file with the arrays. By default the
    official files are downloaded.
    """
    return store.get(name, None if source is None else Path(source))
