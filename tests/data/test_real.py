"""The real files, where `LEMMATA_DATA` or the folder `shared/data` beside the project holds them.

The sha256 of uncompressed IDX files is that of the files at the official addresses.
"""

import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from lemmata import data
from lemmata.data.catalogue import CATALOGUE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"
ROOMS = {"sst2": "text", "minilm": "text", "cora": "graphs", "citeseer": "graphs", "actor": "graphs"}

IDX = {
    "train_images": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train_labels": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
}
"""Checksums of MNIST's uncompressed files."""


def where(name):
    """The file or folder with a real data set, or None."""
    named = os.environ.get("LEMMATA_DATA")
    own = Path(named) / f"{name}.npz" if named else None
    if own is not None and own.is_file():
        return own
    folder = SHARED / ROOMS.get(name, "images")
    files = [*CATALOGUE[name].npz, *(["sst2_train.tsv"] if name == "sst2" else [])]
    return folder if any((folder / file).is_file() for file in files) else None


PRESENT = {name: where(name) for name in CATALOGUE if where(name) is not None}


def needs(name):
    reason = f"{name} is not here: set LEMMATA_DATA, or put shared/data beside the project"
    return pytest.mark.skipif(name not in PRESENT, reason=reason)


@pytest.fixture(params=[pytest.param(name, marks=needs(name)) for name in CATALOGUE])
def real(request, home):
    data.get(request.param, PRESENT[request.param])
    return request.param


def test_real_files_are_read_loaded_and_verified(real, capsys):
    from lemmata.cli import main

    capsys.readouterr()
    assert main(["data", "verify", real]) == 0
    assert data.provenance(real)["form"] in CATALOGUE[real].forms
    arrays = data.load(real)
    labels = [array for name, array in arrays.items() if name.endswith("labels")]
    assert all(len(np.unique(one[one >= 0])) >= 2 for one in labels)


def test_files_of_the_shared_folder_have_the_pinned_checksums(real):
    if PRESENT[real].is_dir() and real not in ("cora", "citeseer", "actor"):
        assert all(one["pinned"] for one in data.provenance(real)["made_from"])


@needs("mnist")
def test_mnist_has_the_bytes_of_the_official_files(home):
    data.get("mnist", PRESENT["mnist"])
    arrays = data.load("mnist")
    for key, sha256 in IDX.items():
        array = arrays[key]
        head = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
        assert hashlib.sha256(head + array.tobytes()).hexdigest() == sha256


@needs("minilm")
def test_real_sentences_are_whole_in_tokens(home):
    data.get("minilm", PRESENT["minilm"])
    arrays = data.load("minilm")
    if "dev/tokens" in arrays:
        pieces = arrays["vocabulary"][arrays["dev/tokens"]]
        ends = arrays["dev/ends"]
        assert (pieces[ends - 1] == "[SEP]").all()
        assert (pieces[np.concatenate([[0], ends[:-1]])] == "[CLS]").all()
