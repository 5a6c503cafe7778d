"""Every picture of every study is drawn from any results of its figure, also from those of runs that ended badly."""

import matplotlib
import pytest

from lemmata.draw.style import statuses
from lemmata.study import studies
from tests.draw.synthetic import lost, spoilt, synthetic

FEW = 3
"""So many pictures of each study are drawn in the quick tests, the others in the slow ones."""


def figures(slow=()):
    return [
        pytest.param(s, id, id=f"{s.id}/{id}", marks=slow if place >= FEW else ())
        for s in studies().values()
        for place, id in enumerate(s.figures)
    ]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("study", "id"), figures(pytest.mark.slow))
def test_a_picture_is_drawn_whatever_became_of_the_runs(study, id):
    figure = study.figure(id)
    results = synthetic(figure)
    before = dict(matplotlib.rcParams)
    for spoil in (spoilt, lost):
        given = spoil(results)
        said = figure.draw(given).get_supxlabel().replace("\n", " ")
        assert "smoke scale" in said
        for name, count in statuses(given).items():
            assert name == "converged" or f"{count} {name}" in said
    assert dict(matplotlib.rcParams) == before


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("study", "id"), figures())
def test_no_key_covers_what_is_drawn(study, id):
    figure = study.figure(id)
    drawn = figure.draw(spoilt(synthetic(figure)))
    drawn.draw_without_rendering()
    for axes in drawn.axes:
        legend = axes.get_legend()
        assert legend is None or not legend.get_window_extent().overlaps(axes.get_window_extent())
