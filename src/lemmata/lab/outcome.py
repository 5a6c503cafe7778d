"""The outcome of a cell, which a worker sends to the store. This module does not load JAX, so that stores open fast."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lemmata.status import FAILED

Value = np.ndarray | np.generic


class Origin(NamedTuple):
    """What made a record, apart from its code. Records of the same code and different origin differ by rounding.

    `jax`: the release of JAX.
    `device`: the platform that computed it.
    `kernels`: `on` if C++ kernels were used, else `off`.
    `data`: the files of the real data sets that it was made from, each with its sha256.
    """

    jax: str
    device: str
    kernels: str
    data: str = ""

    def __str__(self) -> str:
        data = f", data {self.data}" if self.data else ""
        return f"JAX {self.jax} on {self.device}, kernels {self.kernels}{data}"


@dataclass(frozen=True)
class Outcome:
    """The result of one cell: its record, or the reason of its failure.

    `id`: the identity of the cell.
    `record`: its named arrays.
    `seconds`: the time that it took.
    `reason`: why it failed, or empty.
    `traceback`: the traceback of the failure, or empty.
    `source`: the digest of the code that ran.
    `origin`: what made the record; None for a failure.
    """

    id: str
    record: Mapping[str, Value]
    seconds: float
    reason: str = ""
    traceback: str = ""
    source: str = ""
    origin: Origin | None = None

    @property
    def made_by(self) -> dict[str, str]:
        """Source and origin as plain data, as a store keeps them."""
        return {"source": self.source, **(self.origin._asdict() if self.origin else {})}


def origin_in(kept: Mapping[str, Any]) -> Origin | None:
    """Read the origin that `Outcome.made_by` wrote."""
    known = {name: kept[name] for name in Origin._fields if name in kept}
    return Origin(**known) if {*Origin._fields} - {*Origin._field_defaults} <= {*known} else None


def failed_record() -> dict[str, Value]:
    """Return the record of a cell that failed."""
    return {"status": np.asarray(FAILED, np.int32), "steps": np.asarray(0, np.int32)}


def of_one_rank(outcome: Outcome, ranks: dict[str, int]) -> Outcome:
    """Return the outcome, or a failure if a variable has another number of dimensions than in earlier cells."""
    for name, value in outcome.record.items():
        if ranks.setdefault(name, value.ndim) != value.ndim:
            reason = f"variable '{name}' has {value.ndim} dimensions here and {ranks[name]} in other cells."
            return replace(outcome, record=failed_record(), reason=reason)
    return outcome
