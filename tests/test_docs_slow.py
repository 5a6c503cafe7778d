"""The whole site builds without a dead link, and every tutorial runs."""

import pytest

from docs.site import build, links, tutorials

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("script", tutorials.scripts(), ids=lambda script: script.stem)
def test_a_tutorial_runs(script, tmp_path):
    page = tutorials.write_page(script, tmp_path)
    assert 'class="output"' in page.read_text(encoding="utf-8")


def test_the_site_builds_and_its_links_lead_somewhere(tmp_path):
    pytest.importorskip("zensical", reason="needs lemmata[docs]")
    site = build.build(tmp_path, run=False)
    assert len(list(site.rglob("*.html"))) > 30
    assert links.faults(site) == []


def test_examples_in_docstrings_become_blocks():
    pytest.importorskip("griffe", reason="needs lemmata[docs]")
    from docs.site.docstrings import listed

    text = listed("Say it.\n\n`a`, `b`: two.\n\n>>> 1\n1\n\nMore.")
    assert text == "Say it.\n\n- `a`, `b`: two.\n\n```pycon\n>>> 1\n1\n```\n\nMore."
