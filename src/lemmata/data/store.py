"""Keeps data sets on disk: gets them, checks their counts and shapes, loads them, and knows where they come from."""

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemmata.data import graphs, images, text
from lemmata.data.catalogue import CATALOGUE, DataSet, data_set
from lemmata.data.download import download
from lemmata.data.npz import content_sha256, read_npz, write_npz
from lemmata.data.sources import Source, open_source, sha256_of
from lemmata.ending import on_exit
from lemmata.errors import BadInput, note, require

if TYPE_CHECKING:
    import numpy as np

READERS: Mapping[str, Callable[[Source, str], dict[str, "np.ndarray"]]] = {
    "idx": lambda source, name: images.read_idx(source),
    "cifar": lambda source, name: images.read_cifar(source),
    "celeba": lambda source, name: images.read_celeba(source),
    "sst2": lambda source, name: text.read_sst2(source),
    "minilm": lambda source, name: text.read_minilm(source),
    "planetoid": graphs.read_planetoid,
    "actor": lambda source, name: graphs.read_actor(source),
}
"""The reader of each official layout, called with the source and the name of the data set."""

SMALLEST_LIMIT = 256 << 20
LONGEST_TEXT = 400
"""The number of characters that an entry of a text array may have on average, for the limit on sizes."""


def data_folder() -> Path:
    """Return the folder of the data sets: `LEMMATA_DATA`, or `lemmata/data` in the user's data folder."""
    named = os.environ.get("LEMMATA_DATA")
    if named:
        return Path(named).expanduser()
    shared = os.environ.get("XDG_DATA_HOME")
    try:
        return (Path(shared) if shared else Path.home() / ".local" / "share") / "lemmata" / "data"
    except RuntimeError:
        raise BadInput("this user has no home folder; set LEMMATA_DATA to a folder for data sets.") from None


def data_file(name: str) -> Path:
    """Return the file of a data set, whether it is there or not."""
    return data_folder() / f"{data_set(name).name}.npz"


def get(name: str, source: Path | None = None) -> Path:
    """Get a data set, write it to its file, and return the path of that file.

    `name`: the name of the data set.
    `source`: an official archive, a folder with the official files, or an `.npz` file. By default the official files are
    downloaded, after the licence was printed.
    """
    one = data_set(name)
    target = data_file(name)
    note(f"{one.title}; licence: {one.licence}; please cite: {one.citation}")
    if source is not None:
        arrays, made_from = _read(one, source.expanduser())
    else:
        require(
            bool(one.files),
            f"'{name}' is given out by hand only: get it from {one.home}, then `lemmata data get {name} --from FOLDER`.",
        )
        arrays, made_from = _downloaded(one, target.parent)
    form = form_of(one, arrays)
    about = {
        "data_set": name,
        "form": form,
        "made_from": made_from,
        "content": content_sha256(arrays),
        "licence": one.licence,
        "citation": one.citation,
    }
    write_npz(target, arrays, about)
    return target


def load(name: str) -> dict[str, "np.ndarray"]:
    """Return the arrays of a data set by name. Raises `BadInput` if it is absent, damaged or of wrong shapes."""
    return _stored(name)[0]


def provenance(name: str) -> dict[str, Any]:
    """Return where a data set comes from, for records of what was made from it.

    The entries: `data_set`, `form`, `file` and its `sha256`; `content`, the sha256 of the arrays, which does not depend on
    how they are compressed; `made_from`, the files that were read with their sha256. In these, `pinned` says whether the
    checksum is the one that the catalogue gives.
    """
    arrays, about = _stored(name)
    path = data_file(name)
    return {
        "data_set": name,
        "form": form_of(data_set(name), arrays),
        "file": path.name,
        "sha256": sha256_of(path),
        "content": content_sha256(arrays),
        "made_from": about.get("made_from", []),
    }


def problem(name: str) -> str:
    """Return what is wrong with a data set that is here, or an empty text."""
    try:
        arrays, about = _stored(name)
    except BadInput as error:
        return str(error)
    if "content" in about and about["content"] != content_sha256(arrays):
        return f"the arrays in '{data_file(name)}' differ from their checksum; run `lemmata data get {name}` again."
    return ""


def present() -> list[str]:
    """Return the names of the data sets that are here."""
    return [name for name in CATALOGUE if data_file(name).is_file()]


def form_of(one: DataSet, arrays: Mapping[str, "np.ndarray"]) -> str:
    """Return the form of a data set whose counts and shapes these arrays have, or raise `BadInput`."""
    faults = []
    for form, shapes in one.forms.items():
        fault = _fault(one, shapes, arrays)
        if not fault:
            return form
        faults.append(f"{fault} (form '{form}')" if len(one.forms) > 1 else fault)
    raise BadInput(f"this is not {one.name}: {'; '.join(faults)}.")


def _fault(one: DataSet, shapes: Mapping[str, Any], arrays: Mapping[str, "np.ndarray"]) -> str:
    """Return the first difference between arrays and the shapes that they must have."""
    unknown = sorted(set(arrays) - set(shapes))
    if unknown:
        return f"'{unknown[0]}' is no array of it"
    for name, (kind, shape) in shapes.items():
        if name not in arrays:
            if name in one.optional:
                continue
            return f"'{name}' is missing"
        array = arrays[name]
        same = array.ndim == len(shape) and all(
            n in (None, m) for n, m in zip(shape, array.shape, strict=True)
        )
        if not same or array.dtype.kind != kind:
            return f"'{name}' is {array.dtype} {array.shape} instead of {shape}"
    return ""


def _stored(name: str) -> tuple[dict[str, "np.ndarray"], dict[str, Any]]:
    """Return the arrays and the provenance of a data set that is here."""
    one, path = data_set(name), data_file(name)
    require(path.is_file(), f"data absent: `lemmata data get {name}`")
    arrays, about = read_npz(path, _limit(one))
    form_of(one, arrays)
    return arrays, about


def _limit(one: DataSet) -> int:
    """Return the largest number of bytes that the arrays of a data set may have."""
    sizes = [
        sum(
            math.prod(n or 1 for n in shape) * (4 * LONGEST_TEXT if kind == "U" else 8)
            for kind, shape in form.values()
        )
        for form in one.forms.values()
    ]
    return max(*sizes, SMALLEST_LIMIT)


def _downloaded(one: DataSet, folder: Path) -> tuple[dict[str, "np.ndarray"], list[dict[str, Any]]]:
    """Download the official files into a private temporary folder and read them."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=f".{one.name}.", dir=folder) as name,
        on_exit(lambda: shutil.rmtree(name, ignore_errors=True)),
    ):
        try:
            for file in one.files:
                download(file, Path(name))
        except BadInput as error:
            raise BadInput(f"{error}; if you have it, `lemmata data get {one.name} --from PATH`.") from None
        return _read(one, Path(name))


def _read(one: DataSet, path: Path) -> tuple[dict[str, "np.ndarray"], list[dict[str, Any]]]:
    """Read a data set from an archive, a folder or an `.npz` file; also return the files that were read."""
    if path.is_dir():
        for name in (*one.npz, *((one.archive,) if one.archive else ())):
            if (path / name).is_file():
                return _read(one, path / name)
    if path.is_file() and path.suffix == ".npz":
        arrays, used = _from_npz(one, path), {path.name: sha256_of(path)}
    else:
        source = open_source(path)
        arrays = READERS[one.layout](source, one.name)
        used = source.used
    pins = {file.name: file.sha256 for file in one.files} | dict(one.npz) | dict(one.others)
    return arrays, [
        {"file": name, "sha256": sha256, "pinned": pins.get(name) == sha256}
        for name, sha256 in sorted(used.items())
    ]


def _from_npz(one: DataSet, path: Path) -> dict[str, "np.ndarray"]:
    """Read the arrays of an `.npz` file."""
    arrays, _ = read_npz(path, _limit(one))
    if one.layout == "actor" and "node_features" in arrays:
        return graphs.from_heterophilous(arrays)
    form_of(one, arrays)
    return graphs.require_sound(arrays) if "features_indptr" in arrays else arrays
