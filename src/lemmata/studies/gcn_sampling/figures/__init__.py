"""The experiments, a file for each or for a few that belong together."""

from lemmata.studies.gcn_sampling.figures import (
    algorithm,
    datasets,
    draws,
    errors,
    existence,
    near_start,
    rounds,
    samplers,
    twins,
)  # fmt: skip
from lemmata.studies.gcn_sampling.figures.common import template as template

FIGURES = (
    draws.sampled, draws.balance, errors.fig5_1, errors.fig5_2,
    datasets.fig5_3a, datasets.fig5_3b, datasets.fig5_4a, datasets.fig5_4b,
    twins.twin, twins.chung_lu, samplers.file, twins.rates, samplers.realisable, samplers.samplers,
    algorithm.algorithm, near_start.near_start, existence.existence, rounds.alternative, rounds.curvature, algorithm.agreement,
)  # fmt: skip
