"""Reads pickles of arrays, dicts and sparse matrices without running anything that they name.

The official files of CIFAR-10 and of the planetoid graphs are pickles, and a pickle can call any function. Here every name in a
pickle maps to a class of this module that only stores what it is given; any other name is refused.
"""

import io
import math
import pickle
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lemmata.errors import BadInput, clipped, require

if TYPE_CHECKING:
    import numpy as np


class Kind:
    """A dtype in a pickle: a code such as `u1`, and its byte order."""

    def __init__(self, code: Any = "", *_: Any):
        self.code = code.decode("latin1") if isinstance(code, bytes) else code
        self.order = "|"

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        self.order = order.decode("latin1") if isinstance(order, bytes) else order


class Array:
    """An array in a pickle: its shape, dtype and bytes."""

    shape: Any = ()
    kind: Any = None
    fortran: Any = False
    raw: Any = b""

    def __setstate__(self, state: Any) -> None:
        _, self.shape, self.kind, self.fortran, self.raw = state

    def array(self) -> "np.ndarray":
        """Return the array. Raises `ValueError` if its parts do not agree."""
        import numpy as np

        kind, raw = self.kind, self.raw
        if not (
            isinstance(kind, Kind) and isinstance(kind.code, str) and re.fullmatch("[uif][1248]", kind.code)
        ):
            raise ValueError("an array that does not hold numbers")
        if kind.order not in ("<", ">", "|", "="):
            raise ValueError("an array without a byte order")
        dtype = np.dtype(kind.order + kind.code)
        raw = raw.encode("latin1") if isinstance(raw, str) else raw
        shape = self.shape
        counts = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
        if not (counts and isinstance(raw, bytes) and math.prod(shape) * dtype.itemsize == len(raw)):
            raise ValueError("an array whose shape and bytes do not agree")
        return np.frombuffer(raw, dtype).reshape(shape, order="F" if self.fortran else "C")


class Matrix:
    """A sparse matrix in a pickle: its attributes."""

    parts: Mapping[Any, Any] = {}

    def __setstate__(self, state: Any) -> None:
        self.parts = state

    def part(self, *names: str) -> Any:
        """Return the first of these attributes that the matrix has."""
        for name in names:
            if isinstance(self.parts, Mapping) and name in self.parts:
                return self.parts[name]
        raise ValueError(f"a matrix without '{names[0]}'")


def _array(*_: Any) -> Array:
    return Array()


def _dict(*_: Any) -> dict[Any, Any]:
    return {}


def _instance(kind: Any, *_: Any) -> Any:
    if kind is not Matrix:
        raise pickle.UnpicklingError("an object that is no matrix")
    return Matrix()


def _latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"the encoding '{encoding}'")
    return text.encode("latin1")


ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "defaultdict"): _dict,
    ("_codecs", "encode"): _latin1,
    ("copy_reg", "_reconstructor"): _instance,
    ("copyreg", "_reconstructor"): _instance,
}
"""What stands for each name that a pickle may hold."""

for _module in ("__builtin__", "builtins"):
    ALLOWED |= {(_module, "list"): list, (_module, "dict"): dict, (_module, "object"): object}
for _module in ("numpy.core.multiarray", "numpy._core.multiarray"):
    ALLOWED[_module, "_reconstruct"] = _array
ALLOWED |= {("numpy", "ndarray"): Array, ("numpy", "dtype"): Kind}
for _module in ("scipy.sparse.csr", "scipy.sparse._csr"):
    ALLOWED[_module, "csr_matrix"] = Matrix


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it names '{clipped(f'{module}.{name}', 60)}'")
        return ALLOWED[module, name]


def unpickle(data: bytes, name: str) -> Any:
    """Read a pickle. Raises `BadInput` if it is damaged, or names anything but arrays, dicts and sparse matrices."""
    try:
        return _Restricted(io.BytesIO(data), encoding="latin1").load()
    except Exception as error:  # a crafted pickle can make the reader raise almost anything
        raise BadInput(
            f"the pickle '{name}' is refused: {clipped(str(error) or type(error).__name__, 120)}."
        ) from None


def array_of(value: Any, name: str) -> "np.ndarray":
    """Return an array that a pickle held. Raises `BadInput` if it is none."""
    require(isinstance(value, Array), f"'{name}' holds no array where one must be.")
    try:
        return value.array()
    except (ValueError, TypeError, OverflowError) as error:
        raise BadInput(f"'{name}' holds {error}.") from None
