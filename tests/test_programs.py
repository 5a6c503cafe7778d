"""Programs are traced once, for as long as nothing changes that they depend on."""

import hashlib
import pickle
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lemmata
from lemmata import programs
from lemmata.cache import private_folder
from lemmata.errors import BadInput
from lemmata.lab.run import run
from lemmata.programs import Program, cached
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.studies.graph_transformer.trials.nodes import Surveying
from lemmata.study import study
from lemmata.threefry import new_key
from lemmata.trial import Trial
from tests.toys import Decay

OURS = BenignOverfitting()


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """A cache that holds nothing but kernels, which are not what is tested here and take seconds."""
    (tmp_path / "kernels").symlink_to(private_folder("kernels"))
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path))
    monkeypatch.setattr(programs, "_cache_enabled", True)


class Counted:
    """A function that counts how often it is traced; a program of it, as a new process makes it."""

    def __init__(self):
        self.traces = 0

    def program(self, trial: Trial = OURS, options: dict[str, int | bool] | None = None) -> Program:
        return Program(self._function(), lambda _: trial, options)

    def of_module(self, module: str) -> Program:
        """A program without a trial, as if it stood in a module."""
        function = self._function()
        function.__module__ = module
        return Program(function, None)

    def _function(self):
        def turned(given):
            self.traces += 1
            return {"sum": given["x"] + given["y"], "draw": jax.random.bits(given["key"])}

        return turned


def kept_programs(cache):
    """The files of programs that a cache holds, without their checksums."""
    return [path for path in (cache / "programs").iterdir() if not path.suffix]


def given(size: int = 3) -> dict[str, jax.Array]:
    return {"x": jnp.arange(float(size)), "y": jnp.ones(size), "key": new_key(0)}


@pytest.mark.parametrize("options", [None, {"xla_backend_optimization_level": 1}])
def test_another_process_reads_what_the_first_has_traced(options):
    counted = Counted()
    for _ in range(3):
        found = counted.program(options=options)(given())
        np.testing.assert_array_equal(found["sum"], [1, 2, 3])
        assert found["draw"] == jax.random.bits(jax.random.key(0))
    assert counted.traces == 1


def test_shapes_are_known_without_tracing_again():
    counted = Counted()
    counted.program()(given())
    assert counted.program().shapes(given())["sum"].shape == (3,)
    assert counted.traces == 1


def test_other_shapes_are_another_program():
    counted = Counted()
    for size in (3, 4, 3, 4):
        counted.program()(given(size))
    assert counted.traces == 2


def test_other_code_is_traced_again(monkeypatch):
    counted = Counted()
    counted.program()(given())
    monkeypatch.setattr(programs, "trial_digest", lambda *_: "changed")
    counted.program()(given())
    assert counted.traces == 2


def test_what_jax_is_told_is_part_of_a_program():
    counted = Counted()
    counted.program()(given())
    with jax.default_matmul_precision("highest"):
        counted.program()(given())
    assert counted.traces == 2


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: data[:-1] + b"x", lambda _: b""]
)
def test_a_damaged_program_is_traced_again(tmp_path, damage):
    counted = Counted()
    counted.program()(given())
    (path,) = kept_programs(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    np.testing.assert_array_equal(counted.program()(given())["sum"], [1, 2, 3])
    assert counted.traces == 2


def test_trials_of_others_are_not_kept(tmp_path):
    counted = Counted()
    for _ in range(2):
        counted.program(Decay())(given())
    assert counted.traces == 2
    assert cached(Decay(), "something", lambda: 1) == 1
    assert not (tmp_path / "programs").exists()


def test_without_a_trial_a_program_is_kept_by_the_code_of_its_module(monkeypatch):
    counted = Counted()
    for module in ("lemmata.studies.multihead.trials.mixture", "lemmata.studies.multihead.data"):
        for _ in range(2):
            np.testing.assert_array_equal(counted.of_module(module)(given())["sum"], [1, 2, 3])
    assert counted.traces == 2
    monkeypatch.setattr(programs, "module_digest", lambda _: "changed")
    counted.of_module("lemmata.studies.multihead.data")(given())
    assert counted.traces == 3


def test_without_a_trial_the_code_of_others_is_not_kept(tmp_path):
    counted = Counted()
    for _ in range(2):
        counted.of_module("tests.toys")(given())
    assert counted.traces == 2
    assert not (tmp_path / "programs").exists()


def test_numbers_are_arguments_and_a_program_inside_another_is_a_part_of_it(tmp_path):
    inner = Counted().of_module("lemmata.studies.multihead.data")

    def doubled(given, by):
        return inner(given)["sum"] * by

    doubled.__module__ = "lemmata.studies.multihead.data"
    outer = Program(doubled, None)
    for by in (2.0, 3.0):
        np.testing.assert_array_equal(outer(given(), by), by * np.array([1, 2, 3]))
    assert len(kept_programs(tmp_path)) == 1


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "file"))
    np.testing.assert_array_equal(Counted().program()(given())["sum"], [1, 2, 3])


def test_a_program_that_calls_back_is_compiled_as_ever():
    def doubled(given):
        return jax.pure_callback(
            lambda x: 2 * np.asarray(x), jax.ShapeDtypeStruct((3,), "float64"), given["x"]
        )

    for _ in range(2):
        program = Program(doubled, lambda _: OURS)
        np.testing.assert_array_equal(program(given()), [0, 2, 4])
        assert program.shapes(given()).shape == (3,)


def test_what_reads_a_file_is_kept_by_what_the_file_holds(tmp_path):
    graph = tmp_path / "graph.npz"
    numbers = iter(range(10))

    def found() -> int:
        return cached(Surveying(path=str(graph)), "something", lambda: next(numbers))

    graph.write_bytes(b"one")
    assert [found(), found()] == [0, 0]
    graph.write_bytes(b"another")
    assert [found(), found()] == [1, 1]


class Opened:
    """To unpickle one is to execute its code."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was executed",)


def test_a_pickle_of_an_older_release_is_not_even_read(tmp_path):
    counted = Counted()
    counted.program()(given())
    (path,) = kept_programs(tmp_path)
    old = pickle.dumps(Opened())
    path.write_bytes(hashlib.sha256(old).hexdigest().encode() + b"\n" + old)
    np.testing.assert_array_equal(counted.program()(given())["sum"], [1, 2, 3])
    assert counted.traces == 2


def test_a_program_that_others_may_write_to_is_refused(tmp_path):
    counted = Counted()
    counted.program()(given())
    (path,) = kept_programs(tmp_path)
    path.chmod(0o777)
    with pytest.raises(BadInput, match="other users may write to"):
        counted.program()(given())


def test_pickle_is_for_messages_between_a_driver_and_the_workers_that_it_started():
    """Files are never unpickled: whoever could write one would run code as its reader.

    Official data files that are pickles go through a reader that refuses every name but arrays, dicts and matrices.
    """
    home = Path(lemmata.__file__).parent
    using = {
        str(path.relative_to(home)) for path in home.rglob("*.py") if "pickle." in path.read_text("utf-8")
    }
    assert using == {"lab/process.py", "lab/worker.py", "data/unpickle.py"}


def test_only_workers_keep_programs(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "_cache_enabled", False)
    counted = Counted()
    for _ in range(2):
        counted.program()(given())
    assert counted.traces == 2
    sweep = study("multihead").figure("fig2").order("smoke").sweep
    run(sweep, workers=1)
    made = {path.name for path in (tmp_path / "programs").iterdir()}
    assert len(made) > 3
    again = run(sweep, workers=1)
    assert {path.name for path in (tmp_path / "programs").iterdir()} == made
    here = run(sweep)
    for name in ("train_loss", "steps"):
        np.testing.assert_allclose(again[name], here[name], rtol=1e-9)
