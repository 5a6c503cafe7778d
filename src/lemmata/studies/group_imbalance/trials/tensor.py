"""Subroutine 1: initialisation from the moments of score functions, in NumPy; and the trial that descends from there.

Moments Q_j = E[y S_j(x)] = (1/K) sum_i E[phi^(j)(w*_i . x)] w*_i^(x j) (Stein). Labels enter centred: E[S_j] = 0, so
this changes nothing but the variance. No array of size d^3 is ever formed: third moments are taken contracted with a
vector or projected on K directions.
"""

import dataclasses
from typing import ClassVar, Literal, NamedTuple

import jax
import numpy as np
import scipy
from jaxtyping import Array

from lemmata.descent import Draw
from lemmata.errors import BadInput, require
from lemmata.loop import train
from lemmata.programs import traced_once
from lemmata.studies.group_imbalance.data import Mixture, Samples, Scores, World, is_symmetric, scores
from lemmata.studies.group_imbalance.network import Kind, align_columns
from lemmata.studies.group_imbalance.theory.rho_function import SPEED, bend, line, slope, third
from lemmata.studies.group_imbalance.trials.descents import Descents
from lemmata.trial import Computed, Key, fixed

# Moments from samples ---------------------------------------------------------------------------------------------------


def first_moment(parts: Scores, labels: np.ndarray) -> np.ndarray:
    """Q_1 from samples."""
    share = parts.share * (labels - labels.mean()) / len(labels)
    return sum(own @ pull for own, pull in zip(share, parts.pull, strict=True))  # type: ignore[return-value]


def second_moment(parts: Scores, labels: np.ndarray) -> np.ndarray:
    """Q_2 from samples: d x d."""
    share = parts.share * (labels - labels.mean()) / len(labels)
    return sum(  # type: ignore[return-value]
        (pull * own[:, None]).T @ pull - own.sum() * precision
        for own, pull, precision in zip(share, *parts[1:], strict=True)
    )


def contracted_third_moment(parts: Scores, labels: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Q_3(I, I, a) from samples: d x d."""
    share = parts.share * (labels - labels.mean()) / len(labels)
    total = np.zeros((len(along), len(along)))
    for own, pull, precision in zip(share, *parts[1:], strict=True):
        weight = own * (pull @ along)
        cross = np.outer(own @ pull, precision @ along)
        total += (pull * weight[:, None]).T @ pull - cross - cross.T - weight.sum() * precision
    return total


def projected_third_moment(parts: Scores, labels: np.ndarray, subspace: np.ndarray) -> np.ndarray:
    """R_3 = Q_3(U, U, U) from samples, projected before they are multiplied: K x K x K."""
    share = parts.share * (labels - labels.mean()) / len(labels)
    neurons = subspace.shape[1]
    total = np.zeros((neurons,) * 3)
    for own, pull, precision in zip(share, *parts[1:], strict=True):
        inner, seen = subspace.T @ precision @ subspace, pull @ subspace
        pairs = (seen[:, :, None] * seen[:, None, :]).reshape(len(seen), -1)
        total += ((seen * own[:, None]).T @ pairs).reshape(total.shape)
        mean = own @ seen
        total -= np.einsum("i,jk->ijk", mean, inner)
        total -= np.einsum("j,ik->ijk", mean, inner) + np.einsum("k,ij->ijk", mean, inner)
    return total


# Moments of the population ----------------------------------------------------------------------------------------------


def along_line(mixed: Mixture, direction: np.ndarray, function, kind: Kind = "sigmoid") -> float:
    """E[f(w . x)] under the mixture, f a derivative of phi: one dimension, by quadrature."""
    total = 0.0
    for weight, mean, covariance in zip(*mixed, strict=True):
        spread = float(np.sqrt(direction @ covariance @ direction))
        place, measure = line(float(direction @ mean) / spread, SPEED[kind] * spread)
        total += float(weight * (measure @ function(spread * place, kind)))
    return total


class Moments(NamedTuple):
    """E[phi^(j)(w*_i . x)] / K of every neuron, j = 1, 2, 3: the coefficients of w_i, w_i w_i^T and w_i (x) w_i (x)
    w_i."""

    first: np.ndarray
    second: np.ndarray
    third: np.ndarray


def population_moments(world: World, kind: Kind = "sigmoid") -> Moments:
    neurons = world.teacher.shape[1]

    def each(function) -> np.ndarray:
        return np.array([along_line(world.mixture, w, function, kind) for w in world.teacher.T]) / neurons

    return Moments(each(slope), each(bend), each(third))


def check_identifiable(world: World, along: np.ndarray | None = None, kind: Kind = "sigmoid") -> None:
    """Refuse an instance whose moments do not span the teacher: the matrix of line 2 of Subroutine 1 must have rank
    K, that is, every E[phi''(w_i . x)] (in the symmetric case every E[phi'''(w_i . x)] a . w_i) must differ from 0."""
    found = population_moments(world, kind)
    symmetric = is_symmetric(world.mixture)
    used = found.third * (1.0 if along is None else world.teacher.T @ along) if symmetric else found.second
    weak = int(np.argmin(np.abs(used)))
    which = "third" if symmetric else "second"
    require(
        bool(abs(used[weak]) > 1e-9 * max(np.abs(used).max(), 1e-3)),
        f"this instance cannot be initialised from its moments: the {which} moment has deficient rank, for neuron "
        f"{weak + 1} does not enter it; shift or tilt the groups.",
    )


# Subroutine 1 -----------------------------------------------------------------------------------------------------------


class Initial(NamedTuple):
    """W_0 and what it is made of: the subspace U, directions v_j in it, coefficients of Q_1, magnitudes z_j."""

    weights: np.ndarray
    subspace: np.ndarray
    directions: np.ndarray
    coefficients: np.ndarray
    magnitudes: np.ndarray


def tensor_initialisation(
    mixed: Mixture,
    data: Samples,
    neurons: int,
    magnitude: str = "inverted",
    along: np.ndarray | None = None,
    seed: int = 0,
    kind: Kind = "sigmoid",
) -> Initial:
    """Subroutine 1: subspace from the first third of the samples, directions from the second, magnitudes from the last.

    `magnitude=literal` returns the coefficients of Q_1 as norms, as printed; `inverted` solves (z/K) E[phi'(z v .
    x)] = coefficient."""
    inputs, labels = np.asarray(data.inputs), np.asarray(data.labels)
    rng = np.random.default_rng(seed)
    cut = len(labels) // 3
    pieces = [slice(0, cut), slice(cut, 2 * cut), slice(2 * cut, None)]
    if is_symmetric(mixed):
        along = rng.normal(size=inputs.shape[1]) if along is None else along
        along = along / np.linalg.norm(along)
        matrix = contracted_third_moment(scores(mixed, inputs[pieces[0]]), labels[pieces[0]], along)
    else:
        matrix = second_moment(scores(mixed, inputs[pieces[0]]), labels[pieces[0]])
    subspace = leading_subspace(matrix, neurons)
    tensor = projected_third_moment(scores(mixed, inputs[pieces[1]]), labels[pieces[1]], subspace)
    directions, strengths = decompose(tensor, rng)
    first = first_moment(scores(mixed, inputs[pieces[2]]), labels[pieces[2]])
    spanned = subspace @ directions
    coefficients = np.linalg.lstsq(spanned, first, rcond=None)[0]
    flip = np.where(
        coefficients < 0, -1.0, 1.0
    )  # E[phi'] > 0 decides the sign, which a cubic form leaves open
    directions, coefficients, strengths = directions * flip, coefficients * flip, strengths * flip
    if magnitude == "literal":
        sizes = coefficients
    else:
        sizes = np.array(
            [
                inverted_magnitude(mixed, subspace @ v, c, s, neurons, kind)
                for v, c, s in zip(directions.T, coefficients, strengths, strict=True)
            ]
        )
    return Initial(subspace @ directions * sizes, subspace, directions, coefficients, sizes)


def leading_subspace(matrix: np.ndarray, neurons: int) -> np.ndarray:
    """The eigenvectors of the K eigenvalues largest in magnitude (E[phi''] may be negative)."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return vectors[:, np.argsort(-np.abs(values))[:neurons]]


def decompose(tensor: np.ndarray, rng: np.random.Generator):
    """Unit vectors v_i and strengths with tensor = sum_i strength_i v_i (x) v_i (x) v_i, by the method of Kuleshov,
    Chaganty and Liang (2015): the contractions of the tensor with 10 K random vectors are diagonalised together, then its
    contractions with the factors found so (their plug-in step)."""
    neurons = len(tensor)
    if neurons == 1:
        return np.ones((1, 1)), tensor.reshape(1)
    factors = jointly_diagonal(_contracted(tensor, rng.normal(size=(neurons, 10 * neurons))), None)
    factors = jointly_diagonal(_contracted(tensor, factors), factors)
    return factors, _strengths(tensor, factors)


def _contracted(tensor: np.ndarray, along: np.ndarray) -> np.ndarray:
    """T(I, I, w) for each unit vector w among the directions of the columns."""
    return np.moveaxis(tensor @ (along / np.linalg.norm(along, axis=0)), -1, 0)


def jointly_diagonal(matrices: np.ndarray, start: np.ndarray | None, most: int = 200) -> np.ndarray:
    """Unit vectors v_i such that every symmetric matrix is nearly sum_i c_i v_i v_i^T: joint diagonalisation by a matrix
    that need not be orthogonal.

    Newton-like steps (Ziehe, Laskov, Nolte, Mueller 2004): with C = B M B^T for all M and D their diagonals, B <- (1 + V) B
    where V solves the linearised problem, two entries at a time. `start` has the v_i to begin with; without it, the
    eigenvectors of one matrix in the metric of another (both mixed from all of them).
    """
    size = matrices.shape[1]
    inverse = np.linalg.inv(_eigenvectors(matrices) if start is None else start)
    for _ in range(most):
        seen = inverse @ matrices @ inverse.T
        diagonals = np.diagonal(seen, axis1=1, axis2=2)
        z = diagonals.T @ diagonals
        y = np.einsum("li,lij->ji", diagonals, seen)  # y_ij = sum_l D_j C_ij
        own = np.diag(z)
        gap = np.outer(own, own) - z**2
        np.fill_diagonal(gap, 1.0)
        move = (z * y.T - own[:, None] * y) / np.maximum(gap, 1e-14 * np.outer(own, own))
        np.fill_diagonal(move, 0.0)
        length = np.linalg.norm(move)
        inverse = (np.eye(size) + move * min(1.0, 0.5 / max(length, 1e-300))) @ inverse
        inverse /= np.linalg.norm(inverse, axis=1, keepdims=True)
        if length < 1e-13:
            break
    factors = np.linalg.inv(inverse)
    return factors / np.linalg.norm(factors, axis=0)


def _eigenvectors(matrices: np.ndarray) -> np.ndarray:
    """A start: eigenvectors of A B^-1 (Jennrich), A and B being the two leading mixtures of the matrices; the identity where
    these are not real or not independent."""
    size = matrices.shape[1]
    leading = np.linalg.svd(matrices.reshape(len(matrices), -1), full_matrices=False)[2][:2].reshape(
        2, size, size
    )
    values, vectors = np.linalg.eig(leading[1] @ np.linalg.pinv(leading[0]))
    real = np.abs(np.imag(values)).max() < 1e-9 * max(np.abs(values).max(), 1e-300)
    return np.real(vectors) if real and np.linalg.cond(vectors) < 1e6 else np.eye(size)


def _strengths(tensor: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    cubes = np.einsum("ai,bi,ci->abci", vectors, vectors, vectors).reshape(-1, vectors.shape[1])
    return np.linalg.lstsq(cubes, tensor.ravel(), rcond=None)[0]


def inverted_magnitude(
    mixed: Mixture,
    direction: np.ndarray,
    coefficient: float,
    strength: float,
    neurons: int,
    kind: Kind = "sigmoid",
) -> float:
    """z with (z/K) E[phi'(z v . x)] = coefficient; of several, the one that fits the third-order coefficient
    (1/K) E[phi'''] z^3 best; where there is none, the nearest."""
    grid = np.geomspace(1e-3, 30, 60)

    def miss(z: float) -> float:
        return z / neurons * along_line(mixed, z * direction, slope, kind) - coefficient

    values = np.array([miss(z) for z in grid])
    crossed = np.flatnonzero(np.sign(values[1:]) != np.sign(values[:-1]))
    if not len(crossed):
        return float(grid[np.argmin(np.abs(values))])
    roots = [float(scipy.optimize.brentq(miss, grid[i], grid[i + 1])) for i in crossed]  # type: ignore[arg-type]

    def unfit(z: float) -> float:
        return abs(z**3 / neurons * along_line(mixed, z * direction, third, kind) - strength)

    return min(roots, key=unfit)


def fitted_mixture(inputs: np.ndarray, groups: int) -> Mixture:
    """Psi estimated by expectation-maximisation, where it is not known (scikit-learn)."""
    try:
        from sklearn.mixture import GaussianMixture
    except ImportError:
        raise BadInput("estimating a mixture needs scikit-learn: pip install 'lemmata[baselines]'.") from None

    found = GaussianMixture(groups, random_state=0).fit(inputs)
    return Mixture(found.weights_, found.means_, np.asarray(found.covariances_))


# The trial --------------------------------------------------------------------------------------------------------------


@traced_once()
def _drawn(training: Descents, key: Key) -> Draw:
    return training.draw(jax.random.split(key)[0])


class SameStep(Descents):
    """Descent from given weights with the step size of the drawn start: all arms of Figure C.1 take the same step."""

    def draw_with(self, key: Key, data: tuple[Array, Array] | None, weights: Array | None) -> Draw:
        drawn = Descents.draw_with(self, key, data, None)
        return drawn if weights is None else drawn._replace(params=weights)


def _same_step(training: Descents) -> SameStep:
    return SameStep(**{field.name: getattr(training, field.name) for field in dataclasses.fields(training)})


class Initialised(Computed):
    """Figure C.1: gradient descent from the tensor initialisation, from a local random start, or from far away."""

    name: ClassVar = "group-imbalance/initialisation"
    may_be_missing: ClassVar = (  # no tensor; ended before; arrived to the bit
        *("subspace_error", "distance_path", "loss_path", "contraction"),
    )
    paired: ClassVar = ("begin", "magnitude")
    dims: ClassVar = {"distance_path": ("point",), "loss_path": ("point",), "path_step": ("point",)}

    training: Descents = Descents()
    begin: Literal["tensor", "local", "far"] = fixed(default="tensor")
    magnitude: Literal["inverted", "literal"] = fixed(default="inverted")

    @property
    def population(self):
        return self.training.population

    def world(self, key: Key) -> World:
        return self.training.world(key)

    def compute(self, key: Key) -> dict[str, np.ndarray | float]:
        drawn = _drawn(self.training, key)
        world = jax.tree.map(np.asarray, drawn.world.world)
        data = Samples(*map(np.asarray, drawn.data), groups=np.zeros(0))
        spanned = np.linalg.qr(world.teacher)[0]
        subspace_error = np.nan
        if self.begin == "tensor":
            kind = self.population.activation
            check_identifiable(world, kind=kind)
            made = tensor_initialisation(
                world.mixture, data, self.population.neurons, self.magnitude, kind=kind
            )
            start = align_columns(made.weights, world.teacher)
            apart = made.subspace @ made.subspace.T - spanned @ spanned.T
            subspace_error = float(np.linalg.norm(apart, 2))
        elif self.begin == "local":
            start = np.asarray(drawn.params)
        else:
            rng = np.random.default_rng(int(jax.random.bits(key)))
            start = self.training.far_std * rng.normal(size=world.teacher.shape)
        found = train(_same_step(self.training), key=key, data=drawn.data, weights=start)
        return {
            "relative_error": float(np.linalg.norm(start - world.teacher) / np.linalg.norm(world.teacher)),
            "subspace_error": subspace_error,
            "distance_path": found["distance_curve"],
            "loss_path": found["loss_curve"],
            "path_step": np.asarray(self.training.log_steps, float),
            **{
                name: found[name]
                for name in (
                    "distance",
                    "critical_found",
                    "contraction",
                    "contraction_exact",
                    "final_loss",
                    "critical_loss",
                )
            },
        }
