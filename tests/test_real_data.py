"""Trials that read real data sets: provenance, absent data, and what a training takes from files."""

import hashlib
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from lemmata import desk
from lemmata.cli import main
from lemmata.descent import Descent, Draw, Learner
from lemmata.errors import BadInput
from lemmata.lab.outcome import origin_in
from lemmata.lab.work import origin
from lemmata.loop import train
from lemmata.source import trial_digest
from lemmata.study import study
from lemmata.threefry import new_key
from lemmata.trial import Computed, Precision, Supply, fixed


class Reading(Computed):
    """Reads MNIST."""

    name: ClassVar[str] = "test/reading"

    @property
    def data_sets(self):
        return ("mnist",)

    def compute(self, key):
        return {}


class Fed(Learner):
    """y = w x. Draws x = 1 and w = 0, but is fed x = 2 and, if asked for, w = 5."""

    name: ClassVar[str] = "test/fed"

    weighted: bool = fixed(default=False)
    descent: Descent = Descent(loss="squared", learning_rate=1e-9, steps=1, logs=2, stop="cap")
    precision: Precision = fixed(default="float64")

    def supplied(self, key):
        return Supply(np.full(3, 2.0), np.asarray(5.0) if self.weighted else None)

    def draw(self, key):
        return Draw(jnp.zeros(()), jnp.ones(3))

    def objective(self, params, batch, world, key):
        return jnp.mean((params * batch - 1) ** 2)

    def watch(self, state):
        return {}

    def record(self, state):
        return {"x": state.data[0], "w": state.params}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder for data sets that is empty."""
    monkeypatch.setenv("LEMMATA_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_rows_are_of_another_source_when_the_file_of_a_data_set_changes(home):
    digests = [trial_digest(Reading())]
    for content in (b"one", b"other"):
        (home / "mnist.npz").write_bytes(content)
        digests.append(trial_digest(Reading()))
    assert len(set(digests)) == 3


def test_the_origin_of_a_row_names_the_file_and_its_sha256(home):
    (home / "mnist.npz").write_bytes(b"one")
    made_by = origin(Reading())
    assert made_by.data == f"mnist.npz {hashlib.sha256(b'one').hexdigest()}"
    assert made_by.data in str(made_by)
    assert origin_in(made_by._asdict()) == made_by


def test_an_origin_from_before_there_were_data_sets_is_read():
    assert origin_in({"jax": "1", "device": "cpu", "kernels": "on"}).data == ""


@pytest.mark.parametrize(("weighted", "w"), [(False, 0.0), (True, 5.0)])
def test_a_training_takes_data_and_weights_from_files_in_place_of_what_it_draws(weighted, w):
    record = train(Fed(weighted))
    assert record["x"] == 2
    assert record["w"] == pytest.approx(w, abs=1e-6)


def test_weights_of_the_user_go_with_the_data_of_the_file():
    record = train(Fed(), weights=np.asarray(7.0))
    assert record["x"] == 2
    assert record["w"] == pytest.approx(7, abs=1e-6)


def test_claims_are_open_for_the_reason_that_data_are_absent(home, capsys):
    verdicts = desk.check("graph-transformer/real-tables", out=str(home / "o"))
    assert {v.verdict for v in verdicts} == {"inconclusive"}
    assert {v.note for v in verdicts} == {
        "data absent: `lemmata data get actor`, `lemmata data get citeseer`, `lemmata data get cora`"
    }
    assert "data absent: `lemmata data get actor`" in capsys.readouterr().err
    assert not (home / "o").exists()


def test_a_figure_without_its_data_says_how_to_get_them(home, capsys, tmp_path):
    words = ["run", "benign-overfitting/real-gain", "--workers", "0", "--out", str(tmp_path / "o")]
    assert main(words) != 0
    assert "data absent: `lemmata data get mnist`" in capsys.readouterr().err


@pytest.mark.slow
def test_the_other_figures_are_judged_when_data_of_one_are_absent(home, monkeypatch, tmp_path):
    own = study("graph-transformer")
    chosen = [c for c in own.claims if c.figure in ("real-tables", "agreement")]
    monkeypatch.setitem(own.__dict__, "claims", tuple(chosen))
    verdicts = desk.check("graph-transformer", out=str(tmp_path / "o"))
    assert {v.id for v in verdicts if v.measured.exists} == {"bias-sum", "two-ways"}


def test_damaged_data_are_a_sentence(home):
    from lemmata.studies.graph_transformer.trials.real import RealTables

    (home / "cora.npz").write_bytes(b"no archive")
    with pytest.raises(BadInput, match="damaged or no file of arrays"):
        RealTables(graph="cora").compute(new_key(0))
