"""What a user types, and what comes back."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from lemmata import commands, kernels
from lemmata.cli import EXAMPLES, command_parser, main
from lemmata.figure import at_most, every_run
from lemmata.lab.store import Store
from lemmata.study import studies, study
from tests import figures as toy

RUN = ["run", "benign-overfitting/fig1", "--scale", "smoke", "--workers", "0"]


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """Figure 1 at smoke scale, run once: its folder, and what the command said."""
    folder, printed = tmp_path_factory.mktemp("cli") / "out", io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main([*RUN, "--out", str(folder), "--json"]) == 0
    return folder, json.loads(printed.getvalue())


@pytest.fixture(scope="module")
def ran(first_run):
    return first_run[0]


def said(capsys, *words):
    assert main(list(words)) == 0
    return json.loads(capsys.readouterr().out)


def test_list_names_studies_figures_and_claims(capsys):
    said_of = {s["id"]: s for s in said(capsys, "list", "--json")["studies"]}
    assert set(said_of) == set(studies())
    for id, own in studies().items():
        assert {f["id"]: f["title"] for f in said_of[id]["figures"]} == own.figures
        assert [(c["id"], c["statement"]) for c in said_of[id]["claims"]] == [
            (c.id, c.statement) for c in own.entries.values()
        ]


def test_list_is_a_line_for_each_study_and_of_one_its_figures_and_claims(capsys):
    assert main(["list"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head == "study\tfigures\tclaims\ttitle"
    assert [row.split("\t")[0] for row in rows] == list(studies())
    own = study("multihead")
    assert main(["list", "multihead"]) == 0
    names = [row.split("\t")[1] for row in capsys.readouterr().out.splitlines()[1:]]
    assert names == [f"multihead/{id}" for id in [*own.figures, *own.entries]]


def test_list_imports_nothing_heavy():
    code = (
        "import sys; from lemmata.cli import main; main(['list']);"
        "print([m for m in ('jax', 'xarray', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_run_leaves_a_picture_results_and_a_manifest(first_run):
    ran, report = first_run
    assert report["cells"] == report["done"] == 12
    assert report["failed"] == 0
    assert Path(report["picture"]).read_bytes().startswith(b"\x89PNG")
    manifest = Store(ran).manifest
    assert manifest["command"].startswith("lemmata run benign-overfitting/fig1 --scale smoke")
    assert {"versions", "platform", "precision", "seeds", "draw", "looks", "trial"} <= set(manifest)


def test_every_command_has_two_examples_that_are_commands(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE)
    assert set(listed) == set(EXAMPLES)
    for word in listed:
        with pytest.raises(SystemExit):
            main([word, "--help"])
        told = capsys.readouterr().out
        assert len(EXAMPLES[word]) >= 2
        for line in EXAMPLES[word]:
            assert f"\n  lemmata {line}\n" in told
            command_parser().parse_args(shlex.split(line))


def test_a_folder_stands_for_the_only_store_below_it(ran, capsys, tmp_path):
    home = tmp_path / "fig1"
    shutil.copytree(ran, home / "smoke" / "reading")
    assert said(capsys, "status", str(home), "--json")["done"] == 12
    assert main(["verify", str(home)]) == 0
    assert main(["figure", str(home)]) == 0
    assert (home / "smoke" / "reading" / "fig1.png").exists()
    capsys.readouterr()
    assert main(["cite", str(home)]) == 0
    assert capsys.readouterr().out.startswith("@inproceedings")
    shutil.copytree(ran, home / "smoke" / "other")
    assert main(["status", str(home)]) == 2
    error = capsys.readouterr().err
    assert "holds 2 stores; name one of them" in error
    assert str(home / "smoke" / "other") in error


def test_a_figure_stands_for_its_only_results_under_another_reading(ran, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ran, tmp_path / "runs" / "benign-overfitting" / "fig1" / "quick" / "read-out-left")
    assert main(["figure", "benign-overfitting/fig1"]) == 0
    assert "read-out-left" in capsys.readouterr().out


def test_check_judges_the_claims_of_a_figure(tmp_path, capsys):
    words = ["--scale", "smoke", "--workers", "0", "--out", str(tmp_path), "--json"]
    claims = said(capsys, "check", "benign-overfitting/fig1", *words)["claims"]
    own = study("benign-overfitting")
    assert {v["id"] for v in claims} == {entry.id for entry in own.bearing_on("fig1")}
    assert main(["check", "benign-overfitting/fg1", *words]) == 2
    assert "did you mean 'fig1'" in capsys.readouterr().err


def test_check_of_a_folder_judges_the_run_in_it(ran, capsys):
    claims = said(capsys, "check", str(ran), "--workers", "0", "--json")["claims"]
    own = study("benign-overfitting")
    assert {v["id"] for v in claims} == {entry.id for entry in own.bearing_on("fig1")}
    assert {v["reading"] for v in claims} == {next(iter(own.figure("fig1").readings))}
    assert {v["word"] for v in claims} == {"no verdict (smoke)"}


def test_a_run_says_at_once_what_it_does_and_at_the_end_what_to_type(
    first_run, capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(commands, "workers", lambda options: 0)
    words = ["run", "benign-overfitting/fig1", "--scale", "smoke", "--set", "samples=2"]
    assert main([*words, "--out", str(tmp_path / "a")]) == 0
    told = capsys.readouterr()
    assert "compiling 1 program, then 6 trainings here" in " ".join(told.err.split())
    assert "What to type next\n  lemmata check benign-overfitting/fig1\n" in told.out
    assert "No verdict" in told.out
    assert main([*words, "--out", str(tmp_path / "a")]) == 0
    assert "every training is stored already" in capsys.readouterr().err


def test_run_again_from_its_folder_does_nothing_new(ran, capsys):
    before = {id: entry.finished for id, entry in Store(ran).entries().items()}
    report = said(capsys, "run", str(ran), "--workers", "0", "--json")
    assert report["done"] == 12
    assert {id: entry.finished for id, entry in Store(ran).entries().items()} == before


def test_check_judges_a_claim_under_each_reading_with_conditions_of_what_was_run(tmp_path, capsys):
    """With another step size the condition on it has another margin: the margin shown is that of the cells that were run."""
    words = ["check", "benign-overfitting/boundary-constant", "--scale", "smoke", "--workers", "0"]
    words += ["--out", str(tmp_path), "--json"]
    readings = study("benign-overfitting").figure("fig1").readings
    plain = said(capsys, *words)["claims"]
    assert [v["reading"] for v in plain] == list(readings)
    assert {"kind", "predicted", "measured", "interval", "seeds", "draw", "tolerance"} <= set(plain[0])
    other = said(capsys, *words, "--set", "descent.learning_rate=0.05")["claims"]
    margins = [{c["name"]: c["margin"] for c in v["conditions"]} for v in (plain[0], other[0])]
    assert set(margins[0]) == set(margins[1])
    assert margins[0] != margins[1]
    assert all(c["cells"] > 1 for c in plain[0]["conditions"])


def test_an_adaptive_run_tells_its_verdicts_and_obeys_strict(monkeypatch, tmp_path, capsys):
    toy.registered(
        monkeypatch,
        toy.claim(number=lambda r: r.steps, holds=every_run(at_most(1.0, because="A toy."))),
        on="edge",
    )
    words = ["run", "toy/edge", "--adaptive", "--budget", "16", "--workers", "0", "--out", str(tmp_path)]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "fails" in told
    assert "from 16 trainings" in told
    assert main([*words, "--strict"]) == 1


def test_report_writes_a_page_a_table_or_a_record_of_what_is_stored(ran, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ran, tmp_path / "runs" / "benign-overfitting" / "fig1" / "smoke")
    words = ["report", "benign-overfitting", "--scale", "smoke", "--to"]
    assert [main([*words, name]) for name in ("page.html", "table.md", "record.json")] == [0, 0, 0]
    assert "<h1>" in Path("page.html").read_text(encoding="utf-8")
    assert "| `boundary-exponent` | " in Path("table.md").read_text(encoding="utf-8")
    judged = json.loads(Path("record.json").read_text(encoding="utf-8"))["verdicts"]
    assert {c.id for c in study("benign-overfitting").bearing_on("fig1")} <= {v["id"] for v in judged}
    assert main(["report", "--scale", "smoke", "--to", "record.json"]) == 2
    assert "of one study" in capsys.readouterr().err


def test_predict_says_in_words_where_a_margin_is_no_number(capsys):
    words = [
        "predict",
        "shallow-vit",
        "--set",
        "data.confusion_fraction=0",
        "--set",
        "network.value_error=0.6",
    ]
    code = main(words)
    text = " ".join(capsys.readouterr().out.replace("\u2502", " ").split())
    assert code == 0
    assert "asks for nothing here" in text
    assert "out of reach here" in text
    assert not {"inf", "nan"} & set(text.split())
    assert all(p["value"] for p in said(capsys, *words, "--json")["predictions"])


def test_predict_needs_no_training(capsys):
    report = said(capsys, "predict", "benign-overfitting", "--set", "data.signal_norm=25", "--json")
    values = {p["name"]: p["value"] for p in report["predictions"]}
    assert values["regime"] == "harmful"
    assert values["critical N SNR^2 (mean field, 2 C_p^2)"] == 800
    assert any(c["holds"] is False for c in report["conditions"])


def test_status_verify_export_figure_and_cite(ran, capsys, tmp_path):
    told = said(capsys, "status", str(ran), "--json")
    assert told["done"] == 12
    [(origin, rows)] = told["origins"].items()
    assert rows == 12
    assert re.fullmatch(rf"JAX {re.escape(version('jax'))} on cpu, kernels (on|off)", origin)
    assert main(["status", str(ran)]) == 0
    assert f"12 rows made by {origin}\n" in capsys.readouterr().out
    assert main(["verify", str(ran)]) == 0
    for name in ("results.nc", "results.parquet"):
        assert main(["export", str(ran), "--to", str(tmp_path / name)]) == 0
        assert (tmp_path / name).stat().st_size > 0
    import xarray as xr

    assert xr.open_dataset(tmp_path / "results.nc").sizes["samples"] == 2
    assert main(["figure", str(ran), "--format", "svg"]) == 0
    assert (ran / "fig1.svg").exists()
    capsys.readouterr()
    assert main(["cite", "benign-overfitting"]) == 0
    assert capsys.readouterr().out.startswith("@inproceedings")


def test_show_tells_fields_scales_and_claims(capsys):
    assert main(["show", "benign-overfitting/fig1"]) == 0
    text = capsys.readouterr().out
    assert "data.signal_norm" in text
    assert f"paper: {len(study('benign-overfitting').figure('fig1').sweep('paper').cells)} trainings" in text
    assert "boundary-exponent" in text


def test_show_tells_what_trains_here(capsys, monkeypatch):
    monkeypatch.setattr(kernels, "report", lambda: {"one.cc": "works", "two.cc": "error: no such thing"})
    assert main(["show", "--system"]) == 0
    text = capsys.readouterr().out
    assert f"compiler: {kernels.compiler_version()}\n" in text
    assert "  one.cc: works\n  two.cc: error: no such thing\n" in text
    assert f"JAX {version('jax')}, jaxlib {version('jaxlib')}\ndevice: cpu\n" in text
    assert main(["show"]) == 2


def test_a_sweep_file_changes_axes_and_fields(tmp_path, capsys):
    from lemmata.desk import place_order

    file = tmp_path / "sweep.toml"
    file.write_text(
        'study = "benign-overfitting"\nfigure = "fig1"\nscale = "smoke"\nseeds = 3\n'
        "[set]\nnetwork.readout_divisor = 16\n[axes]\ndata.samples = [3]\ndata.noise_ratio = [5.0, 10.0]\n"
    )
    sweep = place_order(str(file)).sweep
    assert sweep.dims["samples"] == (3,)
    assert sweep.dims["noise_ratio"] == (5.0, 10.0)
    assert len(sweep.seeds) == 3
    assert sweep.template.network.readout_divisor == 16.0  # pyright: ignore[reportAttributeAccessIssue]


BAD = [
    (["run", "benign-overfiting/fig1"], "did you mean 'benign-overfitting'"),
    (["run", "benign-overfitting/fg1"], "did you mean 'fig1'"),
    (["run", "benign-overfitting"], "name a figure"),
    ([*RUN, "--set", "data.signal_nom=3"], "did you mean 'data.signal_norm'"),
    ([*RUN[:2], "--scale", "tiny"], "unknown scale 'tiny'"),
    ([*RUN, "--set", "data.dim=-5"], "must be 3 or more"),
    ([*RUN, "--set", "data.samples=0"], "at least one sample"),
    ([*RUN, "--set", "data.signal_norm=1,nan"], "takes a finite number"),
    ([*RUN, "--set", "data.samples"], "PATH=VALUE"),
    ([*RUN, "--seeds", "0"], "at least one seed"),
    ([*RUN, "--workers", "-1"], "--workers"),
    (["check", "benign-overfitting/boundary-exponant"], "did you mean 'boundary-exponent'"),
    (["run", "missing.toml"], "cannot read the sweep file"),
    (["status", "nowhere"], "unknown study 'nowhere'"),
]


@pytest.mark.parametrize(("words", "says"), BAD)
def test_bad_input_is_one_sentence_exit_code_two_and_nothing_written(
    words, says, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert says in error
    assert len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_is_said(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert main([*RUN, "--out", str(tmp_path / "file" / "below")]) == 2
    assert "Not a directory" in capsys.readouterr().err


def test_a_diverging_run_is_recorded_and_drawn(capsys, tmp_path):
    words = [
        *RUN,
        "--out",
        str(tmp_path / "d"),
        "--set",
        "descent.learning_rate=1e36",
        "--set",
        "data.samples=2",
        "--json",
    ]
    report = said(capsys, *words)
    assert report["done"] == report["cells"] == 6
    assert report["diverged"] > 0
    assert Path(report["picture"]).exists()


def test_control_c_stops_within_seconds_and_keeps_what_is_done(tmp_path):
    words = [
        sys.executable,
        "-m",
        "lemmata",
        "run",
        "benign-overfitting/fig1",
        "--scale",
        "quick",
        "--out",
        str(tmp_path / "o"),
    ]
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=dict(os.environ)
    ) as process:
        deadline = time.time() + 60
        while not (tmp_path / "o" / "manifest.json").exists() and time.time() < deadline:
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Run the same command again" in error


def test_a_sweep_file_with_a_new_axis_is_repeated_from_its_folder(tmp_path):
    from dataclasses import replace

    from lemmata.desk import place_order

    order = replace(
        place_order(
            "benign-overfitting/fig1", "smoke", changes={"network.readout_divisor": "2"}, out=tmp_path / "o"
        ),
        axes={"data.noise_ratio": [5.0, 10.0]},
    )
    store = Store(tmp_path / "o")
    with store.locked():
        store.create(order.manifest())
    assert order.command == f"lemmata run {tmp_path / 'o'}"
    again = place_order(str(tmp_path / "o"))
    assert [cell.id for cell in again.sweep.cells] == [cell.id for cell in order.sweep.cells]
