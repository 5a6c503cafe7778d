"""`lemmata refute` on claims of the studies: what it searches, what it says, and that a search that was killed goes on."""

import json
import shlex

import jax
import numpy as np
import pytest

from lemmata.cli import main
from lemmata.errors import BadInput
from lemmata.lab.pool import Pool
from lemmata.measure.margin import margin
from lemmata.search.command import budget_of, chosen
from lemmata.search.engine import Budget
from lemmata.search.price import price
from lemmata.search.problem import Problem
from lemmata.search.refute import refute
from lemmata.search.say import command
from lemmata.studies.group_imbalance.trials.exact import Lemma
from lemmata.study import studies, study
from lemmata.testing import MadeCases

FALSE, TRUE = "lemma-c44", "lemma-c44-mended"
"""A printed lemma that is false, and its mended form: exact numbers, so that a training takes no time."""


def searched(claim, folder, points=40):
    own = study("group-imbalance")
    with Pool(0) as pool:
        return refute(own, [own.claim(claim)], pool, Budget(points=points), folder)[0]


def test_a_false_lemma_is_refuted_and_its_command_gives_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    outcome = searched(FALSE, tmp_path / "search")
    assert outcome.word == "refuted"
    assert outcome.example.confirmation.violating == outcome.example.confirmation.seeds
    words = command("group-imbalance", outcome).split(" ")
    assert words[:2] == ["lemmata", "check"]
    capsys.readouterr()
    assert main([*shlex.split(command("group-imbalance", outcome))[1:], "--workers", "0", "--json"]) == 0
    assert [one["verdict"] for one in json.loads(capsys.readouterr().out)["claims"]] == ["fails"]


def test_a_true_lemma_is_not_refuted_and_the_part_that_may_violate_it_is_bounded(tmp_path):
    outcome = searched(TRUE, tmp_path)
    assert (outcome.word, outcome.points, outcome.share) == ("not refuted", 40, 1.0)
    assert outcome.smallest >= 0
    assert 0.05 < outcome.bound < 0.5


class Killed(Pool):
    """Ends a search in the middle of its trainings."""

    def __init__(self, chunks):
        super().__init__(0)
        self.left = chunks

    def run(self, work, tasks, home=None):
        for one in super().run(work, tasks, home):
            yield one
            self.left -= 1
            if self.left <= 0:
                raise KeyboardInterrupt


@pytest.mark.slow
def test_a_search_that_is_killed_twenty_times_repeats_no_cell_and_gives_the_same_answer(
    tmp_path, monkeypatch
):
    done = []
    compute = Lemma.compute

    def counted(self, key):
        done.append((str(self), jax.random.key_data(key).tolist()))
        return compute(self, key)

    whole = searched(FALSE, tmp_path / "whole", 200)
    monkeypatch.setattr(Lemma, "compute", counted)
    own = study("group-imbalance")
    kills = 0
    for _ in range(20):
        with pytest.raises(KeyboardInterrupt), Killed(1) as pool:
            refute(own, [own.claim(FALSE)], pool, Budget(points=200), tmp_path / "killed")
        kills += 1
    with Pool(0) as pool:
        last = refute(own, [own.claim(FALSE)], pool, Budget(points=200), tmp_path / "killed")[0]
    assert all(done.count(cell) == 1 for cell in done)
    assert kills == 20
    assert (last.word, last.where, last.smallest) == (whole.word, whole.where, whole.smallest)
    assert last.example.changes == whole.example.changes


def test_one_search_serves_all_claims_with_the_same_conditions(tmp_path):
    own = study("group-imbalance")
    with Pool(0) as pool:
        outcomes = refute(own, [own.claim(FALSE), own.claim(TRUE)], pool, Budget(points=20), tmp_path)
    assert outcomes[0].problem is outcomes[1].problem
    assert [one.claim for one in outcomes] == [FALSE, TRUE]


def test_where_nothing_is_inside_the_conditions_that_forbid_it_are_named(tmp_path):
    own = study("graph-transformer")
    claim = own.claim("steps-apart")
    with Pool(0) as pool:
        problem = Problem(own, [claim], price(own, claim), tmp_path, pool, constant=1e9)
        room = problem.room(problem.start)
    assert room.least < 0
    assert min(room.of.values()) == room.least


def test_the_fields_of_a_theorem_are_searched_and_those_of_measurement_are_not(tmp_path):
    own = study("multihead")
    claim = own.claim("saturation")
    with Pool(0) as pool:
        names = {one.name for one in Problem(own, [claim], price(own, claim), tmp_path, pool).space}
    assert {"data.signal", "data.noise"} <= names
    assert not names & {"simulator", "precision", "draws"}


def test_a_point_is_inside_only_where_all_of_its_cells_are(tmp_path):
    own = study("multihead")
    claim = own.claim("saturation")
    with Pool(0) as pool:
        problem = Problem(own, [claim], price(own, claim), tmp_path, pool)
        loud = {**problem.start, "data.noise": 3.0}
        assert problem.room(problem.start).least >= 0 > problem.room(loud).least
        for trial in problem.trials(problem.start):
            assert all(one.met for one in claim.conditions(trial))


@pytest.mark.parametrize("said", ["", "soon", "-3", "0", "10 m", "1d"])
def test_a_budget_that_is_none_is_refused(said):
    with pytest.raises(BadInput, match="10m"):
        budget_of(said)


def test_a_whole_study_means_the_claims_of_its_theorems_and_proofs():
    own, claims = chosen("multihead")
    assert {one.source.kind for one in claims} == {"theorem", "proof"}
    assert all(one.conditions is not None for one in claims)
    assert chosen("multihead/saturation")[1] == [own.claim("saturation")]
    with pytest.raises(BadInput, match="saturation"):
        chosen("multihead/saturatoin")


def test_bad_input_is_one_sentence_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["refute", "multihead/nothing", "--workers", "0"]) == 2
    assert main(["refute", "multihead/saturation", "--workers", "0", "--budget", "never"]) == 2
    assert main(["refute", "multihead/saturation", "--workers", "0", "--constants", "-1"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3
    assert list(tmp_path.iterdir()) == []


EVERY = [pytest.param(own, id=own.id) for own in studies().values()]


@pytest.mark.slow
@pytest.mark.parametrize("own", EVERY)
def test_every_claim_has_a_margin_and_a_price_and_none_raises_for_asking(own):
    cases = MadeCases(own)
    for claim in own.claims:
        upheld = margin(claim, cases.results(claim, "upheld_by")).values
        refuted = margin(claim, cases.results(claim, "refuted_by")).values
        assert (upheld[~np.isnan(upheld)] >= 0).any(), claim.id
        assert (refuted < 0).any(), claim.id
        assert price(own, claim) is not None, claim.id
