"""Data sets are stored without pickles, checked when they are loaded, and know where they come from."""

import hashlib
import json
import zipfile

import numpy as np
import pytest

from lemmata import data
from lemmata.cli import main
from lemmata.data.catalogue import CATALOGUE
from lemmata.data.npz import content_sha256, read_npz, write_npz
from lemmata.data.store import SMALLEST_LIMIT, data_folder
from lemmata.errors import BadInput
from lemmata.study import studies
from tests.data.layouts import cifar_files, idx_files, made_images, shrunk, tar_of, write_files

LIMIT = 1 << 20


@pytest.fixture
def mnist(tmp_path, home, monkeypatch):
    """A made MNIST that is here, and its arrays."""
    arrays = made_images()
    shrunk(monkeypatch, "mnist", arrays)
    data.get("mnist", write_files(tmp_path / "official", idx_files(arrays)))
    return arrays


# The door --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(CATALOGUE))
@pytest.mark.parametrize("ask", [data.load, data.provenance])
def test_absent_data_are_said_to_be_absent_with_the_command(home, name, ask):
    with pytest.raises(BadInput) as raised:
        ask(name)
    assert str(raised.value) == f"data absent: `lemmata data get {name}`"
    assert not home.exists()


def test_an_unknown_name_gets_the_closest_known_one(home):
    for ask in (data.load, data.provenance, data.get):
        with pytest.raises(BadInput, match="did you mean 'fashion-mnist'"):
            ask("fashon-mnist")


@pytest.mark.parametrize("wrong", [None, 3, b"mnist", ["mnist"]])
def test_a_name_that_is_no_text_is_bad_input(home, wrong):
    for ask in (data.load, data.provenance, data.get):
        with pytest.raises(BadInput, match="name"):
            ask(wrong)


def test_the_folder_is_that_of_the_environment_or_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("LEMMATA_DATA", str(tmp_path / "named"))
    assert data_folder() == tmp_path / "named"
    monkeypatch.delenv("LEMMATA_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert data_folder() == tmp_path / "xdg" / "lemmata" / "data"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".local" / "share" / "lemmata" / "data"


def test_provenance_names_the_files_with_their_checksums(mnist, home, tmp_path):
    told = data.provenance("mnist")
    assert told["sha256"] == hashlib.sha256((home / "mnist.npz").read_bytes()).hexdigest()
    assert (told["data_set"], told["file"], told["form"]) == ("mnist", "mnist.npz", "made")
    assert told["content"] == content_sha256(mnist)
    made = {one["file"]: one["sha256"] for one in told["made_from"]}
    assert made == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (tmp_path / "official").iterdir()
    }
    assert [one["pinned"] for one in told["made_from"]] == [False] * 4  # made files are not the official ones


def test_provenance_of_an_archive_is_that_of_the_archive(tmp_path, home, monkeypatch):
    files, arrays = cifar_files()
    shrunk(monkeypatch, "cifar10", arrays)
    path = tar_of(tmp_path / "cifar-10-python.tar.gz", files)
    data.get("cifar10", tmp_path)  # the archive is found in the folder
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert data.provenance("cifar10")["made_from"] == [{"file": path.name, "sha256": sha256, "pinned": False}]


def test_equal_data_give_equal_files(mnist, home, tmp_path):
    first = (home / "mnist.npz").read_bytes()
    data.get("mnist", tmp_path / "official")
    assert (home / "mnist.npz").read_bytes() == first
    with zipfile.ZipFile(home / "mnist.npz") as stored:
        assert {member.date_time for member in stored.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_stored_file_is_one_that_numpy_reads_without_pickles(mnist, home):
    with np.load(home / "mnist.npz", allow_pickle=False) as stored:
        assert all(np.array_equal(stored[name], array) for name, array in mnist.items())


def test_an_npz_without_provenance_is_loaded_and_has_its_own_checksum_alone(home, monkeypatch):
    arrays = made_images()
    shrunk(monkeypatch, "mnist", arrays)
    home.mkdir()
    np.savez(home / "mnist.npz", **arrays)
    assert np.array_equal(data.load("mnist")["test_labels"], arrays["test_labels"])
    told = data.provenance("mnist")
    assert (told["made_from"], told["content"]) == ([], content_sha256(arrays))


def test_what_is_refused_leaves_what_is_here(mnist, home, tmp_path):
    files = idx_files(made_images(count=9))
    with pytest.raises(BadInput, match=r"this is not mnist: 'train_images' is uint8 \(9, 28, 28\)"):
        data.get("mnist", write_files(tmp_path / "other", files))
    assert np.array_equal(data.load("mnist")["train_images"], mnist["train_images"])
    assert [one.name for one in home.iterdir()] == ["mnist.npz"]


# Files of arrays -------------------------------------------------------------------------------------------------------


def refused(path, match, limit=LIMIT):
    with pytest.raises(BadInput, match=match):
        read_npz(path, limit)


def test_arrays_of_python_objects_are_refused_and_not_read(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.array([{}], object))
    refused(tmp_path / "a.npz", "Python objects")


def test_a_file_that_would_take_too_much_memory_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", a=np.zeros(LIMIT, np.uint8))
    assert (tmp_path / "a.npz").stat().st_size < LIMIT / 100
    refused(tmp_path / "a.npz", "more than the")


def test_a_header_that_promises_more_than_there_is_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(10, np.uint8))
    body = (tmp_path / "a.npy").read_bytes().replace(b"(10,), }       ", b"(9999999999,), }")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", body)
    refused(tmp_path / "a.npz", "a header that does not agree with its size")


@pytest.mark.parametrize("body", [b"", b"no zip", b"PK\x03\x04"])
def test_what_is_no_file_of_arrays_is_refused(tmp_path, body):
    (tmp_path / "a.npz").write_bytes(body)
    refused(tmp_path / "a.npz", "is damaged")


def test_arrays_come_back_as_they_were_written(tmp_path):
    arrays = {
        "a/b": np.arange(6.0).reshape(2, 3).T,
        "text": np.array(["one", "three"]),
        "none": np.zeros((0, 3), np.int8),
        "big": np.arange(3, dtype=">u2"),
    }
    write_npz(tmp_path / "a.npz", arrays, {"form": "x"})
    found, about = read_npz(tmp_path / "a.npz", LIMIT)
    assert about == {"form": "x"}
    assert set(found) == set(arrays)
    assert all(np.array_equal(found[name], array) for name, array in arrays.items())
    assert content_sha256(found) == content_sha256(arrays)
    found["text"][0] = "two"
    assert content_sha256(found) != content_sha256(arrays)


# The command -----------------------------------------------------------------------------------------------------------


def test_list_names_every_data_set_with_what_it_is_for_and_whether_it_is_here(mnist, home, capsys):
    capsys.readouterr()
    assert main(["data"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[0] for row in rows] == list(CATALOGUE)
    assert {row[0]: row[1] for row in rows} == {
        name: "present" if name == "mnist" else "absent" for name in CATALOGUE
    }
    by_name = {row[0]: row for row in rows}
    assert by_name["mnist"][-1] == str(home / "mnist.npz")
    assert by_name["sst2"][3:] == [
        "multihead: 6",
        CATALOGUE["sst2"].licence,
        CATALOGUE["sst2"].citation,
        "`lemmata data get sst2`",
    ]


def test_list_in_json_is_one_object(mnist, home, capsys):
    capsys.readouterr()
    assert main(["data", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folder"] == str(home)
    here = {one["id"]: one["file"] for one in told["data_sets"]}
    assert here == {name: str(home / "mnist.npz") if name == "mnist" else None for name in CATALOGUE}


def test_get_prints_the_licence_and_the_path(mnist, home, tmp_path, capsys):
    assert main(["data", "get", "mnist", "--from", str(tmp_path / "official")]) == 0
    out, err = capsys.readouterr()
    assert out == f"{home / 'mnist.npz'}\n"
    assert CATALOGUE["mnist"].licence in err


def test_verify_tells_whole_data_from_damaged_data(mnist, home, capsys):
    capsys.readouterr()
    assert main(["data", "verify"]) == 0
    assert capsys.readouterr().out == "mnist: whole\n"
    arrays, about = read_npz(home / "mnist.npz", SMALLEST_LIMIT)
    arrays["test_labels"][0] += 1
    write_npz(home / "mnist.npz", arrays, about)
    assert main(["data", "verify"]) == 1
    assert "differ from their checksum" in capsys.readouterr().out
    whole = bytearray((home / "mnist.npz").read_bytes())
    whole[len(whole) // 2] ^= 255
    (home / "mnist.npz").write_bytes(bytes(whole))
    assert main(["data", "verify", "mnist"]) == 1
    assert "is damaged" in capsys.readouterr().out
    with pytest.raises(BadInput, match="damaged"):
        data.load("mnist")


def test_verify_of_absent_data_says_so(home, capsys):
    assert main(["data", "verify"]) == 0
    assert capsys.readouterr().out == f"no data set is in {home}\n"
    assert main(["data", "verify", "cora"]) == 1
    assert capsys.readouterr().out == "cora: data absent: `lemmata data get cora`\n"


def test_celeba_is_not_downloaded(home, capsys):
    assert main(["data", "get", "celeba"]) == 2
    said = capsys.readouterr().err
    assert CATALOGUE["celeba"].home in said
    assert said.endswith("then `lemmata data get celeba --from FOLDER`.\n")


@pytest.mark.parametrize("words", [["get"], ["fetch"], ["get", "mnist", "cora"], ["get", "mnsit"]])
def test_a_wrong_command_is_one_sentence(home, capsys, words):
    try:
        code = main(["data", *words])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# The catalogue ---------------------------------------------------------------------------------------------------------


def test_the_catalogue_names_known_studies_and_whole_checksums():
    for one in CATALOGUE.values():
        assert {study for study, _ in one.meant_for} <= set(studies())
        checksums = [file.sha256 for file in one.files] + [*one.npz.values(), *one.others.values()]
        assert all(sum is None or (len(sum) == 64 and int(sum, 16)) for sum in checksums)
        for file in one.files:
            assert all(a.endswith(f"/{file.name}") and a.startswith("http") for a in file.addresses)
            if file.sha256 is None:  # nothing vouches for the bytes but the connection
                assert all(address.startswith("https://") for address in file.addresses)
