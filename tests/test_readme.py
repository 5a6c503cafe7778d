"""What the README and the page on use tell a reader to type: every command is one, every block of Python runs."""

import contextlib
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import lemmata as lm
from lemmata.cli import command_parser, main
from lemmata.desk import place_order
from lemmata.study import study

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "using.md"]
MOST_WORDS = 600
LARGEST_PICTURE = 120_000
SMALL = {
    'scale="quick"': 'scale="smoke"',
    "[4, 8, 12, 20]": "[2, 4]",
    "samples=20": "samples=4",
    "workers=2": "workers=0",
}
"""What the README says at the sizes of its picture, and what the test runs instead."""


def blocks(page, language):
    """The blocks of a page that are of a language; a block of commands names none."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [block for own, block in found if own == language]


def commands(page):
    return [line for block in blocks(page, "") for line in block.splitlines() if line.strip()]


TYPED = [line for page in PAGES for line in commands(page)]
CHEAP = ("list", "show", "predict", "ledger", "cite")


def test_the_readme_is_short_and_its_picture_small():
    assert len(PAGES[0].read_text(encoding="utf-8").split()) <= MOST_WORDS
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", PAGES[0].read_text(encoding="utf-8")):
        assert (ROOT / picture).stat().st_size < LARGEST_PICTURE


@pytest.mark.parametrize("line", dict.fromkeys(TYPED))
def test_every_command_is_one(line, capsys, tmp_path, monkeypatch):
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    elif words[0] == "pip":
        assert words == ["pip", "install", "."]
        assert (ROOT / "pyproject.toml").exists()
    else:
        assert words[0] == "lemmata"
        command_parser().parse_args(words[1:])
        if words[1] in CHEAP:
            monkeypatch.chdir(tmp_path)
            assert main(words[1:]) == 0
            assert capsys.readouterr().out


def test_names_in_commands_that_train_are_known():
    for words in [shlex.split(line, comments=True) for line in TYPED]:
        if words[:2] == ["lemmata", "run"] and not words[2].endswith(".toml"):
            options = command_parser().parse_args(words[1:])
            changes = dict(pair.split("=", 1) for pair in options.set)
            assert place_order(options.name, options.scale, changes=changes, seeds=options.seeds).sweep.cells


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(page, "python"):
        for said, small in SMALL.items():
            block = block.replace(said, small)
        exec(compile(block, str(page), "exec"), names)
    saved = {path.name for path in tmp_path.iterdir()}
    if page.name == "README.md":
        assert "benign-overfitting.png" in saved
        assert "boundary-exponent" in capsys.readouterr().out
    else:
        assert {"mine.nc", "runs"} <= saved


def test_the_readme_has_the_sizes_that_its_test_makes_smaller():
    text = "".join(blocks(PAGES[0], "python"))
    assert all(said in text for said in SMALL)


def test_the_python_of_the_readme_makes_the_picture_of_make_demo():
    """The same cells as the command of `make demo`, so the same picture."""
    given = {}

    class Asked(Exception):
        pass

    class Figure:
        def run(self, **options):
            given.update(options)
            raise Asked

    class Study:
        def figure(self, id):
            given["figure"] = id
            return Figure()

    code = "".join(blocks(PAGES[0], "python"))
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Asked):
        patch.setattr(lm, "study", lambda id: Study())
        exec(compile(code, "README.md", "exec"), {})
    demo = re.search(r"lemmata (run .+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert demo is not None
    options = command_parser().parse_args(shlex.split(demo[1]))
    changes = dict(pair.split("=", 1) for pair in options.set)
    theirs = place_order(
        options.name, options.scale, changes=changes, seeds=options.seeds, reading=options.reading
    )
    del given["workers"]
    given["changes"] = given.pop("set")
    ours = study("benign-overfitting").figure(given.pop("figure")).order(**given)
    assert [cell.id for cell in ours.sweep.cells] == [cell.id for cell in theirs.sweep.cells]
    assert len(ours.sweep.cells) == 120  # the caption says so


def test_the_sweep_file_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(ROOT / "docs" / "using.md", "toml")
    Path("my-sweep.toml").write_text(block, encoding="utf-8")
    said = tomllib.loads(block)
    sweep = place_order("my-sweep.toml").sweep
    assert sweep.dims["samples"] == tuple(said["axes"]["data"]["samples"])
    assert len(sweep.seeds) == said["seeds"]
