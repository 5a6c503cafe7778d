"""The experiments, a file for each or for a few that belong together."""

from lemmata.studies.shallow_vit.figures import (
    attention,
    neurons,
    readings,
    removal,
    samples,
    settings,
    sparsification,
    steps,
    trained_attention,
    variants,
)
from lemmata.studies.shallow_vit.figures.common import template as template

FIGURES = (
    samples.fraction, samples.error, samples.noise,
    steps.fraction, steps.fraction_wide, steps.rate,
    trained_attention.trained_against_frozen, trained_attention.theorems_design,
    attention.curves, removal.tokens, attention.patterns, removal.tokens_by_patterns, steps.initial_attention,
    readings.ablation, readings.single_pass, readings.uniform, neurons.neurons, neurons.width,
    sparsification.background, sparsification.pruning, readings.confusion, variants.variants, variants.four_classes,
    settings.settings,
)  # fmt: skip
