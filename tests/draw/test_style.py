"""The style is the lab's in every picture and nowhere else; captions say what there is to say."""

import subprocess
import sys
from dataclasses import dataclass

import matplotlib
import numpy as np
import pytest
import xarray as xr

from lemmata.draw.palette import CYCLE, colours
from lemmata.draw.style import canvas, caption, key, panel, picture, shared_key, ticks_at
from lemmata.status import CAPPED, CONVERGED, DIVERGED


@dataclass
class Judged:
    id: str
    verdict: str
    scale: str = "quick"

    @property
    def word(self) -> str:
        return {"inconclusive": "open"}.get(self.verdict, self.verdict)


RESULTS = xr.Dataset(
    {"status": (("n", "seed"), [[CONVERGED, CAPPED], [DIVERGED, CONVERGED]])},
    {"n": [1, 2], "seed": [0, 1]},
    attrs={"scale": "quick", "reading": "leave it"},
)


def caption_of(text, verdicts=(), width=8.0):
    figure, _ = canvas(width=width)
    caption(figure, RESULTS, text, verdicts)
    return figure.get_supxlabel()


def test_a_picture_keeps_its_style_in_any_session_and_leaves_the_session_alone():
    @picture
    def plain(results):
        figure, axes = canvas()
        axes.plot([1, 2], [1, 2], label="a")
        panel(axes, "x", "y")
        return figure, "A line."

    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "xtick.color": "red"}):
        before = dict(matplotlib.rcParams)
        figure = plain(RESULTS)
        figure.draw_without_rendering()
        assert dict(matplotlib.rcParams) == before
        (axes,) = figure.axes
        assert axes.get_facecolor() == (1, 1, 1, 1)
        assert axes.xaxis.label.get_fontsize() == 9
        assert {tick.label1.get_color() for tick in axes.xaxis.get_major_ticks()} == {"black"}
        assert figure._repr_png_().startswith(b"\x89PNG")


def test_importing_and_drawing_chooses_no_backend(tmp_path):
    script = (
        "import sys, matplotlib; before = dict.__getitem__(matplotlib.rcParams, 'backend');"
        "import lemmata.draw.curves, lemmata.draw.phase, lemmata.draw.graphs, lemmata.draw.attention;"
        "figure, axes = lemmata.draw.style.canvas(); axes.plot([1, 2]); figure.savefig(sys.argv[1]);"
        "assert 'matplotlib.pyplot' not in sys.modules, 'pyplot';"
        "assert dict.__getitem__(matplotlib.rcParams, 'backend') is before, 'backend'"
    )
    words = [sys.executable, "-c", script, str(tmp_path / "p.png")]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_caption_says_seeds_scale_reading_and_how_runs_ended():
    said = caption_of("What it shows").replace("\n", " ")
    assert said == "What it shows. 2 seeds, quick scale, reading: leave it; runs: 1 capped, 1 diverged."


def test_a_caption_counts_verdicts_and_names_those_that_fail():
    verdicts = [Judged("a", "holds"), Judged("b", "holds"), Judged("c", "fails"), Judged("d", "inconclusive")]
    assert caption_of("x", verdicts).replace("\n", " ").endswith("4 claims: 2 holds, 1 fails (c), 1 open.")
    smoke = [Judged("a", "holds", "smoke")]
    assert caption_of("x", smoke).replace("\n", " ").endswith("Smoke scale: no verdicts.")


@pytest.mark.parametrize("width", [1.0, 2.0, 4.0])
def test_a_caption_never_breaks_a_formula(width):
    said = caption_of("Words and more words $a + b + c = d + e$ and others $x = y$.", width=width)
    assert all(line.count("$") % 2 == 0 for line in said.splitlines())
    assert len(said.splitlines()) > 1


def test_numbers_have_shades_in_order_and_words_have_colours_apart():
    lightness = [np.dot(shade[:3], (0.21, 0.72, 0.07)) for shade in colours([1, 4, 16.0, 64])]
    assert (np.diff(lightness) > 0.05).all()
    assert colours(["a", "b", "c"]) == list(CYCLE[:3])
    assert colours([3]) == [CYCLE[0]]


def test_ticks_stand_at_the_grid_and_are_thinned_where_they_crowd():
    _, axes = canvas()
    axes.set_xscale("log")
    ticks_at(axes.xaxis, [1, 10, 100])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "10", "100"]
    ticks_at(axes.xaxis, range(1, 101))
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert len(labels) == 100
    assert 3 < sum(map(bool, labels)) <= 10


def test_a_panel_with_nothing_positive_stays_linear():
    _, axes = canvas()
    axes.plot([1, 2], [-1, -2])
    panel(axes, "x", "y", log="xy")
    assert axes.get_yscale() == "linear"
    assert axes.get_xscale() == "log"


def test_a_shared_key_has_every_label_once():
    figure, axes = canvas(2)
    axes[0].plot([1], [1], label="first")
    for panel_ in axes:
        panel_.plot([1], [1], label="same")
    axes[1].plot([1], [1], label="other")
    shared_key(figure, axes)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["first", "same", "other"]
    assert key(canvas()[1]) is None
