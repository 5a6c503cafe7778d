"""Every study, through the registry: it lists, shows, predicts, runs, draws and judges; its claims can fail."""

import contextlib
import importlib
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr

from lemmata import registration, testing
from lemmata.cli import main
from lemmata.errors import BadInput
from lemmata.guard import double
from lemmata.report import readme
from lemmata.scale import SCALES
from lemmata.study import studies
from lemmata.sweep import buckets
from lemmata.trial import Descending, fields, identity, put, random_key, with_precision

STUDIES = list(studies().values())
FIGURES = [pytest.param(s, id, id=f"{s.id}/{id}") for s in STUDIES for id in s.figures]
ROOMS = ("data", "network", "trials", "theory", "figures", "ledger", "names", "answer")


@pytest.fixture(autouse=True, scope="module")
def _sweeps_are_built_once():
    """The cells of a figure are the same for every test of this file; those of the scale `paper` are many."""
    with pytest.MonkeyPatch.context() as patch:
        for study in STUDIES:
            for figure in study.all_figures:
                patch.setitem(study._figures, figure.id, replace(figure, sweep=cache(figure.sweep)))
        yield


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_a_study_has_the_rooms_that_every_study_has_and_no_others(study):
    found = {path.stem for path in study.folder.iterdir() if not path.name.startswith("__")}
    assert found - {"__pycache__", "verdicts", "searches"} == {*ROOMS, "README", "lock"}
    for room in ROOMS:
        assert importlib.import_module(f"{study.package}.{room}").__doc__


@pytest.mark.parametrize(("study", "id"), FIGURES)
def test_a_grid_does_not_depend_on_the_last_bits_of_powers_and_logarithms(study, id, monkeypatch):
    """They are not the same on every processor, but cells, their random keys and the lock must be."""
    grid = study.figure(id).sweep
    here = {scale: registration.grid(grid(scale)) for scale in ("quick", "paper")}
    for name in ("geomspace", "logspace", "exp", "log", "log10"):
        own = getattr(np, name)
        monkeypatch.setattr(np, name, lambda *given, own=own: np.nextafter(own(*given), np.inf))
    assert {scale: registration.grid(grid.__wrapped__(scale)) for scale in here} == here


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_a_study_shows_and_predicts(study, capsys):
    assert main(["show", study.id]) == 0
    assert study.title in capsys.readouterr().out
    assert main(["predict", study.id, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["predictions"]
    assert all({"name", "holds", "margin"} <= set(c) for c in said["conditions"])


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_the_ledger_names_functions_and_claims_that_exist(study):
    assert testing.ledger(study) == []


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_published_verdicts_are_of_claims_as_they_are_registered(study):
    for verdict in study.published:
        figure = study.figure(study.entries[verdict["id"]].figure)
        assert verdict["draw"] == figure.draw_number, verdict
        assert verdict["reading"] in (figure.readings or ("",)), verdict


@pytest.mark.parametrize(("study", "id"), FIGURES)
def test_a_figure_has_three_scales_and_its_trials_have_names(study, id, capsys):
    sweeps = [study.figure(id).sweep(scale) for scale in SCALES]
    for sweep in sweeps:
        assert all(trial.name.startswith(f"{study.id}/") for trial in sweep.cells.trials)
    assert len(sweeps[0].cells) <= len(sweeps[2].cells)
    assert main(["show", f"{study.id}/{id}"]) == 0
    shown = re.findall(r"^\w+: (\d+) trainings", capsys.readouterr().out, re.MULTILINE)
    assert shown == [str(len(sweep.cells)) for sweep in sweeps]


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_every_reading_of_a_figure_can_be_ordered_at_every_scale(study):
    assert testing.scales(study) == []


@pytest.mark.slow
@pytest.mark.parametrize(("study", "id"), FIGURES)
def test_a_figure_runs_draws_and_judges_at_smoke_scale(study, id, tmp_path, capsys):
    words = ["run", f"{study.id}/{id}", "--scale", "smoke", "--workers", "0", "--out", str(tmp_path / "o")]
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["done"] == said["cells"]
    assert (tmp_path / "o" / f"{id}.png").stat().st_size > 10_000
    conditions = [v.conditions for v in study.check(_stored(tmp_path / "o"))]
    assert all(isinstance(c.name, str) for cs in conditions for c in cs)


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_one_figure_of_a_study_runs_draws_and_judges_at_smoke_scale(study, tmp_path, capsys):
    programs = {id: len(buckets(study.figure(id).sweep("smoke").cells)) for id in study.figures}
    first = min(programs, key=programs.__getitem__)  # of those with the fewest, each of which is compiled
    test_a_figure_runs_draws_and_judges_at_smoke_scale(study, first, tmp_path, capsys)


def _stored(folder) -> xr.Dataset:
    from lemmata.desk import stored_order

    return stored_order(str(folder)).results()


def _kinds(study):
    """Trials in the smoke scale of all figures, one of every class and every choice (fields that are words or flags)."""
    found = {}
    for id in study.figures:
        for bucket in buckets(study.figure(id).sweep("smoke").cells):
            trial = bucket[0].trial
            choices = [
                (path, value) for path, value in fields(trial).items() if isinstance(value, str | bool)
            ]
            if isinstance(trial, Descending):
                found.setdefault((type(trial), *choices), trial)
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_compiled_functions_give_what_uncompiled_ones_give(study):
    for trial in _kinds(study):
        _compare(_small(trial))


def _small(trial):
    """The trial with few samples: uncompiled, they are drawn and looked at one by one."""
    for path, value in fields(trial).items():
        if path.endswith(("samples", "points", "prompts", "draws")) and value > 24:
            with contextlib.suppress(BadInput):
                trial = put(trial, path, 24)
    return trial


def _compare(trial):
    with double():
        given = with_precision(trial), random_key(trial, 0)

        def walk(one, key):
            state = one.start(key)
            after = one.step(state)
            return state, after, one.watch(after), one.record(after)

        compiled = jax.jit(walk)(*given)
        with jax.disable_jit():
            plain = walk(*given)
    pairs = [
        (np.asarray(a), np.asarray(b))
        for a, b in zip(jax.tree.leaves(compiled), jax.tree.leaves(plain), strict=True)
        if jax.numpy.issubdtype(a.dtype, jax.numpy.inexact)
    ]
    largest = max(_size(b) for _, b in pairs)
    for a, b in pairs:
        loose = 1e-4 if a.dtype == "float32" else 1e-9  # a share of runs is single in a double trial, too
        # differences of larger numbers have a few of their roundings: of the largest for a single one, of order one for others
        spread = 4 * np.finfo(a.dtype).eps * (largest if a.ndim == 0 else 1.0)
        np.testing.assert_allclose(a, b, rtol=loose, atol=max(loose * _size(b), spread))


def _size(values) -> float:
    return max(float(np.max(np.abs(values), where=np.isfinite(values), initial=0)), 1e-30)


def test_no_two_studies_share_the_identity_of_a_trial():
    ids = [identity(s.figure(id).sweep("smoke").template, 0) for s in STUDIES for id in list(s.figures)[:1]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_the_readme_of_a_study_has_the_published_verdicts(study):
    """`python -m lemmata.report.readme` writes them."""
    page = (study.folder / "README.md").read_text(encoding="utf-8")
    assert readme.written(page, readme.study_tables(study)) == page


def test_the_readme_of_the_project_counts_the_published_verdicts():
    page = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert readme.written(page, readme.project_table()) == page


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_a_published_verdict_says_what_it_means(study):
    for verdict in study.published:
        assert verdict["word"] in readme.ORDER
        assert verdict["source"] == study.entries[verdict["id"]].source
        if verdict["word"] in ("confirmed", "refuted") and verdict["scope"] == "inside":
            assert verdict["inside"][1] == verdict["cells"]


@pytest.mark.slow
def test_published_verdicts_come_out_again_from_the_command_that_the_readme_names(
    tmp_path, monkeypatch, capsys
):
    """`lemmata check chain-of-thought`, in a fresh folder: every word, and every number to a thousandth.

    Identities are rounding errors, which depend on the machine: only their words are compared.
    """
    own = next(one for one in STUDIES if one.id == "chain-of-thought")
    assert "`lemmata check chain-of-thought`" in (own.folder / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", own.id, "--json"]) == 0
    said = {(one["id"], one["reading"]): one for one in json.loads(capsys.readouterr().out)["claims"]}
    assert said.keys() == {(one["id"], one["reading"]) for one in own.published}
    for old in own.published:
        new = said[old["id"], old["reading"]]
        assert (new["verdict"], new["word"], new["seeds"]) == (old["verdict"], old["word"], old["seeds"]), old
        if new["kind"] != "identity":
            numbers = [new["measured"], *new["interval"]]
            assert numbers == pytest.approx([old["value"], old["low"], old["high"]], rel=1e-3, abs=1e-12), old


NUMBER = r"-?[\d.]+(?:e[+-]\d+)?"
QUOTED = re.compile(rf"\(`([\w-]+)`: ({NUMBER}(?: \[(?:{NUMBER}|∞|-∞), (?:{NUMBER}|∞)\])?)\)")
"""A number that a README takes from a verdict: (`claim-id`: 0.957 [0.95, 0.96])."""


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_numbers_in_the_prose_of_a_readme_are_those_of_the_verdicts(study):
    page = (study.folder / "README.md").read_text(encoding="utf-8")
    for id, number in QUOTED.findall(page):
        published = [readme.number(one) for one in study.published if one["id"] == id]
        assert number in published, f"{id}: {number}, not {published}"
