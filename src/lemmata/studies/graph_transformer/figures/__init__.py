"""The paper's figures on synthetic graphs, the experiments that its lemmas ask for, and the survey of real graphs."""

from lemmata.studies.graph_transformer.figures import (
    checks,
    growth,
    labels_needed,
    learners,
    neurons,
    positions,
    real_nodes,
    real_tables,
    steps,
    training,
    variants,
)  # fmt: skip
from lemmata.studies.graph_transformer.figures.common import small as small
from lemmata.studies.graph_transformer.figures.common import template as template

FIGURES = (
    labels_needed.printed, labels_needed.once, labels_needed.confused, labels_needed.blocks, labels_needed.confusion,
    training.flips, training.attention, labels_needed.both, steps.shared, steps.even, positions.bias, learners.learners,
    learners.samplers, neurons.neurons, growth.growth, steps.size, steps.delta, steps.sigma, steps.xi, positions.nearest,
    checks.drawing, variants.clusters, variants.whole_graphs, variants.four, checks.agreement, checks.tables,
    real_tables.tables_real, real_nodes.labels_cora, real_nodes.labels_actor, real_nodes.distances_cora,
    real_nodes.distances_actor,
)  # fmt: skip
