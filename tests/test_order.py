"""Orders: figures run as they were given, stores know their order, changes are obeyed or refused."""

from dataclasses import replace

import numpy as np
import pytest

from lemmata import desk
from lemmata.errors import BadInput
from lemmata.lab.pool import Pool
from lemmata.order import run_all
from lemmata.results import trial_at
from lemmata.sweep import Sweep, axis
from tests import figures as toy
from tests.toys import Decay, Square


@pytest.fixture
def own(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return toy.registered(monkeypatch)


def test_a_figure_with_a_sweep_of_ones_own_runs_that_sweep(own, tmp_path):
    mine = replace(own.figure("rates"), sweep=lambda scale: Sweep(Decay(), (axis("rate", (0.3,)),), (0,)))
    results = mine.run("smoke", out=tmp_path / "mine")
    assert results.rate.values.tolist() == [0.3]


def test_a_store_made_with_changes_and_more_seeds_is_found_again_as_it_is(own):
    with Pool(0) as pool:
        own.figure("rates").order("smoke", changes={"cap": "60"}, seeds=3).run(pool, lambda *_: None)
    again = desk.stored_order("toy/rates", "smoke")
    assert again.changes == {"cap": "60"}
    results = again.results()
    assert results.status.notnull().all()
    assert results.sizes["seed"] == 3
    assert trial_at(results).cap == 60
    assert [order.figure.id for order in desk.stored_orders(own, "smoke")] == ["rates"]


def test_a_run_from_a_folder_obeys_another_out(own, tmp_path):
    own.figure("rates").run("smoke")
    order = desk.place_order("runs/toy/rates/smoke", out=str(tmp_path / "else"))
    assert order.store.path == tmp_path / "else"


def test_a_run_into_the_store_of_another_figure_is_refused(own, tmp_path):
    own.figure("rates").run("smoke", out=tmp_path / "o")
    with pytest.raises(BadInput, match="already holds toy/rates"):
        own.figure("moved").run("smoke", out=tmp_path / "o")


def test_cells_that_other_figures_of_a_study_share_are_run_once(own, tmp_path, capsys):
    wider = lambda scale: Sweep(Decay(), (axis("rate", (0.5, 0.3)),), (0, 1))  # noqa: E731
    orders = [own.figure("rates").order("smoke"), replace(own.figure("moved"), sweep=wider).order("smoke")]
    told = {}

    def shown(name):
        told[name] = []
        return lambda *said: told[name].append(said)

    run_all(orders, Pool(), shown)
    assert [counts[0] for counts in told.values()] == [(0, 4), (2, 4)]
    assert (
        "2 cells of 'runs/toy/moved/smoke' are copied from 'runs/toy/rates/smoke'" in capsys.readouterr().err
    )
    elsewhere = replace(orders[1], out=tmp_path / "elsewhere")
    run_all([elsewhere], Pool(), shown)
    assert told[elsewhere.name][0] == (0, 4), "results that are kept elsewhere are made anew"


def test_readings_are_run_apart_and_judged_side_by_side(own):
    verdicts = desk.check("toy", "smoke")
    assert [v.reading for v in verdicts] == ["near", "far"]
    assert verdicts[0].measured.value > verdicts[1].measured.value
    with pytest.raises(BadInput, match="did you mean 'far'"):
        own.figure("rates").order("smoke", reading="fa")


def test_results_that_do_not_say_where_they_come_from_are_refused(own):
    with pytest.raises(BadInput, match="do not say"):
        own.check(own.figure("rates").run("smoke").drop_attrs())


def test_a_misspelt_variable_leaves_its_claim_open_and_judges_the_others(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    own = toy.registered(monkeypatch, toy.claim("wrong", number=toy.misspelt), toy.claim("right"))
    wrong, right = own.check(own.figure("rates").run("smoke"))
    assert (wrong.verdict, right.verdict) == ("inconclusive", "holds")
    assert "stepz" in wrong.note


def test_a_sweep_in_which_every_cell_fails_says_why(own, tmp_path):
    import lemmata as lm

    with pytest.raises(BadInput, match=r"every cell failed.*negative"):
        lm.run(Sweep(Square(), (axis("value", (-1.0, -2.0)),), (0,)))


def test_a_sweep_of_ones_own_is_kept_where_told(tmp_path):
    import lemmata as lm

    sweep = Sweep(Decay(), (axis("rate", (0.5,)),), (0,))
    first, second = lm.run(sweep, out=tmp_path), lm.run(sweep, out=tmp_path)
    np.testing.assert_array_equal(first.draw, second.draw)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('study = "toy"\nfigure = "rates"\nseeds = "3"', "takes a whole number"),
        ('study = "toy"\nfigure = "rates"\nscale = 3', "takes text"),
        ('study = "toy"\nfigure = "rates"\n[axes]\nrate = 0.5', "takes a list"),
        ('study = "toy"\nfigure = "rates"\nseed = 3', "did you mean 'seeds'"),
        ('study = "toy"', "does not name a figure"),
        ('study = "toy"\nfigure = "rates"\nseeds = 0', "at least one seed"),
    ],
)
def test_a_sweep_file_with_nonsense_is_refused_in_one_sentence(own, tmp_path, text, says):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(BadInput, match=says):
        desk.place_order(str(tmp_path / "s.toml")).sweep  # noqa: B018


def test_a_sweep_file_writes_into_a_folder_of_its_own(own, tmp_path):
    (tmp_path / "mine.toml").write_text('study = "toy"\nfigure = "rates"\nscale = "smoke"\n[set]\ncap = 70\n')
    order = desk.place_order(str(tmp_path / "mine.toml"))
    assert str(order.store.path) == "runs/mine"
    assert order.sweep.template.cap == 70
