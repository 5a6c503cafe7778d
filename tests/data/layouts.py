"""Small made data in each official layout, and a catalogue whose counts fit them."""

import gzip
import io
import json
import pickle
import struct
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from lemmata.data.catalogue import CATALOGUE

SEED = 20261119


def shrunk(monkeypatch, name, arrays, **changes):
    """Let a data set of the catalogue have the counts and shapes of some made arrays."""
    shapes = {key: (array.dtype.kind, array.shape) for key, array in arrays.items()}
    monkeypatch.setitem(CATALOGUE, name, replace(CATALOGUE[name], forms={"made": shapes}, **changes))


def made_images(count=7):
    rng = np.random.default_rng(SEED)
    arrays = {}
    for split, n in (("train", count), ("test", count - 2)):
        arrays[f"{split}_images"] = rng.integers(0, 256, (n, 28, 28), np.uint8)
        arrays[f"{split}_labels"] = rng.integers(0, 10, n).astype(np.uint8)
    return arrays


def idx_files(arrays):
    """The four IDX files, compressed, by name."""
    files = {}
    for split, prefix in (("train", "train"), ("test", "t10k")):
        for what, ending in (("images", "idx3"), ("labels", "idx1")):
            array = arrays[f"{split}_{what}"]
            head = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
            files[f"{prefix}-{what}-{ending}-ubyte.gz"] = gzip.compress(head + array.tobytes(), mtime=0)
    return files


def write_files(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def tar_of(path, files, links=()):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for name, target in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return path


def zip_of(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def cifar_files(count=3):
    """The batches of CIFAR-10 in their folder, and the arrays that they hold."""
    rng = np.random.default_rng(SEED)
    files, images, labels = {}, [], []
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        pictures = rng.integers(0, 256, (count, 32, 32, 3), np.uint8)
        classes = rng.integers(0, 10, count).tolist()
        rows = np.ascontiguousarray(pictures.transpose(0, 3, 1, 2)).reshape(count, 3072)
        files[f"cifar-10-batches-py/{name}"] = pickle.dumps({"data": rows, "labels": classes}, protocol=2)
        images.append(pictures)
        labels.append(np.array(classes, np.uint8))
    names = [f"class {i}" for i in range(10)]
    files["cifar-10-batches-py/batches.meta"] = pickle.dumps({"label_names": names}, protocol=2)
    arrays = {
        "train_images": np.concatenate(images[:5]),
        "train_labels": np.concatenate(labels[:5]),
        "test_images": images[5],
        "test_labels": labels[5],
        "class_names": np.array(names),
    }
    return files, arrays


def planetoid_files(name):
    """A graph of ten nodes in planetoid's files: six known ones, test nodes 9, 6 and 8, and 7 that no file describes.

    Also returns its features as a full matrix, its labels and its edges.
    """
    rng = np.random.default_rng(SEED)
    features = (rng.random((10, 5)) < 0.6).astype(np.float32)
    features[:, 0], features[7] = 1, 0
    labels = np.array([0, 1, 2, 0, 1, 2, 2, -1, 1, 0])
    index = [9, 6, 8]
    hot = np.eye(3, dtype=np.int32)
    graph = {0: [1, 1, 2], 1: [0], 2: [0, 9], 3: [3], 4: [8], 5: [], 6: [4], 7: [], 8: [4], 9: [2]}
    parts = {
        "x": csr_matrix(features[:3]),
        "allx": csr_matrix(features[:6]),
        "tx": csr_matrix(features[index]),
        "y": hot[labels[:3]],
        "ally": hot[labels[:6]],
        "ty": hot[labels[index]],
        "graph": graph,
    }
    files = {f"ind.{name}.{part}": pickle.dumps(value, protocol=2) for part, value in parts.items()}
    files[f"ind.{name}.test.index"] = "".join(f"{i}\n" for i in index).encode()
    return files, features, labels, [(0, 1), (0, 2), (2, 9), (4, 6), (4, 8)]


def safetensors(tensors):
    """The bytes of a safetensors file."""
    header, values = {"__metadata__": {"format": "pt"}}, b""
    names = {"float16": "F16", "float32": "F32", "int64": "I64"}
    for name, array in tensors.items():
        end = len(values) + array.nbytes
        header[name] = {
            "dtype": names[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [len(values), end],
        }
        values += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + values


def picture(rng, size=(178, 218)):
    """A picture of one colour as the bytes of a PNG, and that colour."""
    from PIL import Image

    colour = tuple(int(c) for c in rng.integers(0, 256, 3))
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue(), colour
