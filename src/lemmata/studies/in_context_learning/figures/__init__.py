"""The experiments, a file for each or for a few that belong together."""

from lemmata.studies.in_context_learning.figures import (
    checks,
    classic,
    complexity,
    lemmas,
    lengths,
    mechanism,
    pruning,
    tasks,
)
from lemmata.studies.in_context_learning.figures.common import template as template

FIGURES = (
    tasks.tasks, mechanism.mechanism, lengths.lengths, classic.classic, pruning.pruning, complexity.length, complexity.steps,
    complexity.beta, complexity.patterns, lemmas.lemmas, checks.variants, checks.agreement,
)  # fmt: skip
