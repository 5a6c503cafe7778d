"""The figures."""

from lemmata.study import Figure, Scale, by_scale
from lemmata.sweep import Sweep, axis

from . import pictures
from .trials import Descending


def template() -> Descending:
    return Descending()


def _steps(scale: Scale) -> Sweep:
    rates = by_scale(scale, (0.01, 0.02, 0.04), (0.01, 0.02, 0.04, 0.08), (0.005, 0.01, 0.02, 0.04, 0.08))
    return Sweep(template(), (axis("descent.learning_rate", rates),), tuple(range(by_scale(scale, 3, 5, 20))))


FIGURES = {"steps": Figure("steps", _steps, pictures.steps, "Curvature 1, three dimensions.")}
