"""What a notebook gets: results with names, files of them, records, pictures of any sweep, progress where a person looks on."""

import matplotlib.figure
import numpy as np
import pytest
import xarray as xr

import lemmata as lm
from lemmata import session
from lemmata.draw.sweeps import draw_sweep, wide_axes
from lemmata.errors import BadInput
from lemmata.names import COMMON, name_of, names_near
from lemmata.progress import wanted
from lemmata.results import made
from lemmata.study import studies, study
from lemmata.sweep import Sweep, axis
from lemmata.trial import fields, put
from tests.toys import Decay

GRID = Sweep(
    study("benign-overfitting").figure("fig1").sweep("smoke").template,
    (axis("data.samples", (4, 8, 16, 32)), axis("data.signal_norm", (20.0, 60.0, 100.0))),
    (0, 1, 2),
)
LAWS = {
    "test_loss": lambda trial, rng: float(0.7 / (1 + trial.data.snr)) * rng.lognormal(0, 0.1),
    "test_loss_curve": lambda trial, rng: np.linspace(0.7, 0.1, len(trial.log_steps)),
}
RESULTS = session.completed(made(GRID, LAWS), GRID)


def test_results_of_ones_own_sweep_have_the_derived_coordinates_of_the_study():
    assert {"snr", "control"} <= set(RESULTS.coords)
    assert RESULTS.control.dims == ("samples", "signal_norm")


def test_every_variable_has_a_name_and_a_unit():
    assert all(
        {"long_name", "units"} <= set(RESULTS[name].attrs) for name in RESULTS.variables if name != "trial"
    )
    assert RESULTS.samples.attrs["symbol"] == "N"
    assert RESULTS.steps.attrs["units"] == "steps"
    assert RESULTS.test_loss_curve.attrs["long_name"] == "loss on fresh data at the logged steps"


@pytest.mark.parametrize("own", studies().values(), ids=lambda own: own.id)
def test_the_names_of_a_study_are_of_its_fields_and_records(own):
    template = own.template()
    names = names_near(f"{own.package}.trials")
    assert names, f"{own.id} has no names"
    known = {path for figure in own.all_figures for path in fields(figure.sweep("smoke").template)} | {
        *fields(template)
    }
    assert {path for path in names if "." in path} <= known
    assert name_of(type(template), next(iter(names))).meaning
    assert all(len(name.meaning) < 80 for name in (*names.values(), *COMMON.values()))


def test_files_and_tables_leave_out_the_trials(tmp_path):
    masked = RESULTS.where(RESULTS.test_loss > 0)
    masked.to_netcdf(tmp_path / "mine.nc")
    with xr.open_dataset(tmp_path / "mine.nc") as again:
        assert again.samples.attrs["symbol"] == "N"
        assert "trial" not in again.coords
    assert "trial" not in RESULTS.to_dataframe().columns
    assert "trial" in RESULTS.isel(seed=0).mean("samples").coords or "trial" in RESULTS.coords


@pytest.mark.parametrize("place", [{}, {"signal_norm": 0}, {"samples": 0, "seed": 0}])
def test_any_sweep_of_one_or_two_axes_is_drawn(place, tmp_path):
    drawn = lm.picture(RESULTS.isel(place))
    assert isinstance(drawn, matplotlib.figure.Figure)
    drawn.savefig(tmp_path / "one.png")


def test_a_phase_diagram_has_the_boundary_of_the_study():
    (line,) = session.boundary(RESULTS, "samples", "signal_norm", study("benign-overfitting"))
    answer = study("benign-overfitting").answer
    norm, template = 60.0, GRID.template
    least = int(np.ceil(line.curve(np.array([norm]))[0]))
    success = [
        answer.success(put(put(template, "data.signal_norm", norm), "data.samples", n))
        for n in (least // 2, 2 * least)
    ]
    assert success == [False, True]
    assert session.boundary(RESULTS, "samples", "seed", study("benign-overfitting")) == []


def test_what_cannot_be_drawn_is_one_sentence():
    three = Sweep(GRID.template, (*GRID.axes, axis("data.tokens", (3, 4))), (0,))
    with pytest.raises(
        BadInput, match=r"too many axes for one picture; take a part of it, such as results.isel\(tokens=0\)"
    ):
        draw_sweep(made(three, LAWS))
    with pytest.raises(BadInput, match="did you mean 'test_loss'"):
        lm.picture(RESULTS, show="tets_loss")
    with pytest.raises(BadInput, match="is one number"):
        draw_sweep(RESULTS.isel(samples=0, signal_norm=0), "test_loss")
    assert wide_axes(RESULTS) == ["samples", "signal_norm"]


def test_axes_of_words_are_drawn():
    sweep = Sweep(GRID.template, (axis("simulator", ("row", "gram")),), (0, 1))
    assert draw_sweep(made(sweep, LAWS)).axes[0].get_xticklabels()[1].get_text() == "gram"


def test_a_training_gives_a_dataset():
    record = lm.train(Decay(rate=0.5), seed=3)
    assert isinstance(record, xr.Dataset)
    assert int(record.seed) == 3
    assert int(record["steps"]) == int(lm.run(Sweep(Decay(rate=0.5), (), (3,)))["steps"].sel(seed=3))


def test_the_table_of_a_trial_says_what_fields_mean():
    text = GRID.template._repr_html_()
    assert "<td>norm of the signals</td><td>|mu|</td>" in text
    assert "<th>meaning</th>" in text


def test_progress_is_shown_where_a_person_looks_on(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    assert not wanted(None)
    assert wanted(True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert wanted(None)
    assert not wanted(False)


def test_a_figure_takes_set_and_axes(tmp_path):
    results = (
        study("multihead")
        .figure("gap")
        .run("smoke", set={"data.samples": 10}, axes={"data.tokens": [4, 6]}, seeds=1, out=tmp_path)
    )
    assert results.sizes["tokens"] == 2


FIGURE = study("benign-overfitting").figure("fig1")
OF_FIGURE = FIGURE.upheld_by or next(claim.upheld_by for claim in FIGURE.claims if claim.upheld_by)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("r.nc", b""),
        ("r.csv", b"samples,"),
        ("r.json", b'{\n  "claims"'),
        ("r.tex", b"\\begin{tabular}"),
        ("r.pdf", b"%PDF"),
    ],
)
def test_results_are_exported_in_every_format(name, start, tmp_path):
    results = OF_FIGURE.results(FIGURE, "smoke")
    path = lm.export(results, tmp_path / name, "icml" if name == "r.pdf" else "")
    assert path.read_bytes().startswith(start)
    if name == "r.pdf":
        head, *rows = (tmp_path / "r.csv").read_text().splitlines()
        assert head == "panel,series,x,y,value"
        assert len(rows) > 10
        assert b"/MediaBox [ 0 0 486 " in path.read_bytes()  # 6.75 inches of 72 points
    with pytest.raises(BadInput, match="can export to"):
        lm.export(results, tmp_path / "r.xls")


def test_unknown_venues_are_refused(tmp_path):
    with pytest.raises(BadInput, match="did you mean 'icml'"):
        lm.export(RESULTS, tmp_path / "r.pdf", "icm")
    with pytest.raises(BadInput, match="a venue is for pictures"):
        lm.export(RESULTS, tmp_path / "r.nc", "icml")
