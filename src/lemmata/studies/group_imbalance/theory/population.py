"""Population quantities: risk, gradient and Hessian of a mixture, Fisher information, and the sharp asymptotics that
maximum likelihood gives beside the document's order-wise bounds.

The integrand depends on x only through U^T x, U a basis of span(W*, W); given that, x is Gaussian with known
moments. So what is left is an integral over as many dimensions as U has: by the trapezoidal rule up to three, by
quasi Monte Carlo beyond."""

from math import ceil, prod, sqrt
from typing import NamedTuple

import numpy as np
import scipy

from lemmata.studies.group_imbalance.data import Mixture
from lemmata.studies.group_imbalance.network import Curvature, Kind, local, neuron
from lemmata.studies.group_imbalance.theory.rho_function import REACH, SPEED

MOST_NODES = 1_000_000
FINENESS, COARSEST = 0.5, 0.9
"""Steps of the trapezoidal rule in parts of what `nodes` says: the default, and the one where nodes would be too many."""
DRAWS = 2**16
CHUNK = 100_000


def nodes(mean: np.ndarray, covariance: np.ndarray, readers: np.ndarray, fineness: float = FINENESS):
    """Nodes and weights of z ~ N(mean, covariance), in chunks, for functions of the logits `readers`^T z.

    Along each principal axis the logits move by at most t a deviation. The step is `fineness` min(0.7, 1/t) deviations.
    The integrands have poles at distance about pi in the logits (nearer ones with several neurons or other activations), so
    that the error falls as e^(-2 pi^2 / fineness) times what the Gaussian is at a pole. A Fisher information is off by up to
    1e-9 of its largest entry at the default and by up to 3e-6 at COARSEST (tested). COARSEST is the step where the nodes would
    be too many. Where they still are, and in more than three dimensions, the nodes are Sobol points.
    """
    size = len(mean)
    variances, axes = np.linalg.eigh(covariance)
    stds = np.sqrt(np.maximum(variances, 0))
    moves = np.abs(axes.T @ readers).max(1) * stds
    reach = REACH - 2
    counts = []
    for fine in (fineness, max(fineness, COARSEST)):
        counts = [ceil(2 * reach / (fine * min(0.7, 1 / max(t, 1e-9)))) + 1 for t in moves]
        if prod(counts) <= MOST_NODES:
            break
    if size > 3 or prod(counts) > MOST_NODES:
        drawn = scipy.stats.qmc.MultivariateNormalQMC(np.zeros(size), rng=np.random.default_rng(0)).random(
            DRAWS
        )
        parts = [(chunk, np.full(len(chunk), 1 / DRAWS)) for chunk in np.array_split(drawn, DRAWS // 2**14)]
    else:
        parts = _product([np.linspace(-reach, reach, count) for count in counts])
    for place, weight in parts:
        yield mean + (place * stds) @ axes.T, weight


def _product(lines: list[np.ndarray]):
    weights = [np.exp(-(one**2) / 2) * (one[1] - one[0]) / sqrt(2 * np.pi) for one in lines]
    total = prod(map(len, lines))
    shape = [len(one) for one in lines]
    for low in range(0, total, CHUNK):
        index = np.unravel_index(np.arange(low, min(low + CHUNK, total)), shape)
        place = np.stack([one[i] for one, i in zip(lines, index, strict=True)], -1)
        weight = np.prod([one[i] for one, i in zip(weights, index, strict=True)], axis=0)
        yield place, weight


def group_risk(
    mean: np.ndarray,
    covariance: np.ndarray,
    teacher: np.ndarray,
    weights: np.ndarray,
    fineness: float = FINENESS,
    kind: Kind = "sigmoid",
) -> Curvature:
    """Risk, gradient and Hessian of one group's population risk f_l (cross-entropy against the teacher) at W."""
    basis = _basis(np.concatenate([teacher, weights], 1))
    inner = basis.T @ covariance @ basis
    spread = covariance @ basis @ np.linalg.inv(inner)  # x given z = U^T x has mean mu + spread (z - U^T mu)
    left = covariance - spread @ inner @ spread.T  # and this covariance
    lift = np.concatenate([mean[:, None], spread], 1)
    centre, neurons, width = basis.T @ mean, weights.shape[1], 1 + basis.shape[1]
    loss, first, second = (
        0.0,
        np.zeros((neurons, width)),
        np.zeros((neurons, neurons, width, width)),
    )
    readers = SPEED[kind] * basis.T @ np.concatenate([teacher, weights], 1)
    for place, weight in nodes(centre, inner, readers, fineness):
        truth = neuron((teacher.T @ basis) @ place.T, kind).up.mean(0)
        here = local((weights.T @ basis) @ place.T, truth, kind)
        ahead = np.concatenate([np.ones((len(place), 1)), place - centre], 1)
        loss += weight @ here.loss
        first += (weight * here.slope) @ ahead
        pairs = (weight * here.curve).reshape(-1, len(place))
        outer = (ahead[:, :, None] * ahead[:, None, :]).reshape(len(place), -1)
        second += (pairs @ outer).reshape(second.shape)
    blocks = np.einsum("ap,jlpq,bq->jalb", lift, second, lift)
    blocks += np.einsum("jl,ab->jalb", second[:, :, 0, 0], left)
    size = neurons * len(mean)
    return Curvature(np.asarray(loss), lift @ first.T, blocks.reshape(size, size))


def _basis(directions: np.ndarray) -> np.ndarray:
    left, values, _ = np.linalg.svd(directions, full_matrices=False)
    return left[:, values > 1e-10 * values[0]]


def population_risk(
    mixed: Mixture,
    teacher: np.ndarray,
    weights: np.ndarray,
    fineness: float = FINENESS,
    kind: Kind = "sigmoid",
) -> Curvature:
    """Risk, gradient and Hessian of the population risk f at W: the groups' in their proportions."""
    parts = [
        group_risk(m, c, teacher, weights, fineness, kind)
        for m, c in zip(mixed.means, mixed.covariances, strict=True)
    ]
    return Curvature(*(np.tensordot(mixed.weights, np.stack(p), 1) for p in zip(*parts, strict=True)))


# Fisher information and what follows from it (maximum likelihood) ---------------------------------------------------------


class Information(NamedTuple):
    """I_l of every group and I = sum_l lambda_l I_l: the Hessians of the population risks at W*; and the entropy of the
    labels in each group, which is the smallest risk there."""

    groups: np.ndarray
    total: np.ndarray
    entropies: np.ndarray

    @property
    def spectrum(self) -> np.ndarray:
        return np.linalg.eigvalsh(self.total)


def fisher_information(
    mixed: Mixture, teacher: np.ndarray, fineness: float = FINENESS, kind: Kind = "sigmoid"
) -> Information:
    """I(W*) = E[(1/K^2) phi'_j phi'_l x x^T / (H (1 - H))], of each group and of the mixture."""
    parts = [
        group_risk(m, c, teacher, teacher, fineness, kind)
        for m, c in zip(mixed.means, mixed.covariances, strict=True)
    ]
    groups = np.stack([part.hessian for part in parts])
    return Information(
        groups, np.tensordot(mixed.weights, groups, 1), np.array([float(part.loss) for part in parts])
    )


def error_constant(found: Information) -> float:
    """n E|W_n - W* P|_F^2 -> tr(I^-1)."""
    return float(np.sum(1 / found.spectrum))


def average_excess(found: Information) -> float:
    """n (f(W_n) - f(W*)) -> dK/2, whatever the mixture."""
    return len(found.total) / 2


def group_excess(found: Information) -> np.ndarray:
    """n (f_l(W_n) - f_l(W*)) -> tr(I_l I^-1) / 2, for every group."""
    inverse = np.linalg.inv(found.total)
    return np.array([np.sum(one * inverse) / 2 for one in found.groups])


def noise_floor(spectrum: np.ndarray, step: float, bound: float, samples: int) -> float:
    """The root mean square distance to W_n at which gradient descent with fresh noise stays: eta0 xi / sqrt(3 n) times
    sqrt(sum_i 1 / (1 - (1 - eta0 lambda_i)^2)) (noise uniform on +-xi, averaged over the samples)."""
    decay = 1 - step * np.asarray(spectrum)
    return step * bound / sqrt(3 * samples) * sqrt(float(np.sum(1 / (1 - decay**2))))


def fixed_noise_shift(spectrum: np.ndarray, bound: float, samples: int) -> float:
    """With noise drawn once, W_n moves by I^-1 times its mean: root mean square xi / sqrt(3 n) sqrt(tr I^-2)."""
    return bound / sqrt(3 * samples) * sqrt(float(np.sum(1 / np.asarray(spectrum) ** 2)))


class Outlook(NamedTuple):
    """What a training set of so many samples a group leads to: excess risks, speed of descent, error of the weights."""

    average: float
    groups: np.ndarray
    speed: float
    error: float


def outlook(found: Information, test_weights: np.ndarray, counts: np.ndarray) -> Outlook:
    """Sharp asymptotics for `counts` training samples of each group: the weights' covariance is (sum_l n_l I_l)^-1."""
    gathered = np.tensordot(counts, found.groups, 1)
    inverse = np.linalg.inv(gathered)
    excess = np.array([np.sum(one * inverse) / 2 for one in found.groups])
    values = np.linalg.eigvalsh(gathered)
    return Outlook(
        float(test_weights @ excess), excess, float(values[0] / values[-1]), float(sqrt(np.sum(1 / values)))
    )
