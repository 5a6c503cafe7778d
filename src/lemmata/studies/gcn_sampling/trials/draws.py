"""Without training: draws of the sampled matrix beside A and A* (in NumPy, float64)."""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import numpy as np
import scipy.sparse as sparse

from lemmata.errors import require
from lemmata.parts.graphs import normalised
from lemmata.studies.gcn_sampling.data import DegreeGroups, simple_graph
from lemmata.trial import Computed, Key, fixed


def drawn(graph: DegreeGroups, rng: np.random.Generator) -> sparse.csr_array:
    """A of a random graph, from `lemmata.parts.graphs`."""
    stubs = np.repeat(np.arange(graph.nodes), np.repeat(graph.degrees, graph.sizes))
    pairs = rng.permutation(stubs)[: 2 * graph.edges].reshape(-1, 2)
    return normalised(simple_graph(pairs, graph.nodes))


def generator(key: Key) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())


class Draws(Computed):
    """Many draws of A^s at one rate: how far its rows lie from those of A*, on average and at worst, also with the symmetric
    sampler of Section D.1.1; how far a group dominates A, and A* with the largest p* that (5.8) admits. One draw is kept to be
    seen."""

    name: ClassVar[str] = "gcn-sampling/draws"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
        ("adjacency", "effective", "sampled"), ("row", "column")
    )

    graph: DegreeGroups = DegreeGroups(degrees=(12, 2), sizes=(24, 96))
    scaling: tuple[float, ...] = (0.7, 0.3)
    rate: float = 0.9
    draws: int = fixed(default=200)

    def __check_init__(self):
        require(0 < self.rate <= 1, f"a sampling rate S_l/N_l lies in (0, 1], not {self.rate}.")
        require(self.draws >= 1, f"at least one draw is taken, not {self.draws}.")

    def compute(self, key: Key) -> Mapping[str, Any]:
        from lemmata.studies.gcn_sampling import theory

        rng, g = generator(key), self.graph
        matrix = drawn(g, rng)
        samples = theory.sample_sizes(g.sizes, [self.rate] * len(g.sizes))
        rates = theory.rates_of(samples.tolist(), g.sizes)
        star = theory.effective(matrix, g.group_of, self.scaling)
        begin = np.cumsum(g.sizes) - g.sizes
        admitted = np.minimum(1.0, theory.max_scaling(g.degrees, g.sizes))
        both = theory.effective(matrix, g.group_of, self.scaling, symmetric=True)
        total, worst, worst_symmetric, sampled = np.zeros(g.nodes), [], [], star
        for _ in range(self.draws):
            factor = np.zeros(g.nodes)
            for at, size, many, rate in zip(begin, g.sizes, samples, rates, strict=True):
                factor[at + rng.choice(size, many, replace=False)] = 1 / rate
            sampled = sparse.csr_array(star @ sparse.diags_array(factor))
            apart = np.asarray(abs(sampled - star).sum(1)).ravel()
            total, worst = total + apart, [*worst, apart.max()]
            root = sparse.diags_array(np.sqrt(factor))
            worst_symmetric.append(theory.max_row_sum(sparse.csr_array(root @ both @ root - both)))
        exact = theory.row_deviation(matrix, g.group_of, self.scaling, rates)
        return {
            "mean_deviation": float(np.mean(total) / self.draws),
            "exact_deviation": float(np.mean(exact)),
            "worst_deviation": float(np.mean(worst)),
            "worst_symmetric": float(np.mean(worst_symmetric)),
            "imbalance": theory.imbalance(matrix, g.group_of),
            "imbalance_effective": theory.imbalance(
                theory.effective(matrix, g.group_of, admitted), g.group_of
            ),
            "loop_deviation": theory.loop_deviation(matrix, self.scaling, g.group_of),
            "norm": theory.max_row_sum(star),
            "adjacency": matrix.toarray().astype(np.float32),
            "effective": star.toarray().astype(np.float32),
            "sampled": sampled.toarray().astype(np.float32),
        }
