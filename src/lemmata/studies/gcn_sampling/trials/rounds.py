"""The first rounds of descent on the smoothed, regularised objective L' (D.91), in NumPy and float64: what Lemmas D.2.13 and
D.2.14 say of moves, weight decay and curvature in each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from lemmata.studies.gcn_sampling.data import DegreeGroups
from lemmata.studies.gcn_sampling.trials.draws import drawn, generator
from lemmata.studies.gcn_sampling.trials.start import Pair, Start, begin, moved, unit_features
from lemmata.trial import Computed, Key, fixed

SMALL = DegreeGroups(degrees=(6, 1), sizes=(20, 100), unit_features=True, target_width=2)


class Alternative(Computed):
    """The first rounds of descent on the smoothed, regularised objective L' (D.91), and in each of them what Lemma D.2.13
    promises: that either a move with random signs or weight decay lowers L' by the share eta gamma / 4 (gamma = 1/4).

    The move is the best one (`Problem.best_move`). Means over noise and signs are over `draws` fixed draws, signs and their
    opposites, so that both sides of a comparison see the same. Shares are in parts of eta gamma / 4: the lemma wants at least
    1 while L' is above (1 + gamma) OPT and a small number; OPT is 0 here. A round is `inner` gradient steps at the document's
    lambda_t.
    """

    name: ClassVar[str] = "gcn-sampling/alternative"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
        ("objective", "by_move", "by_decay", "growth"), ("round",)
    )

    graph: DegreeGroups = SMALL
    scaling: tuple[float, ...] = (0.7, 0.3)
    width: int = fixed(default=64)
    rounds: int = fixed(default=6)
    inner: int = fixed(default=40)
    draws: int = fixed(default=4)
    learning_rate: float = 0.1
    move: float = 1e-4
    accuracy: float = 0.01
    size: float = 30.0

    def compute(self, key: Key) -> Mapping[str, Any]:
        from lemmata.studies.gcn_sampling import theory

        problem = smoothed(self, generator(key))
        learnt = problem.untouched
        decay, gain = 1.0, self.move / 16
        objective, by_move, by_decay, growth = [], [], [], []
        for _ in range(self.rounds):
            now = problem.objective(learnt, decay)
            best = problem.best_move(learnt, decay)
            tried = [problem.objective(moved(learnt, best, sign * self.move**0.5), decay) for sign in (1, -1)]
            objective.append(now)
            by_move.append((1 - float(np.mean(tried)) / now) / gain)
            by_decay.append((1 - problem.objective(learnt, (1 - self.move) * decay) / now) / gain)
            learnt = problem.descended(learnt, decay, self.learning_rate, self.inner)
            growth.append(problem.objective(learnt, decay) - now)
            decay *= 1 - self.learning_rate
        return {
            "objective": np.array(objective),
            "by_move": np.array(by_move),
            "by_decay": np.array(by_decay),
            "growth": np.array(growth),
            "norm": theory.max_row_sum(problem.net.star),
        }


class Curvature(Computed):
    """The same descent in rounds of more and more steps, and after each round what (D.116) and (D.117) say of it: the Hessian
    of L' has no eigenvalue below -(m_1 m_2)^-8, so that weight decay alone lowers L' by the share eta gamma / 4.

    The Hessian is that of the network with its signs frozen (`Problem.curved`), at the lambda of the round. `gradient` is the
    norm of the gradient that is left: a round that is long enough ends at a second-order critical point.
    """

    name: ClassVar[str] = "gcn-sampling/curvature"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
        ("objective", "lowest", "by_decay", "gradient"), ("round",)
    )

    graph: DegreeGroups = SMALL
    scaling: tuple[float, ...] = (0.7, 0.3)
    width: int = fixed(default=16)
    rounds: int = fixed(default=4)
    inner: int = fixed(default=400)
    draws: int = fixed(default=4)
    learning_rate: float = 0.1
    move: float = 1e-4
    accuracy: float = 0.01
    size: float = 30.0

    def compute(self, key: Key) -> Mapping[str, Any]:
        from lemmata.studies.gcn_sampling import theory

        problem = smoothed(self, generator(key))
        learnt, decay = problem.untouched, 1.0
        objective, lowest, by_decay, gradient = [], [], [], []
        for _ in range(self.rounds):
            learnt = problem.descended(learnt, decay, self.learning_rate, self.inner)
            lowest.append(problem.lowest_curvature(learnt, decay))
            gradient.append(np.sqrt(sum(np.sum(part**2) for part in problem.gradient(learnt, decay))))
            decay *= 1 - self.learning_rate
            now = problem.objective(learnt, decay)
            after = problem.objective(learnt, (1 - self.move) * decay)
            objective.append(now)
            by_decay.append((1 - after / now) / (self.move / 16))
        return {
            "objective": np.array(objective),
            "lowest": np.array(lowest),
            "by_decay": np.array(by_decay),
            "gradient": np.array(gradient),
            "norm": theory.max_row_sum(problem.net.star),
        }


def smoothed(trial: Alternative | Curvature, rng: np.random.Generator) -> "Problem":
    """L' on a graph, labels of the concept class, a start, noises and signs that are drawn once."""
    from lemmata.studies.gcn_sampling import theory

    g, m = trial.graph, trial.width
    star = theory.effective(drawn(g, rng), g.group_of, trial.scaling)
    net = begin(star, star @ unit_features(g, rng), m, g.outputs, rng)
    labels = concept(star, net.seen, g.target_width, g.outputs, rng)
    sizes = theory.parameters(m, m, trial.accuracy, trial.size)
    signs = rng.choice([-1.0, 1.0], (trial.draws // 2, m))
    noises = [
        (sizes.noise_w * rng.normal(size=net.weights[0].shape), sizes.noise_v * rng.normal(size=(m, m)))
        for _ in range(trial.draws)
    ]
    return Problem(net, labels, (sizes.reg_w, sizes.reg_v), noises, np.concatenate([signs, -signs]))


def concept(
    star: sparse.csr_array, seen: np.ndarray, width: int, outputs: int, rng: np.random.Generator
) -> np.ndarray:
    """Labels of the class (5.12) as `data.concept_labels` makes them, with L(0, y) = 1/2 on average."""

    def columns(rows: int) -> np.ndarray:
        made = rng.normal(size=(rows, width))
        return made / np.linalg.norm(made, axis=0)

    hidden = [seen @ columns(seen.shape[1]) for _ in range(2)]
    r1, r2 = (star @ (z + z**2 / 2) @ columns(width) for z in hidden)
    labels = star @ ((1 + r1 / 2) * r2) @ rng.uniform(-1, 1, (width, outputs))
    return labels / np.sqrt(np.mean(np.sum(labels**2, axis=1)))


@dataclass(frozen=True)
class Problem:
    """L' of (D.91) over all nodes: half the squared error of `lambda F(W_0 + W^rho + W Sigma', V_0 + V^rho + Sigma' V)`, meant
    over given draws, plus `lambda_w |sqrt(lambda) W|_{2,4}^4 + lambda_v |sqrt(lambda) V|_F^2` (the print has the power 2 of the
    first)."""

    net: Start
    labels: np.ndarray
    regularisers: tuple[float, float]
    noises: list[Pair]
    signs: np.ndarray

    @property
    def untouched(self) -> Pair:
        """Nothing learnt yet."""
        return np.zeros_like(self.net.weights[0]), np.zeros_like(self.net.weights[1])

    def descended(self, learnt: Pair, decay: float, rate: float, steps: int) -> Pair:
        """After so many gradient steps."""
        for _ in range(steps):
            learnt = moved(learnt, self.gradient(learnt, decay), -rate)
        return learnt

    def at(self, learnt: Pair) -> list[Pair]:
        draws = zip(self.noises, self.signs, strict=True)
        return [moved(moved(self.net.weights, noise), learnt, signs=s) for noise, s in draws]

    def objective(self, learnt: Pair, decay: float) -> float:
        errors = [decay * self.net.outputs(weights) - self.labels for weights in self.at(learnt)]
        loss = np.mean([0.5 * np.mean(np.sum(e**2, axis=1)) for e in errors])
        columns = np.sum(learnt[0] ** 2, axis=0)
        penalty = self.regularisers[0] * decay**2 * np.sum(columns**2)
        return float(loss + penalty + self.regularisers[1] * decay * np.sum(learnt[1] ** 2))

    def gradient(self, learnt: Pair, decay: float) -> Pair:
        net, nodes = self.net, len(self.labels)
        columns = np.sum(learnt[0] ** 2, axis=0)
        w = 4 * self.regularisers[0] * decay**2 * columns * learnt[0]
        v = 2 * self.regularisers[1] * decay * learnt[1]
        for weights, s in zip(self.at(learnt), self.signs, strict=True):
            first, second = net.inner(weights)
            error = decay * (decay * net.outputs(weights) - self.labels) / (nodes * len(self.signs))
            upper = (net.star.T @ error @ net.readout.T) * (second > 0)
            v = v + s[:, None] * ((net.star @ np.maximum(first, 0)).T @ upper)
            lower = (net.star.T @ (upper @ weights[1].T)) * (first > 0)
            w = w + (net.seen.T @ lower) * s
        return w, v

    def best_move(self, learnt: Pair, decay: float) -> Pair:
        """The move (|W^|_F and |V^|_F at most 1) that lowers L' most when its signs are random.

        Random signs leave of the second order only what each neuron of the first layer does to itself, with its column of W and
        its row of V: `E_Sigma L' = L' + (eta/2) sum_i <(w_i, v_i), H_i (w_i, v_i)>`. So it is the lowest eigenvector of the
        block H_i (signs frozen) of the best neuron.
        """
        net, nodes, many = self.net, len(self.labels), len(self.signs)
        size, m = learnt[0].shape
        blocks = np.zeros((m, size + m, size + m))
        for weights in self.at(learnt):
            first, second = net.inner(weights)
            on = second > 0
            error = decay * (decay * net.outputs(weights) - self.labels)
            upper = (net.star.T @ error @ net.readout.T) * on
            hidden = net.star @ np.maximum(first, 0)
            for i in range(m):
                below = net.star @ (net.seen * (first[:, i] > 0)[:, None])
                above = (on * weights[1][i]) @ net.readout
                by_w = [net.star @ (below * above[:, [k]]) for k in range(above.shape[1])]
                by_v = net.star @ (on * hidden[:, [i]])
                for k, slope in enumerate(by_w):
                    both = decay * np.concatenate([slope, by_v * net.readout[:, k]], axis=1)
                    blocks[i] += both.T @ both / (nodes * many)
                cross = below.T @ upper / (nodes * many)
                blocks[i, :size, size:] += cross
                blocks[i, size:, :size] += cross.T
        own = 4 * self.regularisers[0] * decay**2
        for i, w in enumerate(learnt[0].T):
            blocks[i, :size, :size] += own * (w @ w * np.eye(size) + 2 * np.outer(w, w))
            blocks[i, size:, size:] += 2 * self.regularisers[1] * decay * np.eye(m)
        values, vectors = np.linalg.eigh(blocks)
        best = int(np.argmin(values[:, 0]))
        found = vectors[best, :, 0] / max(
            np.linalg.norm(vectors[best, :size, 0]), np.linalg.norm(vectors[best, size:, 0])
        )
        w, v = np.zeros_like(learnt[0]), np.zeros_like(learnt[1])
        w[:, best], v[best] = found[:size], found[size:]
        return w, v

    def curved(self, learnt: Pair, decay: float, along: Pair) -> Pair:
        """The Hessian of L' times a direction, signs frozen: the derivative of `gradient` along it."""
        net, nodes, many = self.net, len(self.labels), len(self.signs)
        columns = np.sum(learnt[0] ** 2, axis=0)
        inward = 2 * learnt[0] * np.sum(learnt[0] * along[0], axis=0)
        w = 4 * self.regularisers[0] * decay**2 * (columns * along[0] + inward)
        v = 2 * self.regularisers[1] * decay * along[1]
        for weights, s in zip(self.at(learnt), self.signs, strict=True):
            first, second = net.inner(weights)
            on, above = first > 0, second > 0
            by_w, by_v = along[0] * s, s[:, None] * along[1]
            hidden, below = net.star @ np.maximum(first, 0), net.star @ ((net.seen @ by_w) * on)
            outputs = net.star @ (((below @ weights[1] + hidden @ by_v) * above) @ net.readout)
            error = decay * (decay * net.outputs(weights) - self.labels) / (nodes * many)
            upper = (net.star.T @ error @ net.readout.T) * above
            turned = (net.star.T @ (decay**2 / (nodes * many) * outputs) @ net.readout.T) * above
            v = v + s[:, None] * (below.T @ upper + hidden.T @ turned)
            lower = (net.star.T @ (turned @ weights[1].T + upper @ by_v.T)) * on
            w = w + (net.seen.T @ lower) * s
        return w, v

    def lowest_curvature(self, learnt: Pair, decay: float) -> float:
        """The lowest eigenvalue of that Hessian, W and V together (Lanczos)."""
        size, m = learnt[0].shape
        whole = size * m + m * m

        def times(flat: np.ndarray) -> np.ndarray:
            along = flat[: size * m].reshape(size, m), flat[size * m :].reshape(m, m)
            return np.concatenate([part.ravel() for part in self.curved(learnt, decay, along)])

        operator = LinearOperator((whole, whole), matvec=times, dtype=float)  # pyright: ignore[reportCallIssue]
        begun = np.random.default_rng(0).normal(size=whole)
        return float(eigsh(operator, k=1, which="SA", v0=begun, return_eigenvectors=False)[0])
