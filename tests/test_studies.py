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

from lemmata import registration
from lemmata.cli import main
from lemmata.errors import BadInput
from lemmata.guard import double
from lemmata.measure.compare import Condition
from lemmata.study import SCALES, studies
from lemmata.sweep import buckets
from lemmata.trial import Descending, fields, identity, put, random_key, with_precision

STUDIES = list(studies().values())
FIGURES = [pytest.param(s, id, id=f"{s.id}/{id}") for s in STUDIES for id in s.figures]
CLAIMS = [pytest.param(s, c, id=f"{s.id}/{c.id}") for s in STUDIES for c in s.claims]
ROOMS = ("data", "network", "trials", "theory", "measures", "figures", "pictures", "planted")


@pytest.fixture(autouse=True, scope="module")
def _sweeps_are_built_once():
    """The cells of a figure are the same for every test of this file; those of the scale `paper` are many."""
    with pytest.MonkeyPatch.context() as patch:
        for study in STUDIES:
            figures = study.room("figures").FIGURES
            for id, figure in figures.items():
                patch.setitem(figures, id, replace(figure, sweep=cache(figure.sweep)))
        yield


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_a_study_has_the_rooms_that_every_study_has_and_no_others(study):
    found = {path.stem for path in study.folder.iterdir() if not path.name.startswith("__")}
    assert found - {"__pycache__", "verdicts"} == {*ROOMS, "claims", "README", "lock"}
    for room in ROOMS:
        assert importlib.import_module(f"{study.package}.{room}").__doc__


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_title_page_figures_claims_and_planted_cases_agree(study):
    assert set(study.room("figures").FIGURES) == set(study.figures)
    ids = [claim.id for claim in study.claims]
    assert len(set(ids)) == len(ids)
    assert {claim.figure for claim in study.claims} <= set(study.figures)
    assert set(study.room("planted").PLANTED) == set(ids)
    for claim in study.claims:
        assert all(callable(part) for part in study.parts(claim) if part is not None)


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_the_lock_agrees_with_the_claims(study):
    assert registration.disagreements(study) == []


@pytest.mark.parametrize(("study", "id"), FIGURES)
def test_a_grid_does_not_depend_on_the_last_bits_of_powers_and_logarithms(study, id, monkeypatch):
    """They are not the same on every processor, but cells, their random keys and the lock must be."""
    grid = study.room("figures").FIGURES[id].sweep
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
    assert study.ledger
    known = {claim.id for claim in study.claims}
    for line in study.ledger:
        for name in filter(None, line.function.split(", ")):
            room, _, function = name.partition(".")
            assert hasattr(study.room(room), function), f"{line.number}: {name}"
        claims = [w.removeprefix("claim ") for w in line.held_against.split(", ") if w.startswith("claim ")]
        assert set(claims) <= known, f"{line.number}: {claims}"


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_published_verdicts_are_of_claims_as_they_are_registered(study):
    for verdict in study.published:
        figure = study.figure(study.claim(verdict["id"]).figure)
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
    for figure in map(study.figure, study.figures):
        for scale in ("smoke", "quick", "paper"):
            for reading in figure.readings:
                assert len(figure.order(scale, reading=reading).sweep.template.name)


@pytest.mark.parametrize(("study", "claim"), CLAIMS)
def test_a_claim_fails_on_its_planted_case(study, claim):
    planted = study.room("planted").PLANTED[claim.id]()
    planted.attrs |= {"study": study.id, "figure": claim.figure}
    [verdict] = study.check(planted, only=claim.id)
    assert verdict.verdict == "fails", verdict


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


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_conditions_are_functions_of_a_trial(study):
    for claim in study.claims:
        if claim.conditions:
            trial = study.figure(claim.figure).sweep("smoke").cells[0].trial
            found = study.parts(claim)[2](trial)
            assert found
            assert all(isinstance(c, Condition) for c in found)


def test_no_two_studies_share_the_identity_of_a_trial():
    ids = [identity(s.figure(id).sweep("smoke").template, 0) for s in STUDIES for id in list(s.figures)[:1]]
    assert len(set(ids)) == len(ids)


def test_the_readme_counts_the_published_verdicts_under_the_first_reading():
    said = (Path(__file__).parents[1] / "README.md").read_text()
    for study in STUDIES:
        published = {(one["id"], one["reading"]): one["verdict"] for one in study.published}
        first = {id: next(iter(study.figure(id).readings), "") for id in study.figures}
        found = [published.get((claim.id, first[claim.figure]), "not judged") for claim in study.claims]
        words = ("holds", "fails", "inconclusive", "not judged")
        row = [f"`{study.id}`", str(len(found)), *(str(found.count(word)) for word in words)]
        assert f"| {' | '.join(row)} |" in said
