"""The site: its links are checked, its tutorials are cells that compile, its pages name commands that exist."""

import ast
import json
import re
import shlex
import textwrap

import pytest

from docs.site import build, gallery, links, tutorials
from lemmata.cli import command_parser
from tests.test_house import ROOT
from tests.test_readme import commands

NAV = (build.ROOM / "mkdocs.yml").read_text(encoding="utf-8")
PAGES = sorted((ROOT / "docs").glob("*.md"))


def site(folder, **pages):
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return links.faults(folder)


def test_dead_links_and_anchors_are_found(tmp_path):
    found = site(
        tmp_path,
        index='<h1 id="top">x</h1><a href="other.html#here">1</a><a href="gone.html">2</a><a href="other.html#gone">3</a>',
        other='<b id="here"></b><img src="missing.png"><a href="mailto:x@y.z">m</a><a href="https://example.org">e</a>',
    )
    assert found == [
        "index.html links to gone.html, which does not exist",
        "index.html links to other.html#gone, a place that does not exist",
        "other.html links to missing.png, which does not exist",
    ]


def test_what_a_page_loads_from_the_network_is_found(tmp_path):
    found = site(
        tmp_path,
        a='<script src="https://cdn.example/x.js"></script>',
        b='<link rel="stylesheet" href="//fonts.example/x.css"><link rel="canonical" href="https://example.org">',
    )
    assert found == ["a.html loads https://cdn.example/x.js", "b.html loads //fonts.example/x.css"]


def test_links_out_of_the_folder_lead_to_pages_of_the_site(tmp_path):
    source = ROOT / "docs" / "performance.md"
    text = "[b](../benchmarks/README.md#a), [v](verdicts.md), [s](../src/lemmata/cli.py), [w](https://example.org), [h](#x)"
    assert build.relinked(text, source) == (
        "[b](benchmarks.md#a), [v](verdicts.md), s, [w](https://example.org), [h](#x)"
    )
    study = ROOT / "src" / "lemmata" / "studies" / "multihead" / "README.md"
    assert build.relinked("[v](../../../../docs/verdicts.md)", study, 1) == "[v](../verdicts.md)"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_is_in_the_navigation(page):
    assert f" {page.name}\n" in NAV


def test_every_tutorial_is_in_the_navigation():
    named = re.findall(r"tutorials/([\w-]+)\.md", NAV)
    assert named == [script.stem for script in tutorials.scripts()]
    assert len(named) == 4


@pytest.mark.parametrize("script", tutorials.scripts(), ids=lambda script: script.stem)
def test_a_tutorial_is_text_and_code_that_compiles(script, tmp_path):
    first, *rest = tutorials.cells(script)
    assert first.text
    assert first.body.startswith("# ")
    code = [cell.body for cell in rest if not cell.text]
    for body in code:
        ast.parse(body)
    notebook = json.loads(
        tutorials.write_page(script, tmp_path, run=False).with_suffix(".ipynb").read_text(encoding="utf-8")
    )
    assert ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"] == code


def test_a_script_becomes_a_page_with_what_it_prints_and_shows(tmp_path):
    script = tmp_path / "one.py"
    script.write_text(
        textwrap.dedent(
            """
            # %% [markdown]
            # # Title
            # %%
            import matplotlib.pyplot as plt
            print("said <b>")
            # %%
            class Table:
                def _repr_html_(self):
                    return "<table></table>"
            Table()
            # %%
            plt.figure()
            "the end"
            """
        ),
        encoding="utf-8",
    )
    page = tutorials.write_page(script, tmp_path / "out").read_text(encoding="utf-8")
    assert page.startswith("# Title\n\n[Download this page as a notebook](one.ipynb)")
    assert '<pre class="output">said &lt;b&gt;</pre>' in page
    assert '<div class="output"><table></table></div>' in page
    assert "&#x27;the end&#x27;" in page
    assert (tmp_path / "out" / "one-1.png").read_bytes().startswith(b"\x89PNG")


def test_a_failing_cell_fails_the_page(tmp_path):
    script = tmp_path / "one.py"
    script.write_text("# %% [markdown]\n# # T\n# %%\n1 / 0\n", encoding="utf-8")
    with pytest.raises(ZeroDivisionError):
        tutorials.write_page(script, tmp_path)


def test_the_commands_of_the_first_page_exist():
    typed = [shlex.split(line, comments=True) for line in commands(ROOT / "docs" / "start.md")]
    lemmata = [words[1:] for words in typed if words[0] == "lemmata"]
    assert len(lemmata) >= 3
    for words in lemmata:
        command_parser().parse_args(words)


def test_the_gallery_has_a_card_for_every_figure():
    text = gallery.page()
    studies = gallery.own_studies()
    assert text.count('<div class="card">') == sum(len(study.figures) for study in studies)
    assert all(
        f"<code>lemmata run {study.id}/{id}</code>" in text for study in studies for id in study.figures
    )


def test_thumbnails_are_light_and_of_figures_that_exist():
    known = {f"{study.id}/{id}" for study in gallery.own_studies() for id in study.figures}
    for path in gallery.ROOM.rglob("*.png"):
        assert f"{path.parent.name}/{path.stem}" in known
        assert path.stat().st_size < 40_000
