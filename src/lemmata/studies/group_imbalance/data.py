"""Groups as components of a Gaussian mixture, and labels from a teacher of one hidden layer (Section 4.3).

A sample: draw the group g with probability lambda_g, then x ~ N(mu_g, Sigma_g), then y = 1 with probability
H(W*, x) = (1/K) sum_j phi(w*_j . x). The learner sees x and y, never g. A group is a minority when lambda_l < 1/L.
"""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lemmata.errors import require
from lemmata.studies.group_imbalance.network import Kind, Numbers, predict_proba
from lemmata.trial import Key, fixed


class Mixture(NamedTuple):
    """The parameters Psi of a Gaussian mixture: `weights` lambda (groups), `means` mu (groups, dim), `covariances`
    Sigma (groups, dim, dim)."""

    weights: Numbers
    means: Numbers
    covariances: Numbers


class World(NamedTuple):
    """What the samples of one run come from: the mixture and the teacher W* (dim, neurons)."""

    mixture: Mixture
    teacher: Numbers


class Samples(NamedTuple):
    """Training samples: inputs, labels (0 or 1, or H(W*, x) when soft), and the groups that the learner does not
    see."""

    inputs: Numbers
    labels: Numbers
    groups: Numbers


def mixture(weights, means, covariances) -> Mixture:
    """A mixture in float64, checked: fractions sum to one, covariances are symmetric and positive definite."""
    weights, means, covariances = (np.asarray(part, float) for part in (weights, means, covariances))
    groups, dim = means.shape
    require(
        weights.shape == (groups,) and covariances.shape == (groups, dim, dim),
        f"a mixture of {groups} groups in {dim} dimensions needs {groups} fractions and covariances of {dim} x {dim}.",
    )
    require(
        bool(np.all(weights > 0) and abs(weights.sum() - 1) < 1e-9),
        f"the fractions of the groups must be positive and sum to one, not to {weights.sum():.6g}.",
    )
    for group, covariance in enumerate(covariances):
        symmetric = np.allclose(covariance, covariance.T, atol=1e-10)
        smallest = float(np.linalg.eigvalsh((covariance + covariance.T) / 2)[0])
        require(
            bool(symmetric and smallest > 0),
            f"the covariance of group {group + 1} is not symmetric and positive definite "
            f"(smallest eigenvalue {smallest:.3g}).",
        )
    return Mixture(weights, means, covariances)


def check_teacher(teacher) -> np.ndarray:
    """A teacher in float64, checked: at most as many neurons as dimensions, full column rank (delta_K > 0)."""
    teacher = np.asarray(teacher, float)
    dim, neurons = teacher.shape
    require(neurons <= dim, f"{neurons} neurons in {dim} dimensions: the theory needs K <= d.")
    smallest = float(np.linalg.svd(teacher, compute_uv=False)[-1])
    require(
        smallest > 1e-10,
        "the teacher has deficient rank (delta_K(W*) = 0): its columns must be linearly independent.",
    )
    return teacher


def is_symmetric(mixed: Mixture, tolerance: float = 1e-9) -> bool:
    """Whether the mixture is invariant under x -> -x (C.4): every group has a mirror image of equal weight
    and covariance."""

    def mirrored(one: int, other: int) -> bool:
        return bool(
            abs(mixed.weights[one] - mixed.weights[other]) < tolerance
            and np.allclose(mixed.means[one], -mixed.means[other], atol=tolerance)
            and np.allclose(mixed.covariances[one], mixed.covariances[other], atol=tolerance)
        )

    groups = range(len(mixed.weights))
    return all(any(mirrored(one, other) for other in groups) for one in groups)


class Population(eqx.Module):
    """A mixture and a teacher, described by numbers.

    Group l has fraction `fractions[l]`, mean `shifts[l]` times the all-ones vector and covariance `spreads[l]`^2
    Lambda^T D Lambda, where D is `spectrum` (empty: the identity) and Lambda a random rotation drawn once a run;
    `means` and `covariances`, where given, take the place of shifts and spreads. The teacher's entries are N(0,
    teacher_scale^2) or uniform on +-teacher_scale; `teacher_columns`, where given, are its columns. `activation` is phi, of
    the teacher and of the student.
    """

    fractions: tuple[float, ...] = (0.5, 0.5)
    shifts: tuple[float, ...] = (1.0, 0.0)
    spreads: tuple[float, ...] = (1.0, 1.0)
    spectrum: tuple[float, ...] = ()
    means: tuple[tuple[float, ...], ...] = ()
    covariances: tuple[tuple[tuple[float, ...], ...], ...] = ()
    teacher_scale: float = 1.0
    teacher_columns: tuple[tuple[float, ...], ...] = ()
    samples: int = fixed(default=10_000)
    dim: int = fixed(default=5)
    neurons: int = fixed(default=3)
    teacher: Literal["gaussian", "uniform"] = fixed(default="gaussian")
    labels: Literal["bernoulli", "soft"] = fixed(default="bernoulli")
    activation: Kind = fixed(default="sigmoid")

    def __check_init__(self):
        groups, total = len(self.fractions), sum(self.fractions)
        require(
            all(f > 0 for f in self.fractions) and abs(total - 1) < 1e-9,
            f"the fractions of the groups must be positive and sum to one, not to {total:.6g}.",
        )
        require(self.samples > 0, f"a training set needs at least one sample, not {self.samples}.")
        require(
            1 <= self.neurons <= self.dim,
            f"{self.neurons} neurons in {self.dim} dimensions: the theory needs 1 <= K <= d.",
        )
        require(self.teacher_scale > 0, f"the teacher's scale must be positive, not {self.teacher_scale}.")
        require(
            len(self.means or self.shifts) == groups and len(self.covariances or self.spreads) == groups,
            f"{groups} groups need {groups} means and {groups} covariances.",
        )
        require(
            bool(self.covariances) or all(s > 0 for s in self.spreads),
            f"the spread of a group must be positive, not {min(self.spreads)}; else its covariance is not positive definite.",
        )
        require(
            not self.spectrum or (len(self.spectrum) == self.dim and min(self.spectrum) > 0),
            f"the spectrum needs {self.dim} positive numbers, not {self.spectrum}.",
        )
        if self.means or self.covariances:
            zeros = [[0.0] * self.dim] * groups
            mixture(
                self.fractions, self.means or zeros, self.covariances or [np.eye(self.dim).tolist()] * groups
            )
        if self.teacher_columns:
            shape = np.shape(self.teacher_columns)
            require(
                shape == (self.neurons, self.dim),
                f"the teacher needs {self.neurons} columns of {self.dim} numbers, not {shape}.",
            )
            check_teacher(np.asarray(self.teacher_columns).T)

    def world(self, key: Key) -> World:
        """The mixture and the teacher of one run. Teacher and rotation have keys of their own."""
        teacher_key, rotation_key = jax.random.split(key)
        return World(self._mixture(rotation_key), self._teacher(teacher_key))

    def draw(self, key: Key, world: World) -> Samples:
        """Training samples, each from a key of its own, so that more samples begin with the same ones."""
        return draw(key, world, self.samples, self.labels, self.activation)

    def _teacher(self, key: Key) -> Float[Array, "dim neurons"]:
        if self.teacher_columns:
            return jnp.asarray(self.teacher_columns).T
        shape = (self.dim, self.neurons)
        if self.teacher == "uniform":
            return self.teacher_scale * jax.random.uniform(key, shape, minval=-1.0)
        return self.teacher_scale * jax.random.normal(key, shape)

    def _mixture(self, key: Key) -> Mixture:
        means = self.means or [jnp.full(self.dim, shift) for shift in self.shifts]
        if self.covariances:
            covariances = jnp.asarray(self.covariances)
        else:
            shape = jnp.eye(self.dim)
            if self.spectrum:
                rotation = jnp.linalg.svd(jax.random.normal(key, (self.dim, self.dim)))[0]
                shape = rotation.T @ jnp.diag(jnp.asarray(self.spectrum)) @ rotation
            covariances = jnp.asarray(self.spreads)[:, None, None] ** 2 * shape
        return Mixture(jnp.asarray(self.fractions), jnp.asarray(means), covariances)


def draw(key: Key, world: World, count: int, labels: str, kind: Kind = "sigmoid") -> Samples:
    """`count` samples of the mixture with the teacher's labels."""
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(count))

    def one(own: Key) -> tuple[Array, Array, Array]:
        which, where, coin = jax.random.split(own, 3)
        dim = world.teacher.shape[0]
        return jax.random.uniform(which), jax.random.normal(where, (dim,)), jax.random.uniform(coin)

    place, noise, coin = jax.vmap(one)(keys)
    groups = jnp.searchsorted(jnp.cumsum(world.mixture.weights)[:-1], place)
    inputs = jnp.zeros_like(noise)
    roots = jnp.linalg.cholesky(world.mixture.covariances)
    for group, root in enumerate(roots):
        inputs = jnp.where((groups == group)[:, None], world.mixture.means[group] + noise @ root.T, inputs)
    chance = predict_proba(world.teacher, inputs, kind)
    given = chance if labels == "soft" else (coin < chance).astype(chance.dtype)
    return Samples(inputs, given, groups)


def fresh_inputs(key: Key, world: World, points: int) -> Float[Array, "groups points dim"]:
    """Fresh inputs of every group: the same standard normal draws, moved and stretched by each."""
    noise = jax.random.normal(key, (points, world.teacher.shape[0]))
    roots = jnp.linalg.cholesky(world.mixture.covariances)
    return world.mixture.means[:, None] + jnp.einsum("pd,ged->gpe", noise, roots)


# Score functions of a mixture (Definition C.1.1) ------------------------------------------------------------------------


class Scores(NamedTuple):
    """The parts of the score tensors S_j(x) = (-1)^j grad^j p(x) / p(x), sample by sample, without any d^3 array.

    `share` gamma_l(x), the responsibility of group l; `pull` a_l = Sigma_l^-1 (x - mu_l); `precision` P_l = Sigma_l^-1.
    S_1 = sum_l gamma_l a_l; S_2 = sum_l gamma_l (a a^T - P); S_3 = sum_l gamma_l (a a a - sym(a, P)), where sym(a,
    P)_ijk = a_i P_jk + a_j P_ik + a_k P_ij (the printed operator would give Sigma^-2).
    """

    share: np.ndarray
    pull: np.ndarray
    precision: np.ndarray


def scores(mixed: Mixture, inputs: np.ndarray) -> Scores:
    """Responsibilities (log-sum-exp) and pulls of all samples: arrays (group, sample) and (group, sample, dim)."""
    precision = np.linalg.inv(mixed.covariances)
    pull = np.stack([(inputs - m) @ p for m, p in zip(mixed.means, precision, strict=True)])
    square = np.stack([((inputs - m) * a).sum(-1) for m, a in zip(mixed.means, pull, strict=True)])
    volume = np.linalg.slogdet(mixed.covariances)[1]
    log_joint = np.log(mixed.weights)[:, None] - (volume[:, None] + square) / 2
    log_joint -= log_joint.max(0)
    joint = np.exp(log_joint)
    return Scores(joint / joint.sum(0), pull, precision)
