"""A store returns rows as they were written, or names those that are lost."""

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr

from lemmata.errors import BadInput
from lemmata.lab import segment as seg
from lemmata.lab import store as store_module
from lemmata.lab.outcome import Origin, Outcome, failed_record
from lemmata.lab.store import Store
from lemmata.status import CONVERGED, FAILED

ROOT = Path(__file__).parents[2]


def outcome(number: int, source="a", **values) -> Outcome:
    record = {"status": np.int32(CONVERGED), "steps": np.int32(3)}
    record |= {name: np.asarray(value) for name, value in values.items()}
    return Outcome(f"{number:016x}", record, 0.5, source=source)


def failed(number: int, reason="ValueError: no") -> Outcome:
    return Outcome(f"{number:016x}", failed_record(), 0.1, reason, "Traceback ...", "a")


def ids(*numbers: int) -> list[str]:
    return [f"{number:016x}" for number in numbers]


def filled(path, *writes, manifest=None) -> Store:
    store = Store(path)
    store.create(manifest or {"command": "lemmata run x"})
    for outcomes in writes:
        store.write(outcomes, 4)
    return store


# Rows ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(seg.STORABLE, key=str), ids=str)
def test_numbers_of_every_kind_come_back_as_they_were(tmp_path, kind):
    values = np.array([[0, 1, 2], [1, 0, 3]]).astype(kind) * (1 + 2j if kind.kind == "c" else 1)
    values = values.astype(kind)
    filled(tmp_path, [outcome(1, x=values[0]), outcome(2, x=values[1])])
    rows = Store(tmp_path).read(ids(2, 1))
    assert rows.values["x"].dtype == kind
    assert (rows.values["x"] == values[::-1]).all()


def test_rows_are_found_by_identity_in_the_order_asked_for(tmp_path):
    filled(tmp_path, [outcome(1, x=1.0), outcome(2, x=2.0)], [outcome(3, x=3.0)])
    rows = Store(tmp_path).read(ids(3, 7, 1, 3))
    assert rows.found.tolist() == [0, 2, 3]
    assert rows.values["x"].tolist() == [3.0, 1.0, 3.0]
    assert Store(tmp_path).read([]).values == {}
    assert Store(tmp_path / "nowhere").read(ids(1)).found.tolist() == []


def test_records_of_different_sizes_are_padded_and_keep_their_type_on_disk(tmp_path):
    filled(tmp_path, [outcome(1, x=np.arange(2)), outcome(2, x=np.arange(3)), outcome(3)])
    x = Store(tmp_path).read(ids(1, 2, 3)).values["x"]
    np.testing.assert_array_equal(x, [[0, 1, np.nan], [0, 1, 2], [np.nan] * 3])
    assert Store(tmp_path).read(ids(2)).values["x"].dtype == np.int64
    assert Store(tmp_path).read(ids(1, 2)).values["status"].dtype == np.int32


def test_an_empty_array_and_large_numbers_survive(tmp_path):
    filled(tmp_path, [outcome(1, none=np.zeros((0, 3)), large=np.uint64(2**64 - 1), tiny=5e-324)])
    values = Store(tmp_path).read(ids(1)).values
    assert values["none"].shape == (1, 0, 3)
    assert values["large"][0] == 2**64 - 1
    assert values["tiny"][0] == 5e-324


def test_float64_in_a_folder_begun_in_float32_is_not_truncated(tmp_path):
    exact = np.float64(1) / 3
    filled(tmp_path, [outcome(1, x=np.float32(1) / 3)], [outcome(2, x=exact)])
    assert Store(tmp_path).read(ids(1, 2)).values["x"].tolist() == [float(np.float32(1) / 3), exact]
    assert Store(tmp_path).read(ids(1)).values["x"].dtype == np.float32


def test_zarr_itself_reads_a_segment(tmp_path):
    values = {"x": np.array([1.5, 2.5]), "z": np.array([1 + 2j, 3j]), "flag": np.array([True, False])}
    filled(tmp_path, [outcome(i, **{name: v[i] for name, v in values.items()}) for i in range(2)])
    [path] = (tmp_path / "segments").iterdir()
    group = zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r", zarr_format=3)
    assert group["cells/id"][:].tolist() == [0, 1]
    for name, array in values.items():
        assert (group[f"0/{name}"][:] == array).all()


def test_a_variable_of_another_rank_is_a_failed_cell_and_not_the_end(tmp_path):
    store = filled(tmp_path, [outcome(1, x=1.0)], [outcome(2, x=np.ones(3)), outcome(3, x=2.0)])
    entries = store.entries()
    assert entries[ids(2)[0]].status == "failed"
    assert "'x' has 1 dimensions here and 0 in other cells" in entries[ids(2)[0]].reason
    assert store.done() == set(ids(1, 3))


def test_a_failed_cell_keeps_reason_and_traceback_and_counts_as_missing(tmp_path):
    store = filled(tmp_path, [outcome(1), failed(2), outcome(3), failed(4, "Lost: é")])
    entries = Store(tmp_path).entries()
    assert entries[ids(2)[0]][:3] == ("failed", "ValueError: no", "Traceback ...")
    assert entries[ids(4)[0]].reason == "Lost: é"
    assert entries[ids(3)[0]][:3] == ("converged", "", "")
    assert store.done() == set(ids(1, 3))
    assert store.read(ids(2)).values["status"].tolist() == [FAILED]


def test_after_a_retry_the_new_row_counts_however_segments_were_merged(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "MERGE_COUNT", 3)
    store = filled(tmp_path, [failed(1)], [outcome(1, x=1.0)])
    for i in range(10, 20):
        store.write([outcome(i, x=0.0)], 1)
    assert store.done() >= set(ids(1))
    assert store.read(ids(1)).values["x"].tolist() == [1.0]
    assert store.entries()[ids(1)[0]].reason == ""
    store.write([failed(1)], 1)
    assert not store.done() & set(ids(1))


def test_a_merge_keeps_the_latest_row_of_a_cell_among_records_of_other_forms():
    """A failed cell is the last of its segment. After a merge it comes after the row of its second run."""
    rows = [
        seg.row(one, write, 1, {})
        for write, one in ((1, outcome(1, x=1.0)), (1, failed(2)), (2, outcome(2, x=2.0)))
    ]
    merged = seg.merge([seg.gather(rows[:2]), seg.gather(rows[2:])])
    assert merged.index["id"].tolist() == [1, 2]
    assert merged.blocks[0].arrays["x"].tolist() == [1.0, 2.0]
    assert merged.intact().all()


def test_a_store_whose_last_chunks_all_failed_is_read(tmp_path):
    filled(tmp_path, [outcome(1, x=1.0)], [failed(2), failed(3)])
    rows = Store(tmp_path).read(ids(1, 2, 3))
    np.testing.assert_array_equal(rows.values["x"], [1.0, np.nan, np.nan])
    assert Store(tmp_path).problems() == []


def test_rows_of_other_code_are_not_taken(tmp_path):
    store = filled(
        tmp_path, [outcome(1, "old", x=1.0), outcome(2, "old", x=2.0)], [outcome(1, "new", x=10.0)]
    )
    assert store.done({"new"}) == set(ids(1))
    assert store.read(ids(1, 2), {"new"}).values["x"].tolist() == [10.0]
    assert store.read(ids(1, 2), {"old"}).values["x"].tolist() == [1.0, 2.0]
    assert store.done({"neither"}) == set()


def test_every_row_tells_what_made_it(tmp_path, monkeypatch):
    monkeypatch.setattr("lemmata.lab.store.MERGE_COUNT", 2)  # segments are merged
    store = Store(tmp_path / "s")
    store.create({"versions": {"jax": "1"}})
    kernels, plain = Origin("0.10.2", "cpu", "on"), Origin("0.10.2", "cpu", "off")
    for number, origin in enumerate((kernels, kernels, plain, None)):
        store.write([replace(outcome(number), origin=origin)], 1)
    assert store.origins() == {
        "JAX 0.10.2 on cpu, kernels on": 2,
        "JAX 0.10.2 on cpu, kernels off": 1,
    }
    [path, *_] = sorted((tmp_path / "s" / "segments").iterdir())
    read = [one for outcomes in seg.left_in(path).values() for one in outcomes]
    assert {one.origin for one in read} <= {kernels, plain, None}
    assert read[0].origin == kernels


def test_many_writes_are_few_files_and_nothing_is_lost(tmp_path):
    store = filled(tmp_path)
    for i in range(50):
        store.write([outcome(i, x=float(i), curve=np.full(i % 3, i))], 1)
    assert len(list((tmp_path / "segments").iterdir())) < 1.5 * store_module.MERGE_COUNT
    rows = Store(tmp_path).read(ids(*range(50)))
    assert rows.values["x"].tolist() == list(range(50))
    assert Store(tmp_path).problems() == []


def test_the_ledger_is_shortened_when_a_run_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "LEDGER_LINES", 5)
    store = filled(tmp_path, *([outcome(i)] for i in range(20)))
    store.create({"command": "lemmata run x"})
    assert len((tmp_path / "ledger.txt").read_text().splitlines()) <= 1 + len(
        list((tmp_path / "segments").iterdir())
    )
    assert store.problems() == []
    (tmp_path / "manifest.json").unlink()
    store.repair()
    assert store.manifest["command"] == "lemmata run x"


# Manifest --------------------------------------------------------------------------------------------------------------


def test_the_first_start_is_kept_and_every_start_has_its_versions(tmp_path):
    for jax in ("1", "2"):
        store = Store(tmp_path)
        store.create({"command": "run", "versions": {"jax": jax}, "started": f"day {jax}", "seeds": [0]})
        store.create({"command": "run", "versions": {"jax": jax}, "started": "later", "seeds": [0, 1]})
        store.write([outcome(int(jax))], 1)
    manifest = Store(tmp_path).manifest
    assert manifest["started"] == "day 1"
    assert [(start["at"], start["versions"]["jax"]) for start in manifest["starts"]] == [
        ("day 1", "1"),
        ("day 2", "2"),
    ]
    assert manifest["seeds"] == [0, 1]
    entries = Store(tmp_path).entries()
    assert [entries[id].versions["jax"] for id in ids(1, 2)] == ["1", "2"]


def test_a_foreign_folder_is_refused_and_left_alone(tmp_path):
    (tmp_path / "manifest.json").write_text('{"name": "web app"}')
    with pytest.raises(BadInput, match="choose another folder"):
        Store(tmp_path).create({})
    assert [entry.name for entry in tmp_path.iterdir()] == ["manifest.json"]
    with pytest.raises(BadInput, match="not of this lab"):
        _ = Store(tmp_path).manifest


def test_a_store_of_an_earlier_version_is_refused_and_one_of_a_later_version_is_not_taken_for_damaged(
    tmp_path,
):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "ledger.sqlite").touch()
    with pytest.raises(BadInput, match="earlier version"):
        Store(tmp_path / "old").create({})
    store = filled(tmp_path / "new")
    data = seg.encode(seg.gather([])).replace(b'"format": 1', b'"format": 2')
    name = f"000000001-{store_module.zlib.crc32(data):08x}{seg.SUFFIX}"
    (tmp_path / "new" / "segments" / name).write_bytes(data)
    for use in (store.done, store.problems, lambda: store.create({})):
        with pytest.raises(BadInput, match="another version"):
            use()
    assert (tmp_path / "new" / "segments" / name).exists()


# Damage ----------------------------------------------------------------------------------------------------------------


def small(path) -> Store:
    return filled(
        path,
        [outcome(1, x=1.5, c=np.array([1, 2], np.int16)), failed(2)],
        [outcome(3, x=2.5, c=np.array([3, 4], np.int16))],
    )


RIGHT = {1: 1.5, 3: 2.5}


def files(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file() and file.name != "lock"]


def harms(data: bytes, stride: int):
    """Flip one bit, each time another one, in every `stride`-th byte, cut the file at lengths in steps of seven strides, and
    delete it. The stride of the fast test falls on all parts of the records."""
    for at in range(0, len(data), stride):
        yield data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]
    for length in range(0, len(data), 7 * stride):
        yield data[:length]
    yield None


def hurt(file: Path, data: bytes | None) -> None:
    file.unlink(missing_ok=True)
    if data is not None:
        file.write_bytes(data)


@pytest.mark.parametrize("stride", [151, pytest.param(1, marks=pytest.mark.slow)])
def test_every_flipped_byte_truncation_and_deletion_is_seen_and_never_gives_a_wrong_number(tmp_path, stride):
    small(tmp_path)
    whole = {file: file.read_bytes() for file in files(tmp_path)}
    for file, data in whole.items():
        for harm in harms(data, stride):
            hurt(file, harm)
            store = Store(tmp_path)
            assert store.problems(), (file.name, harm)
            rows = store.read(ids(1, 3))
            for k, x in zip(rows.found, rows.values.get("x", ()), strict=False):
                assert x == RIGHT[(1, 3)[k]], (file.name, harm)
            assert store.done() <= set(ids(1, 3))
        file.write_bytes(data)
    assert Store(tmp_path).problems() == []


def test_after_any_damage_a_run_computes_exactly_what_is_lost(tmp_path):
    small(tmp_path / "whole")
    for file in files(tmp_path / "whole"):
        data = file.read_bytes()
        for at in {*range(0, len(data), 997), len(data)}:
            shutil.rmtree(tmp_path / "hurt", ignore_errors=True)
            shutil.copytree(tmp_path / "whole", tmp_path / "hurt")
            harm = data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :] if at < len(data) else None
            hurt(tmp_path / "hurt" / file.relative_to(tmp_path / "whole"), harm)
            store = Store(tmp_path / "hurt")
            kept = store.done()
            lost = [number for number in RIGHT if f"{number:016x}" not in kept]
            assert len(lost) <= 1
            store.create({"command": "lemmata run x"})
            store.write([outcome(n, x=RIGHT[n], c=np.array([n, n + 1], np.int16)) for n in lost], 4)
            assert Store(tmp_path / "hurt").problems() == []
            assert store.read(ids(1, 3)).values["x"].tolist() == [1.5, 2.5]


def test_damage_inside_one_row_harms_no_other_cell(tmp_path):
    filled(tmp_path, [outcome(i, x=float(i), y=np.full(50, i)) for i in range(100)])
    [path] = (tmp_path / "segments").iterdir()
    data = bytearray(path.read_bytes())
    at = data.index(np.full(50, 42).tobytes())
    data[at + 100] ^= 1
    path.write_bytes(bytes(data))
    [problem] = Store(tmp_path).problems()
    assert problem.endswith(f"lost cells: {ids(42)[0]}.")
    assert len(Store(tmp_path).done()) == 99
    said = Store(tmp_path).repair()
    assert "99 whole rows" in said[0]
    assert len(Store(tmp_path).done()) == 99
    assert Store(tmp_path).problems() == []


def test_a_deleted_variable_and_a_deleted_chunk_are_seen_and_named(tmp_path):
    for gone in ("0/x/", "0/x/c/0"):
        shutil.rmtree(tmp_path / "s", ignore_errors=True)
        small(tmp_path / "s")
        path = min((tmp_path / "s" / "segments").iterdir())
        with zipfile.ZipFile(path) as file:
            kept = {name: file.read(name) for name in file.namelist() if not name.startswith(gone)}
        with zipfile.ZipFile(path, "w") as file:
            for name, data in kept.items():
                file.writestr(name, data)
        [problem] = Store(tmp_path / "s").problems()
        assert ids(1)[0] in problem
        assert Store(tmp_path / "s").done() == set(ids(3))


def test_damage_that_leaves_no_trace_in_the_date_of_a_file_is_seen_by_a_store_that_is_open(tmp_path):
    store = filled(tmp_path, [outcome(i, x=float(i)) for i in range(1, 4)])
    assert len(store.done()) == 3
    [path] = (tmp_path / "segments").iterdir()
    stat, data = path.stat(), bytearray(path.read_bytes())
    data[data.index(np.arange(1.0, 4.0).tobytes())] ^= 1
    path.write_bytes(bytes(data))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    rows = store.read(ids(1, 2, 3))
    assert rows.found.tolist() == [1, 2]
    assert rows.values["x"].tolist() == [2.0, 3.0]


def test_a_manifest_is_mended_from_the_ledger_and_refused_in_one_sentence_before(tmp_path):
    store = small(tmp_path)
    right = store.manifest
    (tmp_path / "manifest.json").write_text("")
    with pytest.raises(BadInput, match=f"lemmata repair {tmp_path}"):
        _ = store.manifest
    assert store.repair() == ["the manifest was written again from the ledger."]
    assert store.manifest == right
    (tmp_path / "ledger.txt").unlink()
    assert store.repair() == ["the ledger was written again from the rows."]
    (tmp_path / "manifest.json").unlink()
    store.repair()
    assert store.manifest == right
    assert store.problems() == []


def test_a_deeply_nested_manifest_is_one_sentence(tmp_path):
    small(tmp_path)
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(BadInput, match="lemmata repair"):
        _ = Store(tmp_path).manifest


# Disks and drivers -------------------------------------------------------------------------------------------------------


HOLD = """
import sys, time
from lemmata.lab.store import Store
with Store(sys.argv[1]).locked():
    print("held", flush=True)
    time.sleep(600)
"""


def python(*arguments, **options) -> subprocess.Popen:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])}
    return subprocess.Popen([sys.executable, *map(str, arguments)], env=env, text=True, **options)


def test_a_second_driver_is_refused_until_the_first_is_gone_however_it_went(tmp_path):
    store = small(tmp_path)
    with python("-c", HOLD, tmp_path, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == "held\n"
        for use in (lambda: store.create({}), lambda: store.write([outcome(9)], 1), store.repair):
            with pytest.raises(BadInput, match=f"is being written to by process {other.pid} on"):
                use()
        assert store.done() == set(ids(1, 3))  # reading needs no lock
        other.send_signal(signal.SIGKILL)
    store.write([outcome(9)], 1)


def test_a_write_that_stopped_before_the_ledger_is_found_by_the_next_run(tmp_path):
    store = small(tmp_path)
    before = (tmp_path / "ledger.txt").read_bytes()
    store.write([outcome(9, x=9.0)], 1)
    (tmp_path / "ledger.txt").write_bytes(before)
    (tmp_path / "segments" / "000000007-00000000.zarr.zip.123.tmp").write_bytes(b"half")
    assert store.done() == set(ids(1, 3, 9))
    store.create({"command": "lemmata run x"})
    assert store.problems() == []
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_merge_that_stopped_halfway_leaves_every_row_once(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "MERGE_COUNT", 3)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        filled(tmp_path, [outcome(1, x=1.0)], [outcome(2, x=2.0)], [outcome(3, x=3.0)])
    monkeypatch.undo()
    assert len(list((tmp_path / "segments").iterdir())) == 4
    assert Store(tmp_path).read(ids(1, 2, 3)).values["x"].tolist() == [1.0, 2.0, 3.0]
    Store(tmp_path).create({})
    assert Store(tmp_path).problems() == []


def test_a_kill_at_any_moment_of_any_write_loses_nothing_that_was_acknowledged(tmp_path):
    """A kill at every flush, rename and removal, and halfway through every write, with frequent merges."""
    with python(ROOT / "tests" / "lab" / "crashes.py", tmp_path, stdout=subprocess.PIPE) as process:
        moments = int(process.communicate()[0])
    assert process.returncode == 0
    assert moments > 40


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    made = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True, check=False
    )
    if not made or made.returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_one_sentence_and_what_was_finished_stays(small_disk):
    store = filled(small_disk / "s", [outcome(1, x=1.0)])
    large = outcome(2, x=np.zeros(100_000))
    with pytest.raises(BadInput, match="No space left on device; what was finished is kept: free some space"):
        store.write(
            [replace(large, record={**large.record, "x": np.float64(2.0), "y": np.zeros(100_000)})], 1
        )
    assert Store(small_disk / "s").problems() == []
    store.write([outcome(2, x=2.0)], 1)
    assert Store(small_disk / "s").read(ids(1, 2)).values["x"].tolist() == [1.0, 2.0]


def test_every_moment_at_which_a_disk_may_be_full_leaves_the_store_whole(small_disk):
    """Before each write the disk is filled up to a few bytes, with more bytes left each time."""
    store = filled(small_disk / "s", [outcome(1, x=1.0)])
    kept, filler = 1, small_disk / "filler"
    for number, pages in enumerate((0, 1, 2, 3, 4, 6)):
        filler.write_bytes(b"")
        free = os.statvfs(small_disk)
        filler.write_bytes(bytes((free.f_bavail - pages) * free.f_bsize))
        try:
            store.write([outcome(10 + number, x=1.0)], 1)
            kept += 1
        except BadInput:
            pass
        filler.unlink()
        assert len(store.done()) >= kept
        store.create({"command": "lemmata run x"})
        assert store.problems() == []
    store.write([outcome(2)], 1)


def test_a_finished_store_on_a_read_only_disk_is_read(small_disk):
    small(small_disk / "s")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    store = Store(small_disk / "s")
    assert store.read(ids(1, 3)).values["x"].tolist() == [1.5, 2.5]
    assert store.problems() == []
    assert store.manifest["command"] == "lemmata run x"
    with pytest.raises(BadInput, match="Read-only file system"):
        store.create({})


def test_a_file_size_limit_is_one_sentence(tmp_path):
    code = """
import resource, signal, sys, numpy as np
from lemmata.errors import BadInput
from tests.lab.test_store import *
store = filled(Path(sys.argv[1]), [outcome(1, x=1.0)])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    store.write([outcome(2, y=np.zeros(100_000))], 1)
except BadInput as error:
    print(error)
"""
    with python("-c", code, tmp_path, stdout=subprocess.PIPE) as process:
        said = process.communicate()[0]
    assert "File too large; what was finished is kept" in said
    assert Store(tmp_path).done() == set(ids(1))
    assert Store(tmp_path).problems() == []


def test_a_folder_that_vanishes_is_one_sentence(tmp_path):
    store = small(tmp_path / "s")
    shutil.rmtree(tmp_path / "s" / "segments")
    with pytest.raises(BadInput, match="No such file or directory"):
        store.write([outcome(5)], 1)
    [*_, lost] = Store(tmp_path / "s").problems()
    assert ids(3)[0] in lost
    shutil.rmtree(tmp_path / "s")
    with pytest.raises(BadInput, match="No such file or directory"):
        store.write([outcome(5)], 1)


def test_a_folder_that_cannot_be_is_one_sentence(tmp_path):
    store = Store(tmp_path / ("x" * 300))
    assert not store.exists
    for use in (lambda: store.manifest, lambda: store.create({}), lambda: store.done()):
        with pytest.raises(BadInput, match="File name too long"):
            use()


def test_counts_tell_how_many_there_are_of_each_status(tmp_path):
    store = filled(tmp_path, [outcome(1), outcome(2, "b"), failed(3)], [failed(1)])
    assert store.counts() == {"converged": 1, "failed": 2}
    assert store.counts({"b"}) == {"converged": 1}
    assert Store(tmp_path / "nowhere").counts() == {}


def test_a_reader_is_not_disturbed_by_a_driver_that_merges(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "MERGE_COUNT", 2)
    writer = filled(tmp_path, [outcome(1, x=1.0)])
    reader = Store(tmp_path)
    look, writes = reader._know, iter(range(2, 6))

    def meanwhile(name):
        for number in writes:
            writer.write([outcome(number, x=float(number))], 1)
            break
        return look(name)

    monkeypatch.setattr(reader, "_know", meanwhile)
    rows = reader.read(ids(*range(1, 6)))
    assert rows.values["x"].tolist() == [k + 1.0 for k in rows.found]
    assert 0 in rows.found


def test_nothing_in_a_store_is_text_that_could_be_executed(tmp_path):
    """A store contains JSON and numbers only. Objects and text are refused before they reach the disk."""
    small(tmp_path)
    for path in (tmp_path / "segments").iterdir():
        with zipfile.ZipFile(path) as file:
            for name in file.namelist():
                if name.endswith("zarr.json"):
                    described = json.loads(file.read(name))
                    assert described["zarr_format"] == 3
                    assert np.dtype(described.get("data_type", "bool")) in seg.STORABLE
                    assert [codec["name"] for codec in described.get("codecs", ())] in ([], ["bytes"])
    crafted = seg.encode(seg.gather([])).replace(
        b'"blocks": []', b'"blocks": [{"rows": 0, "arrays": [["x", "O", []]]}]'
    )
    with pytest.raises(seg.Damaged):
        seg.decode(crafted)
