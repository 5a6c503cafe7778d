"""The experiments, a file for each or for a few that belong together."""

from lemmata.studies.multihead.figures import (
    curvature,
    first_phase,
    frontier,
    gap,
    good_start,
    inequalities,
    inside,
    margins,
    mixture,
    planted,
    real_heads,
    second_phase,
)
from lemmata.studies.multihead.figures.common import template as template

FIGURES = (
    mixture.fig2, mixture.fig3, planted.fig4, planted.fig5, curvature.curvature, curvature.hessian_path,
    inequalities.looseness, inequalities.decoder_bounds, inside.inside_conditions, inside.linear_control, frontier.frontier,
    mixture.two_step_sizes, mixture.decoders, first_phase.first_phase, first_phase.first_phase_scaling,
    second_phase.second_phase, good_start.good_start, margins.realizability, margins.margins, margins.saturation, gap.gap,
    real_heads.tuned, real_heads.scratch, real_heads.scale,
)  # fmt: skip
