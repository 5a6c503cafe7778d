"""A store recovers lost files, and refuses files that declare a false size."""

import os
import zlib
from pathlib import Path

import numpy as np
import pytest

from lemmata.cli import main
from lemmata.errors import BadInput
from lemmata.lab import ledger as ledger_module
from lemmata.lab import segment as seg
from lemmata.lab.disk import Damaged
from lemmata.lab.padding import padded
from lemmata.lab.pool import Pool
from lemmata.lab.run import carry_out
from lemmata.lab.store import Store
from lemmata.progress import silence
from lemmata.sweep import Sweep, axis
from tests.lab.test_store import failed, filled, ids, outcome, small
from tests.toys import Square

HUGE = 10**14
"""Bytes of a sparse file, more than any machine has memory."""


def segments(path: Path) -> list[Path]:
    return sorted((path / "segments").iterdir())


def sparse(path: Path, size: int = HUGE) -> None:
    try:
        with path.open("r+b") as file:
            file.truncate(size)
    except OSError:  # the largest file that the file system of a test machine may allow
        with path.open("r+b") as file:
            file.truncate(10**12)


# Lost copies -----------------------------------------------------------------------------------------------------------


def test_manifest_and_ledger_are_rebuilt_from_the_rows(tmp_path):
    store = filled(tmp_path, [outcome(1, x=1.5)], [outcome(3, x=2.5)], manifest={"command": "y", "draw": 3})
    before = {word: value for word, value in store.manifest.items() if word != "starts"}
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "ledger.txt").unlink()
    assert Store(tmp_path).repair() == [
        "the ledger was written again from the rows.",
        "the manifest was written again from the rows.",
    ]
    assert Store(tmp_path).manifest == before
    assert Store(tmp_path).problems() == []
    assert Store(tmp_path).done() == set(ids(1, 3))


def test_the_rows_carry_the_manifest_of_the_last_start_through_merges_and_repairs(tmp_path, monkeypatch):
    monkeypatch.setattr("lemmata.lab.store.MERGE_COUNT", 2)
    filled(tmp_path, [outcome(1)], manifest={"seeds": 1})
    filled(tmp_path, [outcome(2)], [outcome(3)], manifest={"seeds": 3})
    for path in segments(tmp_path):
        data = bytearray(path.read_bytes())
        data[14] ^= 1  # a checksum of zip itself
        path.write_bytes(data)
    for name in ("manifest.json", "ledger.txt"):
        (tmp_path / name).unlink()
    Store(tmp_path).repair()
    assert Store(tmp_path).manifest["seeds"] == 3
    for name in ("manifest.json", "ledger.txt"):
        (tmp_path / name).unlink()
    Store(tmp_path).repair()
    assert Store(tmp_path).manifest["seeds"] == 3


def test_where_no_copy_is_left_repair_names_run_and_run_works(tmp_path):
    sweep, order = Sweep(Square(), (axis("value", (2.0, 3.0)),), (0,)), {"trial": "square"}
    with silence() as told:
        carry_out(sweep, Store(tmp_path), order, Pool(), told)
        for path in segments(tmp_path):
            whole = seg.decode(path.read_bytes())
            data = seg.encode(seg.Segment(whole.index, whole.texts, whole.blocks, whole.origins))
            path.with_name(f"000000001-{zlib.crc32(data):08x}{seg.SUFFIX}").write_bytes(data)
            path.unlink()
        for name in ("manifest.json", "ledger.txt"):
            (tmp_path / name).unlink()
        with pytest.raises(BadInput, match="run the same figure again with --out"):
            Store(tmp_path).repair()
        with pytest.raises(BadInput, match="lemmata repair"):
            _ = Store(tmp_path).manifest
        rows = carry_out(sweep, Store(tmp_path), order, Pool(), told)
    assert rows.values["square"].tolist() == [4.0, 9.0]
    assert Store(tmp_path).problems() == []


@pytest.mark.parametrize("harm", ["ledger line", "ledger gone", "ledger stale", "zip metadata", "manifest"])
def test_a_run_of_a_finished_store_mends_redundant_damage(tmp_path, capsys, harm):
    sweep, order = Sweep(Square(), (axis("value", (2.0, 3.0)),), (0,)), {"trial": "square"}
    with silence() as told:
        carry_out(sweep, Store(tmp_path), order, Pool(), told)
        finished = Store(tmp_path).entries()
        ledger, [segment, *_] = tmp_path / "ledger.txt", segments(tmp_path)
        if harm == "ledger line":
            ledger.write_bytes(ledger.read_bytes().replace(b'"manifest"', b'"manifesT"'))
        elif harm == "ledger gone":
            ledger.unlink()
        elif harm == "ledger stale":
            ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[1:]))
        elif harm == "manifest":
            (tmp_path / "manifest.json").write_text("{}")
        else:
            data = bytearray(segment.read_bytes())
            data[14] ^= 1  # a checksum of zip itself
            segment.write_bytes(data)
        assert Store(tmp_path).problems() != []
        rows = carry_out(sweep, Store(tmp_path), order, Pool(), told)
    assert rows.values["square"].tolist() == [4.0, 9.0]
    assert Store(tmp_path).problems() == []
    assert Store(tmp_path).entries() == finished  # nothing was computed again
    assert "written again" in capsys.readouterr().err or harm == "zip metadata"


def test_a_folder_without_manifest_is_run_again_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [
        "run",
        "benign-overfitting/fig4",
        "--scale",
        "smoke",
        "--seeds",
        "1",
        "--workers",
        "0",
        "--out",
        "s",
    ]
    from lemmata import desk
    from lemmata.study import study

    order = study("benign-overfitting").figure("fig4").order("smoke", seeds=1, out="s")
    filled(tmp_path / "s", [failed(1)], manifest=order.manifest())
    (tmp_path / "s" / "manifest.json").unlink()
    (tmp_path / "s" / "ledger.txt").unlink()
    again = desk.place_order("s")
    assert again.sweep.cells.ids.tolist() == order.sweep.cells.ids.tolist()
    assert words[1].endswith(again.figure.id)
    assert main(["verify", "s"]) == 2
    assert main(["repair", "s"]) == 0
    assert main(["verify", "s"]) == 0


# Sizes -----------------------------------------------------------------------------------------------------------------


def test_a_sparse_segment_is_damaged_and_not_read(tmp_path):
    small(tmp_path)
    first, _ = segments(tmp_path)
    sparse(first)
    store = Store(tmp_path)
    assert any(f"segment {first.name} is damaged" in problem for problem in store.problems())
    assert store.done() == set(ids(3))
    store.create({"command": "x"})
    assert Store(tmp_path).problems() == []


def test_a_large_file_that_ends_like_a_segment_is_refused_and_left_alone(tmp_path):
    small(tmp_path)
    first, _ = segments(tmp_path)
    end = first.read_bytes()[-22:]
    sparse(first)
    with first.open("ab") as file:
        file.write(end)
    for use in (Store(tmp_path).done, lambda: Store(tmp_path).create({})):
        with pytest.raises(BadInput, match="GiB of memory, and this machine has"):
            use()
    assert first.exists()


def test_a_sparse_manifest_and_ledger_are_mended(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger_module, "MAX_LEDGER_BYTES", 10**9)
    small(tmp_path)
    for name, said in (("manifest.json", "lemmata repair"), ("ledger.txt", "of the ledger is damaged")):
        sparse(tmp_path / name)
        assert any(said in problem for problem in Store(tmp_path).problems())
        Store(tmp_path).repair()
        assert Store(tmp_path).problems() == []


@pytest.mark.parametrize("name", ["a link to nothing", "a pipe"])
def test_a_segment_that_is_no_file_is_damaged(tmp_path, name):
    small(tmp_path)
    first, _ = segments(tmp_path)
    first.unlink()
    first.symlink_to(tmp_path / "nowhere") if name == "a link to nothing" else os.mkfifo(first)
    store = Store(tmp_path)
    assert ids(1)[0] in "".join(store.problems())
    assert store.done() == set(ids(3))
    store.create({"command": "x"})
    assert Store(tmp_path).problems() == []


def test_shapes_that_would_make_a_small_file_fill_the_memory_are_refused(tmp_path):
    n = 20_000
    wide, tall = np.zeros((1, n), np.float32), np.zeros((n, 1), np.float32)
    store = filled(tmp_path, [outcome(1, x=wide), outcome(2, x=tall)])
    with pytest.raises(BadInput, match=r"variable 'x' has too different shapes .*\(1, 20000\), \(20000, 1\)"):
        store.read(ids(1, 2))
    assert store.read(ids(1)).values["x"].shape == (1, 1, n)


def test_empty_arrays_of_large_shapes_are_refused():
    pieces = [(np.array([k]), np.zeros((1, *shape))) for k, shape in enumerate([(0, 10**9), (10**9, 0)])]
    with pytest.raises(BadInput, match="too different shapes"):
        padded("x", 2, pieces)
    with pytest.raises(BadInput, match="GiB of memory"):
        padded("x", 10**12, [(np.array([0]), np.zeros((1, 1000)))])
    with pytest.raises(BadInput, match="different numbers of dimensions"):
        padded("x", 2, [(np.array([0]), np.zeros(1)), (np.array([1]), np.zeros((1, 1)))])


def test_a_segment_that_claims_more_cells_than_it_has_bytes_is_damaged():
    said = b'"cells": 0, "blocks": [], "origins": {}'
    data = seg.encode(seg.gather([]))
    assert said in data
    with pytest.raises(Damaged, match="too short for its cells"):
        seg.decode(data.replace(said, b'"cells":999999,"blocks":[],"origins":{}'.ljust(len(said))))


def test_a_shortage_of_memory_is_a_sentence_and_damages_nothing(tmp_path, monkeypatch):
    small(tmp_path)

    def short(*_):
        raise MemoryError

    before = sorted(path.name for path in segments(tmp_path))
    monkeypatch.setattr(seg, "_decode", short)
    with pytest.raises(BadInput, match="does not fit into the memory"):
        Store(tmp_path).done()
    with pytest.raises(BadInput, match="not enough memory"):
        Store(tmp_path).create({})
    assert sorted(path.name for path in segments(tmp_path)) == before
    monkeypatch.setattr("lemmata.lab.store.Store.problems", short)
    assert main(["verify", str(tmp_path)]) == 2


@pytest.mark.parametrize("where", ["manifest", "file"])
def test_an_axis_of_very_many_values_is_refused_before_cells_are_made(tmp_path, monkeypatch, capsys, where):
    from lemmata.study import study

    monkeypatch.chdir(tmp_path)
    values = [0.1 + k / 10**6 for k in range(20_000)]
    if where == "file":
        Path("s.toml").write_text(
            f'study = "benign-overfitting"\nfigure = "fig4"\n[axes]\n"data.weak_noise" = {values}\n'
        )
    else:
        order = study("benign-overfitting").figure("fig4").order("smoke", out="s")
        filled(tmp_path / "s", manifest={**order.manifest(), "added_axes": {"data.weak_noise": values}})
    assert main(["run", "s.toml" if where == "file" else "s", "--workers", "0"]) == 2
    assert "has 20000 values, more than 10000" in capsys.readouterr().err


@pytest.mark.parametrize(
    "said", [b"[" * 50_000, b"{}", b"[]", b'{"segment": 1, "cells": "xy", "replaces": []}']
)
def test_a_line_of_the_ledger_that_nobody_wrote_is_damaged(tmp_path, said):
    small(tmp_path)
    with (tmp_path / "ledger.txt").open("ab") as file:
        file.write(b"%08x %s\n" % (zlib.crc32(said), said))
    assert Store(tmp_path).problems() == ["line 4 of the ledger is damaged."]
    Store(tmp_path).repair()
    assert Store(tmp_path).problems() == []


def test_a_manifest_with_not_a_number_is_the_same_in_the_ledger(tmp_path):
    filled(tmp_path, manifest={"axes": {"x": [float("nan")]}})
    assert Store(tmp_path).problems() == []
    assert Store(tmp_path).sound
