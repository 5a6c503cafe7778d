"""Every picture of every study is drawn from any results of its figure, also from those of runs that ended badly."""

import matplotlib
import pytest

from lemmata.draw.style import statuses
from lemmata.study import studies
from tests.draw.synthetic import lost, spoilt, synthetic

FIGURES = [pytest.param(s, id, id=f"{s.id}/{id}") for s in studies().values() for id in s.figures]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("study", "id"), FIGURES)
def test_a_picture_is_drawn_whatever_became_of_the_runs(study, id):
    figure = study.figure(id)
    results = synthetic(figure)
    before = dict(matplotlib.rcParams)
    for spoil in (spoilt, lost):
        given = spoil(results)
        drawn = figure.draw(given)
        drawn.draw_without_rendering()
        said = drawn.get_supxlabel().replace("\n", " ")
        assert "smoke scale" in said
        for name, count in statuses(given).items():
            assert name == "converged" or f"{count} {name}" in said
        for axes in drawn.axes:
            legend = axes.get_legend()
            frame = axes.get_window_extent()
            assert legend is None or not legend.get_window_extent().overlaps(frame)
    assert dict(matplotlib.rcParams) == before
