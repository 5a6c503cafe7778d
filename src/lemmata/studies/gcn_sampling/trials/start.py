"""The network at its random start and a little beside it, in NumPy and float64: what the proof's lemmas say of signs,
pseudo-networks and smoothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sparse
from scipy.special import ndtr, ndtri

from lemmata.errors import require
from lemmata.studies.gcn_sampling.data import DegreeGroups
from lemmata.studies.gcn_sampling.trials.draws import drawn, generator
from lemmata.trial import Computed, Key, fixed

Pair = tuple[np.ndarray, np.ndarray]
"""Of the first and of the second layer: weights (W, V), or signs of both layers at every node."""


@dataclass(frozen=True)
class Start:
    """What stays as it was drawn: A*, the features after the first aggregation (`seen` = A* X), biases and readout; and the
    weights that training begins with."""

    star: sparse.csr_array
    seen: np.ndarray
    weights: Pair
    biases: Pair
    readout: np.ndarray

    def inner(self, weights: Pair) -> Pair:
        """What the ReLUs of both layers are given."""
        first = self.seen @ weights[0] + self.biases[0]
        return first, self.star @ np.maximum(first, 0) @ weights[1] + self.biases[1]

    def outputs(self, weights: Pair) -> np.ndarray:
        """F with A* (5.4)."""
        return self.star @ (np.maximum(self.inner(weights)[1], 0) @ self.readout)

    def signs(self, weights: Pair) -> Pair:
        first, second = self.inner(weights)
        return first > 0, second > 0

    def pseudo(
        self, weights: Pair, on: Pair, first_bias: bool = True, second_bias: bool = True
    ) -> np.ndarray:
        """The network with frozen signs (D.67), without B_2 (D.68), without both biases (D.69)."""
        first = self.seen @ weights[0] + (self.biases[0] if first_bias else 0)
        second = self.star @ (first * on[0]) @ weights[1] + (self.biases[1] if second_bias else 0)
        return self.star @ ((second * on[1]) @ self.readout)


def begin(
    star: sparse.csr_array, seen: np.ndarray, width: int, outputs: int, rng: np.random.Generator
) -> Start:
    """The document's start on given aggregated features."""
    root = width**0.5
    weights = rng.normal(size=(seen.shape[1], width)) / root, rng.normal(size=(width, width)) / root
    biases = rng.normal(size=width) / root, rng.normal(size=width) / root
    return Start(star, seen, weights, biases, rng.normal(size=(width, outputs)))


def moved(weights: Pair, by: Pair, size: float = 1.0, signs: np.ndarray | float = 1.0) -> Pair:
    """`W + size W' Sigma`, `V + size Sigma V'`."""
    column = np.reshape(signs, (-1, 1))
    return weights[0] + size * by[0] * signs, weights[1] + size * column * by[1]


def unit_features(graph: DegreeGroups, rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=(graph.nodes, graph.features))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


SMALL = DegreeGroups(degrees=(6, 1), sizes=(20, 100), unit_features=True)


class NearStart(Computed):
    """Perturbations of the sizes of Table D.2 around the start: signs that turn (Lemma D.2.10), the bilinear surrogate (D.2.9),
    cross terms of random signs (D.2.10), and what frozen signs cost after smoothing (D.2.11)."""

    name: ClassVar[str] = "gcn-sampling/near-start"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"smoothing": ("move",)}

    graph: DegreeGroups = SMALL
    scaling: tuple[float, ...] = (0.7, 0.3)
    width: int = fixed(default=256)
    repeats: int = fixed(default=20)
    moves: tuple[float, ...] = fixed(default=(0.2, 0.1, 0.05, 0.025))

    def compute(self, key: Key) -> Mapping[str, Any]:
        from lemmata.studies.gcn_sampling import theory

        rng, g, m = generator(key), self.graph, self.width
        star = theory.effective(drawn(g, rng), g.group_of, self.scaling)
        net = begin(star, star @ unit_features(g, rng), m, g.outputs, rng)
        size = theory.parameters(m, m, 0.01, 1.0)

        def noise() -> Pair:
            return size.noise_w * rng.normal(size=net.weights[0].shape), size.noise_v * rng.normal(
                size=(m, m)
            )

        def reach() -> Pair:
            w, v = rng.normal(size=net.weights[0].shape), rng.normal(size=(m, m))
            return w * size.reach_w / theory.column_norm(w, 4), v * size.reach_v / np.linalg.norm(v)

        rho, step, other = noise(), reach(), reach()
        begun, at_start = net.signs(net.weights), net.outputs(net.weights)
        plain, shifted = net.seen @ net.weights[0], net.seen @ (net.weights[0] + rho[0])
        near = moved(moved(net.weights, rho), step)
        turned = [np.sum(a != b, axis=1) for a, b in zip(net.signs(near), begun, strict=True)]

        surrogate = net.pseudo(step, begun, False, False)
        residual, signless, crossed = [], np.zeros_like(at_start), []
        on = net.signs(near)
        held = net.pseudo(near, on) + net.pseudo(other, on, False, False)
        for _ in range(self.repeats):
            signs = rng.choice([-1.0, 1.0], m)
            found = net.outputs(moved(net.weights, step, signs=signs)) - at_start - surrogate
            residual.append(np.sqrt(np.mean(found**2)))
            signless += found / self.repeats
            crossed.append(np.max(np.abs(net.pseudo(moved(near, other, signs=signs), on) - held)))
        gaps = np.zeros(len(self.moves))
        for _ in range(self.repeats):
            smoothed = moved(net.weights, noise())
            on = net.signs(smoothed)
            for place, move in enumerate(self.moves):
                there = moved(smoothed, step, move)
                gaps[place] += np.mean(np.abs(net.outputs(there) - net.pseudo(there, on))) / self.repeats
        return {
            "overtaken": float(np.mean(np.abs(plain) <= np.abs(shifted - plain))),
            "flips": float(np.mean((plain > 0) != (shifted > 0))),
            "turned_first": float(np.max(turned[0])),
            "turned_second": float(np.max(turned[1])),
            "residual": float(np.mean(residual)),
            "mean_residual": float(np.sqrt(np.mean(signless**2))),
            "cross_terms": float(np.mean(crossed)),
            "smoothing": gaps,
            "largest_w": float(np.max(np.linalg.norm(step[0], axis=0))),
            "largest_v": float(np.max(np.linalg.norm(step[1], axis=0))),
            "norm": theory.max_row_sum(star),
        }


class Existence(Computed):
    """The pseudo-network that the proof builds out of random features (D.45), (D.46), for `phi(z) = z - z^3/6` and Phi = 1; and
    how nearly Gaussian the second layer's inputs are at the start (Lemmas D.2.4 to D.2.8).

    `design="drawn"` is a random graph with unit features, as the lemma is stated. Its proof needs more: rows of A* X that are
    equally long (Lemma D.2.1 is for one length) and whose last coordinate is the same (it drops the factor `a_j X e_d`).
    `even` has both: a ring, A* X drawn on a sphere with the last coordinate 1/2. Given the first layer, the second layer's
    inputs are Gaussian over its neurons, with the Gram matrix of the hidden rows as covariance; they are drawn so, without V.
    """

    name: ClassVar[str] = "gcn-sampling/existence"
    CONSTANT: ClassVar[float] = 0.5

    graph: DegreeGroups = SMALL
    scaling: tuple[float, ...] = (0.7, 0.3)
    width: int = fixed(default=512)
    starts: int = fixed(default=100)
    design: Literal["drawn", "even"] = fixed(default="drawn")

    def __check_init__(self):
        require(self.starts >= 2, f"a law over fresh starts takes at least two of them, not {self.starts}.")

    def compute(self, key: Key) -> Mapping[str, Any]:
        from lemmata.studies.gcn_sampling import theory

        rng, g, m = generator(key), self.graph, self.width
        side = self.CONSTANT * np.ones((g.nodes, 1))
        points = np.concatenate([(1 - self.CONSTANT**2) ** 0.5 * unit_features(g, rng), side], axis=1)
        if self.design == "drawn":
            star = theory.effective(drawn(g, rng), g.group_of, self.scaling)
            seen = np.asarray(star @ points)
        else:
            star, seen = ring(g.nodes), points
        norm = theory.max_row_sum(star)

        def first_layer() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            w, b = rng.normal(size=(seen.shape[1], m)), rng.normal(size=m)
            return w, b, (seen @ w + b) / m**0.5

        w, b, inner = first_layer()
        along = rng.normal(size=seen.shape[1])
        along /= np.linalg.norm(along)
        phi = theory.power_series(0, 1, 0, -1 / 6)
        feature = theory.indicator_feature(phi, along @ w, b, norm, 3)
        hidden = star @ np.maximum(inner, 0)
        values, vectors = np.linalg.eigh(hidden @ hidden.T)
        second = vectors @ (
            np.sqrt(np.maximum(values, 0))[:, None] * rng.normal(size=(g.nodes, m))
        ) + rng.normal(size=m)
        readout = rng.normal(size=(m, g.outputs))

        # W^_i = v_i h_i e_d / (m x_d) and V^_i' = v 2 sum_r c_i'r / m; the signs v_i meet each other in the product
        lower = (seen[:, -1:] / self.CONSTANT) * ((inner >= 0) @ feature)[:, None] / m
        upper = (second >= 0) @ (readout * 2 * readout.sum(1, keepdims=True)) / m
        found = star @ (upper * (star @ lower))
        along_it, long = seen @ along, np.linalg.norm(seen, axis=1)
        wanted = along_it - along_it**3 / 6
        target = star @ (star @ wanted)
        reached = np.zeros(g.nodes)
        for i in (1, 3):
            gains = np.array([theory.hermite_gain(i, one, norm) for one in long]) / theory.hermite_gain(
                i, norm
            )
            reached += phi.coefficients(i) * along_it**i * gains
        endless = star @ (star @ (seen[:, -1] / self.CONSTANT * reached))

        scales = np.array(
            [np.linalg.norm(star @ np.maximum(first_layer()[2], 0), axis=1) for _ in range(self.starts)]
        )
        centre = np.sqrt(np.mean(scales**2, axis=0))
        worst = int(np.argmax(np.std(scales, axis=0)))
        apart = np.mean(np.abs(np.arctan(scales) - np.arctan(centre)), axis=0) / np.pi
        return {
            "pseudo_error": float(np.mean(np.abs(found - target[:, None])) / np.mean(np.abs(target))),
            "endless_error": float(np.mean(np.abs(endless - target)) / np.mean(np.abs(target))),
            "feature_error": float(np.sqrt(np.mean((lower[:, 0] - wanted) ** 2) / np.mean(wanted**2))),
            "largest_feature": float(np.max(np.abs(feature))),
            "gaussian_distance": mixture_distance(scales[:, worst]),
            "spread": float(np.max(centre)),
            "disagreeing": float(np.max(apart)),
            "norm": norm,
        }


def ring(nodes: int) -> sparse.csr_array:
    """A of a ring: a third to each node itself and to both neighbours."""
    at = np.arange(nodes)
    places = np.concatenate([at, at, at]), np.concatenate([at, (at + 1) % nodes, (at - 1) % nodes])
    return sparse.csr_array((np.full(3 * nodes, 1 / 3), places), shape=(nodes, nodes))


def mixture_distance(scales: np.ndarray) -> float:
    """The W_2 distance of `s g`, g standard normal and s one of the scales, from the normal law of the same variance: by both
    quantile functions, that of the mixture interpolated.

    >>> round(mixture_distance(np.array([2.0, 2.0])), 6)
    0.0
    """
    centre = float(np.sqrt(np.mean(scales**2)))
    z = np.linspace(-6, 6, 2001)
    chance = ndtr(centre * z[:, None] / scales).mean(1)
    level = (np.arange(2000) + 0.5) / 2000
    apart = np.interp(level, chance, centre * z) - centre * ndtri(level)
    return float(np.sqrt(np.mean(apart**2)))
