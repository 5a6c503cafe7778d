"""The records of cells, variable by variable, as a store gives them and as results are made of them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Records by variable. Where records differ in size, or lack a variable, the rest is NaN.

    `found`: which of the requested cells have a record, as indices into the list of identities that was asked for.
    `values`: for each variable an array whose entry `k` belongs to the cell `found[k]`.
    """

    found: np.ndarray
    values: Mapping[str, np.ndarray]
