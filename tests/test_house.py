"""What a project promises around its code: versions agree, links lead somewhere, and the checks are run."""

import ast
import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest

import lemmata
from lemmata.cli import main

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def pages():
    """Every page of prose in the project, less what tools and environments bring along."""
    inside = ("src", "docs", "benchmarks", "tests")
    return sorted([*ROOT.glob("*.md"), *(page for name in inside for page in (ROOT / name).rglob("*.md"))])


def test_the_version_is_the_same_everywhere():
    citation = re.search(
        r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    changes = re.findall(
        r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert citation is not None
    assert {PROJECT["version"], citation[1], changes[0], lemmata.__version__} == {lemmata.__version__}


def test_the_command_tells_its_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"lemmata {lemmata.__version__}\n"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_of_the_project(page):
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    missing = [
        link
        for link in links
        if not (page.parent / unquote(link.partition("#")[0])).exists() and link[0] != "#"
    ]
    assert missing == []


def test_the_classifiers_name_the_pythons_that_are_tested():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    tested = re.search(r"python: \[(.+)\]", workflow)
    assert tested is not None
    prefix = "Programming Language :: Python :: "
    named = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert [name for name in named if "." in name] == re.findall(r"[\d.]+", tested[1])


def test_what_lands_is_linted_before_it_is_tested():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines[-2:] == ["make lint", "make test"]  # the last line that is printed is the one of pytest


def keeps_state(path):
    """Whether a module has state of its own: a global variable that changes, a cache, a thread, or the environment."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        words = ast.unparse(node) if isinstance(node, ast.expr | ast.Assign) else ""
        decorators = [ast.unparse(one) for one in getattr(node, "decorator_list", [])]
        if isinstance(node, ast.Global) or any(re.search(r"\b(lru_)?cache\b", one) for one in decorators):
            return True
        if re.match(r"os\.environ\[.*\] = |threading\.Thread\(", words):
            return True
    return False


def test_the_page_on_the_architecture_names_every_module_that_keeps_state():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.py)`", page.partition("## Hidden state")[2].partition("\n## ")[0]))
    package = Path(lemmata.__file__).parent
    found = {str(p.relative_to(package)) for p in package.rglob("*.py") if keeps_state(p)}
    assert {name for name in found if not name.startswith("studies/")} <= named
    assert all((package / name).is_file() for name in named)
