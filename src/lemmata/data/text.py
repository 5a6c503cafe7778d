"""Reads the official files of texts: the tables of SST-2, and the weights and the vocabulary of a BERT encoder."""

import json
import math
from typing import TYPE_CHECKING, Any

from lemmata.data.sources import Source
from lemmata.errors import BadInput, require

if TYPE_CHECKING:
    import numpy as np

LARGEST_TABLE = 32 << 20
LARGEST_WEIGHTS = 200 << 20
LARGEST_HEADER = 1 << 20
LONGEST_SENTENCE = 2000
MOST_SENTENCES = 100_000
LONGEST_PIECE = 200
MOST_PIECES = 100_000

DTYPES = {"F16": "<f2", "F32": "<f4", "I64": "<i8"}
LEFT_OUT = ("pooler.", "embeddings.position_ids")
"""Tensors of the file that the encoder does not need."""


def read_sst2(source: Source) -> dict[str, "np.ndarray"]:
    """Read the three tables of SST-2.

    Two layouts are read. GLUE's tables begin with the names of the columns, and its test set has no labels (-1). The other
    tables hold a label and a sentence, or a sentence and a label, in every line.
    """
    import numpy as np

    arrays = {}
    for split in ("train", "dev", "test"):
        rows = _table(source.read(LARGEST_TABLE, f"{split}.tsv", f"sst2_{split}.tsv"), f"{split}.tsv")
        arrays[f"{split}_sentences"] = np.array([sentence for sentence, _ in rows])
        arrays[f"{split}_labels"] = np.array([label for _, label in rows], np.int8)
    return arrays


def _table(data: bytes, name: str) -> list[tuple[str, int]]:
    """Return the sentences of a table with their labels."""
    rows = [line.rstrip("\r").split("\t") for line in _text(data, name).split("\n") if line]
    require(len(rows) <= MOST_SENTENCES, f"'{name}' has more than {MOST_SENTENCES} lines.")
    require(
        bool(rows) and all(len(row) == 2 for row in rows),
        f"'{name}' must hold two columns with a tab between.",
    )
    if rows[0] == ["index", "sentence"]:
        found = [(sentence, "-1") for _, sentence in rows[1:]]
    elif rows[0] == ["sentence", "label"]:
        found = [(sentence, label) for sentence, label in rows[1:]]
    elif all(label in ("0", "1") for label, _ in rows):
        found = [(sentence, label) for label, sentence in rows]
    else:
        found = [(sentence, label) for sentence, label in rows]
    require(all(label in ("-1", "0", "1") for _, label in found), f"'{name}' has a label that is not 0 or 1.")
    require(
        all(len(sentence) <= LONGEST_SENTENCE for sentence, _ in found),
        f"'{name}' has a sentence of more than {LONGEST_SENTENCE} characters.",
    )
    return [(sentence.strip(), int(label)) for sentence, label in found]


def read_minilm(source: Source) -> dict[str, "np.ndarray"]:
    """Read `model.safetensors` and `vocab.txt`: weights as `w/...`, matrices as out x in, and `vocabulary`."""
    import numpy as np

    name = "model.safetensors"
    arrays = {}
    for key, array in read_safetensors(source.read(LARGEST_WEIGHTS, name), name).items():
        short = key.removeprefix("bert.")
        if not short.startswith(LEFT_OUT):
            arrays["w/" + short.removeprefix("encoder.").replace(".", "/")] = array
    pieces = _text(source.read(LARGEST_TABLE, "vocab.txt"), "vocab.txt").split("\n")
    pieces = [piece.rstrip("\r") for piece in pieces[: -1 if pieces[-1] == "" else None]]
    good = (
        len(pieces) <= MOST_PIECES
        and {"[UNK]", "[CLS]", "[SEP]"} <= set(pieces)
        and all(len(piece) <= LONGEST_PIECE for piece in pieces)
    )
    require(good, "'vocab.txt' must hold a word piece a line, with [UNK], [CLS] and [SEP].")
    return arrays | {"vocabulary": np.array(pieces)}


def read_safetensors(data: bytes, name: str) -> dict[str, "np.ndarray"]:
    """Return the tensors of a safetensors file: the length of a header in JSON, the header, then the values."""
    import numpy as np

    length = int.from_bytes(data[:8], "little")
    require(
        len(data) >= 8 and length <= min(LARGEST_HEADER, len(data) - 8), f"'{name}' is no safetensors file."
    )
    values = memoryview(data)[8 + length :]
    try:
        header = json.loads(data[8 : 8 + length])
        entries = {key: _entry(entry) for key, entry in header.items() if key != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BadInput(f"the header of '{name}' is damaged.") from None
    arrays = {}
    for key, (dtype, shape, start, end) in entries.items():
        dtype = np.dtype(dtype)
        fits = 0 <= start <= end <= len(values) and end - start == math.prod(shape) * dtype.itemsize
        require(fits, f"the tensor '{key}' of '{name}' does not fit its place in the file.")
        arrays[key] = np.frombuffer(values[start:end], dtype).reshape(shape)
    return arrays


def _entry(entry: dict[str, Any]) -> tuple[str, tuple[int, ...], int, int]:
    """Return dtype, shape, start and end of a tensor. Raises `ValueError` if they are no such thing."""
    shape, (start, end) = tuple(entry["shape"]), entry["data_offsets"]
    if not all(type(n) is int and n >= 0 for n in (*shape, start, end)):
        raise ValueError
    return DTYPES[entry["dtype"]], shape, start, end


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"'{name}' is not text.") from None
