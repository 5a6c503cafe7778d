"""The experiments, a file for each or for a few that belong together."""

from lemmata.studies.chain_of_thought.figures import (
    chain,
    checks,
    condition,
    enough,
    error_over_length,
    iterations,
    layers,
    noise,
    span,
    stages,
)  # fmt: skip
from lemmata.studies.chain_of_thought.figures.common import LIMIT as LIMIT
from lemmata.studies.chain_of_thought.figures.common import small as small
from lemmata.studies.chain_of_thought.figures.common import template as template
from lemmata.studies.chain_of_thought.figures.iterations import growth_share as growth_share
from lemmata.studies.chain_of_thought.figures.iterations import late_rate as late_rate
from lemmata.studies.chain_of_thought.figures.iterations import late_size as late_size

FIGURES = (
    error_over_length.cot_match, error_over_length.cot_trajectory, error_over_length.cot_primacy,
    error_over_length.icl_match, error_over_length.icl_trajectory, error_over_length.icl_primacy,
    condition.gap, enough.enough, stages.dynamics, layers.steps, layers.sinusoids, chain.chain, span.span, noise.noise, noise.training_noise,
    stages.stage_one, iterations.iterations, checks.classes, checks.agreement,
)  # fmt: skip
