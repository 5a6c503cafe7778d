"""The experiments, a file each."""

from .steps import steps
from .steps import template as template

FIGURES = (steps,)
