"""The experiments, a file each."""

from .plateaus import fig3a
from .plateaus import template as template

FIGURES = (fig3a,)
