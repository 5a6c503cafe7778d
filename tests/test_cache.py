"""What the lab runs from its cache was written by the user, whole."""

import os
import pwd
import stat
import subprocess
from pathlib import Path

import pytest

from lemmata import cache
from lemmata.cli import main
from lemmata.errors import BadInput


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "cache"))


def saved(data: bytes = b"a program") -> Path:
    path = cache.private_folder("programs") / "one"
    cache.save(path, data)
    return path


def test_what_was_saved_is_loaded():
    path = saved()
    assert cache.load(path) == b"a program"
    cache.save(path, b"another")
    assert cache.load(path) == b"another"
    assert sorted(file.name for file in path.parent.iterdir()) == ["one", "one.sha256"]


def test_a_file_is_flushed_to_disk_before_it_gets_its_name(monkeypatch):
    """A library that a power cut left empty under its name was off for ever."""
    path = cache.private_folder("programs") / "one"
    flush, rename, steps = os.fsync, os.replace, []

    def flushed(handle):
        steps.append("flush")
        flush(handle)

    def renamed(old, new):
        steps.append(Path(new).name)
        rename(old, new)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    cache.save(path, b"a program")
    assert steps == ["flush", "one.sha256", "flush", "flush", "one", "flush"]


def test_the_checksum_is_one_that_sha256sum_knows(tmp_path):
    path = saved()
    found = subprocess.run(["sha256sum", "-c", "one.sha256"], cwd=path.parent, capture_output=True, text=True)
    assert found.stdout == "one: OK\n"


def test_folders_and_files_are_private_whatever_the_umask():
    before = os.umask(0)
    try:
        path = saved()
    finally:
        os.umask(before)
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"a progrbm"),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
        lambda path: path.with_name("one.sha256").unlink(),
        lambda path: path.with_name("one.sha256").write_bytes(b"\xff"),
    ],
)
def test_a_damaged_file_counts_as_missing(damage):
    path = saved()
    damage(path)
    assert cache.load(path) is None


def test_a_file_renamed_with_its_checksum_counts_as_missing():
    """A checksum belongs to a name: one program must not be taken for another."""
    path = saved()
    path.rename(path.with_name("two"))
    path.with_name("one.sha256").rename(path.with_name("two.sha256"))
    assert cache.load(path.with_name("two")) is None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o777])
def test_a_file_that_others_may_write_to_is_refused(mode):
    path = saved()
    path.chmod(mode)
    with pytest.raises(BadInput, match=r"other users may write to '.*one'.* LEMMATA_CACHE"):
        cache.load(path)


@pytest.mark.parametrize("which", [".", "programs"])
def test_a_folder_that_others_may_write_to_is_refused(which):
    saved()
    (cache.cache_folder() / which).chmod(0o770)
    with pytest.raises(BadInput, match="other users may write to"):
        cache.private_folder("programs")


@pytest.mark.parametrize("which", [".", "kernels", "kernels/one.so"])
def test_a_run_is_refused_before_it_writes_anything(which, tmp_path, capsys):
    """Kernels are prepared by a thread, which must not print a traceback of its own."""
    cache.save(cache.private_folder("kernels") / "one.so", b"a library")
    words = [
        "run",
        "benign-overfitting/fig4",
        "--scale",
        "smoke",
        "--workers",
        "0",
        "--out",
        str(tmp_path / "s"),
    ]
    (cache.cache_folder() / which).chmod(0o777)
    with pytest.raises(BadInput, match="other users may write to"):
        cache.require_private_cache()
    assert main(words) == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if line]
    assert line.startswith("lemmata: other users may write to")
    assert not (tmp_path / "s").exists()


def test_files_and_folders_of_another_user_are_refused(monkeypatch):
    path = saved()
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(BadInput, match=r"'.*one' belongs to another user.* LEMMATA_CACHE"):
        cache.load(path)
    with pytest.raises(BadInput, match="belongs to another user"):
        cache.private_folder("programs")


def test_a_user_without_a_home_or_an_entry_in_the_list_of_users_has_a_temporary_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("LEMMATA_CACHE")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    own = tmp_path / f"lemmata-{os.getuid()}"

    def unlisted(user):
        raise KeyError(f"getpwuid(): uid not found: {user}")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unlisted)  # as in a container that runs under a number of its own
    assert cache.cache_folder() == own
    cache.save(cache.private_folder("programs") / "one", b"a program")
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "named"))
    assert cache.cache_folder() == tmp_path / "named"
    monkeypatch.delenv("LEMMATA_CACHE")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "missing")
    assert cache.cache_folder() == own
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache.cache_folder() == tmp_path / ".cache" / "lemmata"
