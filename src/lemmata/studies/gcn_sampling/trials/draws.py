"""Without training: draws of the sampled matrix beside A and A*, and the network at and near its start (in NumPy, float64)."""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import numpy as np
import scipy.sparse as sparse
from scipy.stats import kstest

from lemmata.bench.graphs import normalised
from lemmata.errors import require
from lemmata.studies.gcn_sampling.data import DegreeGroups, simple_graph
from lemmata.trial import Computed, Key, fixed


def _drawn(graph: DegreeGroups, rng: np.random.Generator) -> sparse.csr_array:
    """A of a random graph, by the bench."""
    stubs = np.repeat(np.arange(graph.nodes), np.repeat(graph.degrees, graph.sizes))
    pairs = rng.permutation(stubs)[: 2 * graph.edges].reshape(-1, 2)
    return normalised(simple_graph(pairs, graph.nodes))


def _generator(key: Key) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())


class Draws(Computed):
    """Many draws of A^s at one rate: how far its rows lie from those of A*, on average and at worst; one draw is kept to be
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

        rng, g = _generator(key), self.graph
        matrix = _drawn(g, rng)
        samples = theory.sample_sizes(g.sizes, [self.rate] * len(g.sizes))
        rates = theory.rates_of(samples.tolist(), g.sizes)
        star = theory.effective(matrix, g.group_of, self.scaling)
        begin = np.cumsum(g.sizes) - g.sizes
        total, worst, sampled = np.zeros(g.nodes), [], star
        for _ in range(self.draws):
            factor = np.zeros(g.nodes)
            for at, size, many, rate in zip(begin, g.sizes, samples, rates, strict=True):
                factor[at + rng.choice(size, many, replace=False)] = 1 / rate
            sampled = sparse.csr_array(star @ sparse.diags_array(factor))
            apart = np.asarray(abs(sampled - star).sum(1)).ravel()
            total, worst = total + apart, [*worst, apart.max()]
        exact = theory.row_deviation(matrix, g.group_of, self.scaling, rates)
        return {
            "mean_deviation": float(np.mean(total) / self.draws),
            "exact_deviation": float(np.mean(exact)),
            "worst_deviation": float(np.mean(worst)),
            "loop_deviation": theory.loop_deviation(matrix, self.scaling, g.group_of),
            "norm": theory.max_row_sum(star),
            "adjacency": matrix.toarray().astype(np.float32),
            "effective": star.toarray().astype(np.float32),
            "sampled": sampled.toarray().astype(np.float32),
        }


class NearStart(Computed):
    """The network at its random start and a little beside it: signs that noise turns, the bilinear surrogate, smoothing, and
    whether the second layer's inputs look Gaussian."""

    name: ClassVar[str] = "gcn-sampling/near-start"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"smoothing": ("move",)}

    graph: DegreeGroups = DegreeGroups(degrees=(6, 1), sizes=(20, 100), unit_features=True)
    scaling: tuple[float, ...] = (0.7, 0.3)
    width: int = fixed(default=256)
    repeats: int = fixed(default=20)
    moves: tuple[float, ...] = fixed(default=(0.5, 0.25, 0.125))

    def compute(self, key: Key) -> Mapping[str, Any]:
        from lemmata.studies.gcn_sampling import theory

        rng, g, m = _generator(key), self.graph, self.width
        star = theory.effective(_drawn(g, rng), g.group_of, self.scaling)
        x = rng.normal(size=(g.nodes, g.features))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        w, v = rng.normal(size=(g.features, m)) / m**0.5, rng.normal(size=(m, m)) / m**0.5
        b1, b2 = rng.normal(size=m) / m**0.5, rng.normal(size=m) / m**0.5
        c = rng.normal(size=(m, g.outputs))
        size = theory.parameters(m, m, 0.01, 1.0)
        ax = star @ x

        def outputs(w1: np.ndarray, w2: np.ndarray) -> np.ndarray:
            first = star @ np.maximum(ax @ w1 + b1, 0)
            return star @ (np.maximum(first @ w2 + b2, 0) @ c)

        def signs(w1: np.ndarray, w2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            inner = ax @ w1 + b1
            return inner > 0, star @ np.maximum(inner, 0) @ w2 + b2 > 0

        def frozen(w1: np.ndarray, w2: np.ndarray, on: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
            first = star @ ((ax @ w1 + b1) * on[0])
            return star @ (((first @ w2 + b2) * on[1]) @ c)

        noise = size.noise_w * rng.normal(size=w.shape)
        plain, moved = ax @ w, ax @ (w + noise)
        begun, at_start = signs(w, v), outputs(w, v)
        step_w, step_v = rng.normal(size=w.shape), rng.normal(size=v.shape)
        step_w *= size.reach_w / theory.column_norm(step_w, 4)
        step_v *= size.reach_v / np.linalg.norm(step_v)
        residual, signless = [], np.zeros_like(at_start)
        surrogate = star @ (((star @ ((ax @ step_w) * begun[0])) @ step_v * begun[1]) @ c)
        for _ in range(self.repeats):
            turn = rng.choice([-1.0, 1.0], m)
            found = outputs(w + step_w * turn, v + turn[:, None] * step_v) - at_start - surrogate
            residual.append(np.sqrt(np.mean(found**2)))
            signless += found / self.repeats
        gaps = np.zeros(len(self.moves))
        for _ in range(self.repeats):
            w1, w2 = w + size.noise_w * rng.normal(size=w.shape), v + size.noise_v * rng.normal(size=v.shape)
            on = signs(w1, w2)
            for place, move in enumerate(self.moves):
                near = w1 + move * step_w, w2 + move * step_v
                gaps[place] += np.mean(np.abs(outputs(*near) - frozen(*near, on))) / self.repeats
        hidden = star @ np.maximum(ax @ w + b1, 0)
        node = int(np.argmax(np.linalg.norm(hidden, axis=1)))
        scaled = (hidden @ v)[node] * m**0.5 / np.linalg.norm(hidden[node])
        return {
            "overtaken": float(np.mean(np.abs(plain) <= np.abs(moved - plain))),
            "flips": float(np.mean((plain > 0) != (moved > 0))),
            "flips_of_weights": float(np.mean(signs(w + step_w, v)[0] != begun[0]) * m),
            "residual": float(np.mean(residual)),
            "mean_residual": float(np.sqrt(np.mean(signless**2))),
            "smoothing": gaps,
            "gaussian_distance": float(kstest(scaled, "norm").statistic),
            "norm": theory.max_row_sum(star),
        }
