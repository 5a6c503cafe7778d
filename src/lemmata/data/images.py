"""Reads the official files of data sets of images: IDX files, the batches of CIFAR-10, the folder of CelebA."""

import io
import math
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from lemmata.data.sources import Source
from lemmata.data.unpickle import array_of, unpickle
from lemmata.errors import BadInput, require

if TYPE_CHECKING:
    import numpy as np

LARGEST_IDX = 64 << 20
LARGEST_BATCH = 64 << 20
LARGEST_PICTURE = 1 << 20
LARGEST_LIST = 128 << 20

CELEBA_SIZE = (178, 218)
"""Width and height of an aligned picture of CelebA."""

CELEBA_SIDE = 32
"""Width and height of the pictures that are kept: the middle square, each pixel the mean of an area."""


def read_idx(source: Source) -> dict[str, "np.ndarray"]:
    """Read the four IDX files of MNIST or Fashion-MNIST, compressed or not."""
    arrays = {}
    for split, prefix in (("train", "train"), ("test", "t10k")):
        for what, ending in (("images", "idx3"), ("labels", "idx1")):
            names = (f"{prefix}-{what}-{ending}-ubyte", f"{prefix}-{what}.{ending}-ubyte")
            arrays[f"{split}_{what}"] = _idx(source.read(LARGEST_IDX, *names), names[0])
    return arrays


def _idx(data: bytes, name: str) -> "np.ndarray":
    """Return the array of an IDX file with unsigned bytes."""
    import numpy as np

    ndim = data[3] if len(data) > 4 and data[:3] == b"\x00\x00\x08" else 0
    require(0 < ndim <= 3, f"'{name}' is no IDX file of unsigned bytes.")
    start = 4 + 4 * ndim
    shape = tuple(int.from_bytes(data[i : i + 4], "big") for i in range(4, start, 4))
    require(len(data) - start == math.prod(shape), f"'{name}' is cut off, or its header is wrong.")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def read_cifar(source: Source) -> dict[str, "np.ndarray"]:
    """Read the Python version of CIFAR-10: five batches for training, one for test, and the names of the classes."""
    import numpy as np

    images, labels = [], []
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        batch = _dict_of(unpickle(source.read(LARGEST_BATCH, name), name), name, "data", "labels")
        rows = array_of(batch["data"], name)
        require(
            rows.dtype == np.uint8 and rows.ndim == 2 and rows.shape[1] == 3072,
            f"'{name}' must hold rows of 3072 unsigned bytes.",
        )
        classes = batch["labels"]
        good = isinstance(classes, list) and all(type(k) is int and 0 <= k < 10 for k in classes)
        require(
            good and len(classes) == len(rows), f"'{name}' must hold a label from 0 to 9 for every picture."
        )
        images.append(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        labels.append(np.array(classes, np.uint8))
    meta = _dict_of(
        unpickle(source.read(LARGEST_BATCH, "batches.meta"), "batches.meta"), "batches.meta", "label_names"
    )
    names = meta["label_names"]
    require(
        isinstance(names, list) and all(isinstance(name, str) for name in names),
        "'batches.meta' must hold the names of the classes.",
    )
    return {
        "train_images": np.concatenate(images[:5]),
        "train_labels": np.concatenate(labels[:5]),
        "test_images": np.ascontiguousarray(images[5]),
        "test_labels": labels[5],
        "class_names": np.array(names),
    }


def _dict_of(value: object, name: str, *keys: str) -> dict:
    missing = not isinstance(value, dict) or [key for key in keys if key not in value]
    require(not missing, f"'{name}' must hold a dict with {' and '.join(keys)}.")
    assert isinstance(value, dict)
    return value


def read_celeba(source: Source) -> dict[str, "np.ndarray"]:
    """Read the official folder of CelebA: aligned pictures, the list of attributes, the list of partitions."""
    import numpy as np

    listed = "list_attr_celeba.txt"
    lines = _lines(source, listed)
    require(
        len(lines) > 2 and lines[0].strip().isdigit(), f"'{listed}' must begin with the number of pictures."
    )
    names = lines[1].split()
    rows = [line.split() for line in lines[2:] if line.strip()]
    require(
        len(rows) == int(lines[0]),
        f"'{listed}' names {len(rows)} pictures, and its first line says {lines[0]}.",
    )
    whole = all(len(row) == len(names) + 1 and set(row[1:]) <= {"-1", "1"} for row in rows)
    require(whole, f"every line of '{listed}' must hold a picture and {len(names)} times 1 or -1.")
    parted: dict[str, str] = {}
    for line in _lines(source, "list_eval_partition.txt"):
        name, _, part = line.partition(" ")
        parted[name] = part.strip()
    same = [row[0] for row in rows] == list(parted) and set(parted.values()) <= {"0", "1", "2"}
    require(
        same, f"'list_eval_partition.txt' must give 0, 1 or 2 for the pictures of '{listed}', in their order."
    )
    images = np.empty((len(rows), CELEBA_SIDE, CELEBA_SIDE, 3), np.uint8)
    for i, row in enumerate(rows):
        name = f"img_align_celeba/{PurePosixPath(row[0]).name}"
        images[i] = _small(source.read(LARGEST_PICTURE, name), name)
    for row in rows:  # 200,000 checksums of pictures would say no more than those of the lists
        source.used.pop(PurePosixPath(row[0]).name, None)
    return {
        "images": images,
        "attributes": np.array([[value == "1" for value in row[1:]] for row in rows], np.uint8),
        "attribute_names": np.array(names),
        "partition": np.array([int(parted[row[0]]) for row in rows], np.uint8),
    }


def _lines(source: Source, name: str) -> list[str]:
    try:
        return source.read(LARGEST_LIST, name).decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise BadInput(f"'{name}' is not text.") from None


def _small(data: bytes, name: str) -> "np.ndarray":
    """Return the middle square of a picture of CelebA, made smaller."""
    import numpy as np
    from PIL import Image  # a dependency of matplotlib

    try:
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as picture:
            require(
                picture.size == CELEBA_SIZE, f"'{name}' must be {CELEBA_SIZE[0]} x {CELEBA_SIZE[1]} pixels."
            )
            width, height = CELEBA_SIZE
            top = (height - width) / 2
            side = (CELEBA_SIDE, CELEBA_SIDE)
            box = (0, top, width, top + width)
            return np.asarray(picture.convert("RGB").resize(side, Image.Resampling.BOX, box))
    except BadInput:
        raise
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise BadInput(f"the picture '{name}' is damaged: {error}.") from None
