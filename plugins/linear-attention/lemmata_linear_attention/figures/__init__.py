"""The experiments, a file for each family."""

from .common import template as template
from .fixed import conserved, fixed_points
from .merged import escape, fig1
from .ranks import fig4
from .sampled import sampled
from .separate import fig3
from .starts import range_of_plateaus, waits

FIGURES = (fig1, fig3, fig4, escape, waits, sampled, range_of_plateaus, fixed_points, conserved)
