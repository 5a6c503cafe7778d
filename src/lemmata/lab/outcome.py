"""What became of a cell, as it travels from a worker to the store. Light: a store is looked at without loading JAX."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lemmata.status import FAILED

Value = np.ndarray | np.generic


@dataclass(frozen=True)
class Outcome:
    """What became of one cell: its record, or the reason why there is none. `source` is the digest of the code that ran."""

    id: str
    record: Mapping[str, Value]
    seconds: float
    reason: str = ""
    traceback: str = ""
    source: str = ""


def nothing() -> dict[str, Value]:
    """The record of a cell that failed."""
    return {"status": np.asarray(FAILED, np.int32), "steps": np.asarray(0, np.int32)}
