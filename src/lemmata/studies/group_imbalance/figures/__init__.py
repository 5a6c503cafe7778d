"""The experiments, a file for each or for a few that belong together."""

from lemmata.studies.group_imbalance.figures import (
    deviations,
    errors,
    initialisation,
    lemmas,
    maps,
    noise,
    risks,
    speed,
    table,
)
from lemmata.studies.group_imbalance.figures.common import template as template
from lemmata.studies.group_imbalance.figures.initialisation import easy as easy

FIGURES = (
    maps.fig4_2, maps.fig4_3a, maps.fig4_3b, speed.fig4_4a, speed.mean_rate, speed.fig4_4b, speed.fig4_5a, errors.fig4_5b,
    risks.fig4_6a, risks.fig4_6b, risks.fig4_7a, risks.fig4_7b, initialisation.figC_1, initialisation.tensor_easy,
    table.table, table.pairs, table.fisher, lemmas.lemmas, deviations.deviations, lemmas.ball, lemmas.projection, lemmas.lipschitz, errors.activations,
    noise.noise,
)  # fmt: skip
