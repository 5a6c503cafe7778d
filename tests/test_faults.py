"""Terminals that close, disks that are full, limits of the system, words without end: one sentence, and nothing is lost."""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from lemmata import commands, desk, ending, terminal
from lemmata.cli import main
from lemmata.errors import BadInput, few, message, unknown
from lemmata.lab import export as export_module
from lemmata.lab import run as run_module
from lemmata.lab.outcome import Outcome, failed_record
from lemmata.lab.pool import Pool
from lemmata.report.record import markdown
from lemmata.source import trial_digest
from lemmata.study import study
from tests.test_ending import HANGING, ended
from tests.test_report import claim, figure, study_with, verdict

ROOT = Path(__file__).parents[1]


def lemmata(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    script = words.replace("lemmata", f"{sys.executable} -m lemmata")
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


# Output ----------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_output_on_a_full_disk_is_one_sentence(tmp_path):
    done = lemmata("lemmata list > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (2, "lemmata: the system refuses: No space left on device.\n")


def test_a_reader_that_goes_away_is_no_failure(tmp_path):
    done = lemmata("lemmata ledger benign-overfitting | true; exit ${PIPESTATUS[0]}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_table_whose_reader_is_gone_raises_what_main_understands(monkeypatch):
    class Gone:
        encoding = "utf-8"

        def write(self, text):
            raise BrokenPipeError

        def flush(self):
            raise BrokenPipeError

        def isatty(self):
            return False

    monkeypatch.setattr(sys, "stdout", Gone())
    with pytest.raises(BrokenPipeError):
        terminal.print_table("title", ("a",), [("b",)])


# Signals ---------------------------------------------------------------------------------------------------------------


def test_a_closed_terminal_ends_a_command_after_its_last_acts(tmp_path):
    code = HANGING + "with ending.on_exit(Path('given back').touch):\n    hang()"
    returned, said = ended(tmp_path, code, signal.SIGHUP)
    assert (returned, said.strip()) == (129, ending.SENTENCE.format("its terminal was closed"))
    assert (tmp_path / "given back").exists()


def test_under_nohup_a_closed_terminal_ends_nothing(tmp_path):
    code = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + HANGING
    code += "os.kill(os.getpid(), signal.SIGHUP); time.sleep(0.3); sys.exit(7)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}
    )
    assert done.returncode == 7


# Limits of the system --------------------------------------------------------------------------------------------------


@pytest.fixture
def few_files(monkeypatch):
    """A process that may open few files, as `require_files` sees it."""
    limits = {"now": (16, 16)}
    monkeypatch.setattr("resource.getrlimit", lambda _: limits["now"])
    monkeypatch.setattr("resource.setrlimit", lambda _, new: limits.update(now=new))
    return limits


def test_too_few_open_files_are_one_sentence_before_anything_is_written(
    tmp_path, monkeypatch, capsys, few_files
):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "benign-overfitting/fig4", "--scale", "smoke", "--workers", "2"]) == 2
    assert "this process may open 16 files at a time" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BadInput, match=r"needs 72 with 2 workers; use fewer workers, or .* ulimit -n 72"):
        Pool(2)


def test_the_limit_of_open_files_is_raised_where_that_is_allowed(few_files):
    few_files["now"] = (16, 1000)
    Pool(2).close()
    assert few_files["now"] == (72, 1000)


def test_export_on_a_full_disk_tells_the_true_reason(tmp_path, monkeypatch):
    """The netCDF library says "Permission denied" when the disk is full."""

    def write(self, path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    def no_space(handle):
        raise OSError(28, "No space left on device")

    results = xr.Dataset({"status": ("seed", np.zeros(2))}, {"trial": ((), None)})
    monkeypatch.setattr(xr.Dataset, "to_netcdf", write)
    with pytest.raises(BadInput, match="Permission denied"):
        export_module.export(results, tmp_path / "a.nc")
    monkeypatch.setattr(export_module.os, "fsync", no_space)
    with pytest.raises(BadInput, match=r"cannot write '.*a\.nc': No space left on device"):
        export_module.export(results, tmp_path / "a.nc")
    assert list(tmp_path.iterdir()) == []


def test_a_shortage_of_memory_and_of_files_is_one_sentence(monkeypatch, capsys):
    for error, said in (
        (MemoryError(), "more memory than there is"),
        (OSError(24, "Too many open files", "x"), "the system refuses 'x': Too many open files"),
    ):

        def fail(error=error):
            raise error

        monkeypatch.setattr(commands, "studies", fail)
        assert main(["list"]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert said in line


# Folders of sweep files ------------------------------------------------------------------------------------------------

FILE = 'study = "benign-overfitting"\nfigure = "fig4"\nscale = "smoke"\nout = "{}"\n'


@pytest.mark.parametrize("out", ["../../..", "/tmp/elsewhere", "link/x", "a/../../b"])
def test_a_sweep_file_does_not_write_outside_the_working_folder(tmp_path, monkeypatch, capsys, out):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path / "here")
    Path("s.toml").write_text(FILE.format(out))
    assert main(["run", "s.toml", "--workers", "0"]) == 2
    said = capsys.readouterr().err
    assert f"would put its results into '{os.path.realpath(out)}', outside the working folder" in said
    assert "--out " in said
    assert desk.place_order("s.toml", out="../x").out == "../x"  # the user's own word
    Path("s.toml").write_text(FILE.format("runs/../x"))
    assert desk.place_order("s.toml").out == "runs/../x"


# What is printed -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["run", "x" * 5000],
        ["run", "benign-overfitting/fig4", "--set", f"data.{'x' * 5000}=1"],
        ["run", "benign-overfitting/fig4", "--set", f"data.samples={'x' * 5000}"],
        ["run", "benign-overfitting/fig4", "--set", "x y " * 2000],
        ["check", f"benign-overfitting/{'x ' * 3000}"],
        ["predict", "benign-overfitting", "--set", "unknown=1"],
        ["list", "--" + "x" * 5000],
        ["x" * 5000],
        ["export", "x" * 5000, "--to", "y.nc"],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_no_message_is_long(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(SystemExit):
        assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("lemmata: ")
    assert len(said) <= 600


def test_a_long_message_keeps_its_beginning_and_its_end():
    said = message(f"cannot read '{'x' * 3000}'; run again: {'many words ' * 300}and so on.")
    assert said.startswith("cannot read 'xxx")
    assert said.endswith("and so on.")
    assert len(said) <= 560
    assert message("a path /of/usual/length stays") == "a path /of/usual/length stays"
    names = [f"name{k}" for k in range(1000)]
    assert len(str(unknown("field", "name1001", names))) < 450
    assert str(unknown("field", "nam", names)).endswith(" more.")


def test_failed_cells_are_the_last_line_of_a_run_and_of_a_check(tmp_path, monkeypatch, capsys):
    order = study("benign-overfitting").figure("fig4").order("smoke")
    bad, whole = order.sweep.cells[0].id, run_module.run_chunk

    def spoiled(chunk):
        for part in whole(chunk):
            yield [
                replace(o, record=failed_record(), reason="ValueError: " + "long " * 500)
                if o.id == bad
                else o
                for o in part
            ]

    monkeypatch.setattr(run_module, "run_chunk", spoiled)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "benign-overfitting/fig4", "--scale", "smoke", "--workers", "0", "--out", "s"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines()[-1].startswith("lemmata: WARNING: 1 of 3 cells FAILED")
    [reason] = [line for line in said.out.splitlines() if "failed because" in line]
    assert len(reason) <= 600
    monkeypatch.setattr(desk, "check", lambda *words: words[-2](2, 40) or [])
    assert main(["check", "benign-overfitting", "--workers", "0"]) == 0
    assert "WARNING: 2 of 40 cells FAILED" in capsys.readouterr().err


def test_of_very_many_reasons_a_few_are_told():
    assert few(["a", "b"]) == ["a", "b"]
    assert few([str(k) for k in range(100)])[4:] == ["4", "and 95 other reasons"]


def test_a_check_counts_its_failed_cells(tmp_path, monkeypatch):
    order = study("benign-overfitting").figure("fig4").order("smoke", out=tmp_path / "fig4")
    with order.store.locked():
        order.store.create(order.manifest())
        order.store.write(
            [Outcome(c.id, failed_record(), 0.1, "no", "", trial_digest(c.trial)) for c in order.sweep.cells],
            1,
        )
    seen = []
    desk._count([order], lambda *counts: seen.append(counts))
    assert seen == [(3, 3)]


def test_markdown_of_verdicts_is_escaped():
    one = verdict("law|`x`", reading="a|b <script> [x](y) *z*\n| c")
    own = study_with(figure(claim("law|`x`"), title="<b>T|itle</b> `x`\n# big"))
    text = markdown(own, [one])
    for raw in ("<script>", "<b>", "\n# big", " `x`", "[x](y)", " *z*"):
        assert raw not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert [row.replace("\\|", "").count("|") for row in rows] == [6, 6, 6]
