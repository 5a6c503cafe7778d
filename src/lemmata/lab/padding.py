"""Joins records of different shapes into one array, padded with NaN."""

import math
from collections.abc import Sequence

import numpy as np

from lemmata.errors import BadInput, require, require_memory

SMALL = 1 << 28
"""An array of at most this many bytes is always allowed."""

EMPTIEST = 64
"""In a larger array, a row has at most this many times the entries of the largest record.

Without this limit, two records of shapes (1, N) and (N, 1) would turn a file of some kilobytes into gigabytes."""

COPIES = 2
"""Copies in memory: the array itself, and the array in the shape of the grid."""


def padded(name: str, count: int, pieces: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Join the pieces of a variable. Each piece is a pair of row numbers and their values.

    Rows without a piece, and the rest of smaller records, are NaN. Raises `BadInput` if the array would not fit into memory, or
    would be nearly empty.
    """
    shapes = list(dict.fromkeys(values.shape[1:] for _, values in pieces))
    if len(set(map(len, shapes))) > 1:
        raise BadInput(
            f"variable '{name}' has different numbers of dimensions in different cells: {_listed(shapes)}."
        )
    shape = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
    dtype = np.result_type(*(values.dtype for _, values in pieces))
    gaps = sum(len(which) for which, _ in pieces) < count
    if (gaps or len(shapes) > 1) and dtype.kind not in "fc":
        dtype = np.dtype(np.float64)
    size = count * math.prod(shape) * dtype.itemsize
    largest = max(1, *(math.prod(one) for one in shapes)) if shapes else 1
    require(
        size <= SMALL or math.prod(shape) <= EMPTIEST * largest,
        f"variable '{name}' has too different shapes in different cells to be put into one array: {_listed(shapes)}.",
    )
    require_memory(COPIES * size, f"variable '{name}' of {count} cells in an array of shape {shape} each")
    out = np.full((count, *shape), np.nan if dtype.kind in "fc" else 0, dtype)
    for which, values in pieces:
        out[(which, *(slice(n) for n in values.shape[1:]))] = values
    return out


def _listed(shapes: Sequence[tuple[int, ...]]) -> str:
    """Return the largest shapes as text, at most three."""
    chosen = sorted(shapes, key=lambda shape: (-math.prod(shape), shape))[:3]
    return ", ".join(map(str, chosen)) + (", ..." if len(shapes) > len(chosen) else "")
