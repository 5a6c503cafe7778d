"""`lemmata new` writes a package that works as it is; what cannot work is found before a training starts."""

import os
import subprocess
import sys
import venv
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import lemmata
from lemmata import testing
from lemmata.cli import main
from lemmata.new import SKELETON, package_of
from lemmata.study import studies, study

NAME = "double-descent"
PACKAGE = package_of(NAME)
LINES = (SKELETON / "figures" / "steps.py").read_text().splitlines()
MEASURED = next(i for i, line in enumerate(LINES, 1) if "np.log(results.shrink)" in line)


def forget():
    studies.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[name]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """The folder of a new study, announced to this process as if it were installed."""
    monkeypatch.chdir(tmp_path)
    # bytecode is out of date only after a second or a new size
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert main(["new", NAME]) == 0
    monkeypatch.syspath_prepend(tmp_path / NAME)
    points = [EntryPoint(NAME, f"{PACKAGE}:STUDY", "lemmata.studies")]
    monkeypatch.setattr(sys.modules["lemmata.study"], "entry_points", lambda group: points)
    forget()
    yield tmp_path / NAME
    forget()


def change(folder, room, old, new):
    path = folder / PACKAGE / room
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    forget()


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_a_new_study_passes_every_check(written, check):
    assert check(study(NAME)) == []


def test_a_new_study_is_in_every_command(written, capsys):
    assert main(["list", NAME]) == 0
    assert "Steps to a small loss" in capsys.readouterr().out
    assert main(["predict", NAME]) == 0
    assert main(["ledger", NAME]) == 0
    assert main(["run", f"{NAME}/steps", "--scale", "smoke", "--workers", "0"]) == 0
    assert Path(f"runs/{NAME}/steps/smoke/steps.png").exists()
    assert main(["check", NAME, "--workers", "0", "--json"]) == 0
    said = capsys.readouterr().out
    assert said.count('"verdict": "holds"') == 4  # two claims, two readings
    assert '"verdict": "fails"' not in said
    assert main(["report", NAME]) == 0
    assert "Gradient descent on a bowl" in Path("report.html").read_text()


def test_its_own_tests_are_one_line_and_fail_with_a_sentence(written):
    path = written / "tests" / "test_study.py"
    assert path.read_text().splitlines()[-1] == f'test_study = study_tests("{NAME}")'
    change(written, "ledger.py", "claim steps-rate", "claim step-rate")
    with pytest.raises(pytest.fail.Exception, match="unknown claim 'step-rate'; did you mean 'steps-rate'"):
        testing.study_tests(NAME)(testing.ledger)


def test_weights_that_a_trial_takes_and_does_not_use_are_found(written):
    change(
        written,
        "trials.py",
        "    def objective",
        "    def start_from(self, key, data=None, weights=None):\n"
        "        return super().start_from(key)\n\n    def objective",
    )
    [said] = testing.own(study(NAME))
    assert said.startswith(f"'{NAME}/descent' takes weights, and its start does not depend on them")


def test_a_registered_study_is_checked_against_its_lock(written, capsys):
    assert main(["lock", NAME, "--check"]) == 0
    assert f"{NAME}: no faults found; register it with: lemmata lock {NAME}" in capsys.readouterr().out
    assert main(["lock", NAME]) == 0
    assert main(["lock", PACKAGE, "--check"]) == 0
    change(written, "figures/steps.py", "1.02, because", "1.03, because")
    assert main(["lock", NAME, "--check"]) == 1
    assert "'factor-of-a-step' has changed since it was registered" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("room", "old", "new", "says"),
    [
        (
            "figures/steps.py",
            "np.log(results.shrink)",
            "np.log(results.shrinks)",
            "'factor-of-a-step' on `refuted_by`: AttributeError: 'Results' object has no attribute 'shrinks' "
            f"({PACKAGE}/figures/steps.py, line {MEASURED})",
        ),
        (
            "figures/steps.py",
            "np.log(results.shrink)",
            "np.logg(results.shrink)",
            f"the claims of '{NAME}' use what does not exist: 'numpy.logg' (steps.py, line {MEASURED}).",
        ),
        (
            "figures/steps.py",
            "            refuted_by=pace(0.95),\n",
            "",
            "cannot be loaded: TypeError: Claim.__init__() missing 1 required keyword-only argument: 'refuted_by' "
            f"({PACKAGE}/figures/steps.py, line",
        ),
        (
            "figures/steps.py",
            'axis("descent.learning_rate"',
            'axis("descent.lerning_rate"',
            "'steps' at the scale 'smoke': unknown field 'descent.lerning_rate'; did you mean 'descent.learning_rate'",
        ),
        (
            "trials.py",
            '"shrink": state',
            '"shrunk": state',
            "unknown record 'shrink'; did you mean 'shrunk'? Known:",
        ),
        (
            "figures/steps.py",
            "refuted_by=pace(0.95)",
            "refuted_by=pace(1.0)",
            "'factor-of-a-step' comes out 'holds' on `refuted_by`",
        ),
        (
            "figures/steps.py",
            '            "factor-of-a-step",\n',
            '            "steps-rate",\n',
            f"the claim id 'steps-rate' is taken twice ({PACKAGE}/figures/steps.py, line ",
        ),
        ("theory.py", "return [Condition(", "return [(", "predict gives tuple in place of a Condition"),
        ("theory.py", "1 / product)]", "1 / 0)]", "ZeroDivisionError: division by zero"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_one_sentence_before_a_training_starts(written, capsys, room, old, new, says):
    change(written, room, old, new)
    assert main(["lock", PACKAGE, "--check"]) in (1, 2)
    said = capsys.readouterr()
    assert says in said.out + said.err
    assert "Traceback" not in said.out + said.err
    assert not Path("runs").exists()


def test_a_condition_that_is_never_met_is_a_warning(written, capsys):
    change(written, "theory.py", "product < 1,", "product < 1e-9,")
    assert main(["lock", NAME, "--check"]) == 0
    assert (
        "no trial meets 'eta h < 1', a condition of 2 claims, the first 'steps-rate' ("
        in capsys.readouterr().err
    )


def test_a_registered_study_that_breaks_is_named_and_left_out_of_the_report(written, capsys):
    assert main(["lock", NAME]) == 0
    change(written, "figures/steps.py", "def template", "1 / 0\n\n\ndef template")
    assert main(["list"]) == 0
    assert main(["report"]) == 2  # nothing is stored, which is said after the note
    said = capsys.readouterr().err
    assert (
        f"the study '{NAME}' is left out: the module 'figures' of the study '{NAME}' cannot be loaded" in said
    )
    assert f"ZeroDivisionError: division by zero ({PACKAGE}/figures/steps.py, line " in said


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Double", "a study has a name of lower-case letters, digits and single hyphens"),
        ("two--hyphens", "not 'two--hyphens'"),
        ("../up", "not '../up'"),
        ("", "not ''"),
        ("multihead", "the study 'multihead' exists already"),
        ("taken", "'taken' exists already"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(name, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    assert main(["new", name]) == 2
    assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["taken"]


def test_a_name_whose_package_is_installed_is_refused(written, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["lemmata.study"], "entry_points", lambda group: [])
    studies.cache_clear()
    assert main(["new", NAME]) == 2
    assert f"the package '{PACKAGE}' is installed already" in capsys.readouterr().err


@pytest.mark.slow
def test_in_a_new_environment_it_installs_passes_its_tests_and_is_judged(tmp_path):
    """The environment sees the packages of this one, and the lab; the new package is installed as a user would."""
    venv.create(tmp_path / "env", with_pip=True)
    bin = tmp_path / "env" / "bin"
    [site] = (tmp_path / "env" / "lib").glob("python*/site-packages")
    seen = [str(Path(lemmata.__file__).parents[1]), *(p for p in sys.path if p.endswith("-packages"))]
    (site / "lab.pth").write_text("\n".join(seen) + "\n")
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "XLA_FLAGS")}

    def call(*words):
        done = subprocess.run(
            [bin / "python", "-m", *words], cwd=tmp_path, env=clean, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    call("lemmata", "new", NAME)
    call("pip", "install", "--quiet", "--no-deps", "-e", NAME)
    assert f"{len(testing.CHECKS)} passed" in call("pytest", "-q", NAME)
    assert f"{NAME}\t1\t2\t" in call("lemmata", "list")  # one figure, two claims
    said = call("lemmata", "check", NAME, "--workers", "2", "--json")
    assert said.count('"verdict": "holds"') == 4


def test_the_files_of_a_new_study_are_those_of_the_skeleton(written):
    copied = {
        path.relative_to(written / PACKAGE)
        for path in (written / PACKAGE).rglob("*")
        if path.suffix in (".py", ".md")
    }
    assert copied == {
        path.relative_to(SKELETON) for path in SKELETON.rglob("*") if path.suffix in (".py", ".md")
    }
    assert not any(
        "skeleton" in path.read_text()
        for path in written.rglob("*")
        if path.suffix in (".py", ".md", ".toml")
    )
