"""Trials without training: closed forms and Fisher information of a mixture, the two sides of Lemma C.4.1, curvature and its
changes around W*, and how far moments and derivatives of samples are from those of the population."""

from dataclasses import replace
from itertools import product
from math import sqrt
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lemmata.errors import require
from lemmata.programs import traced_once
from lemmata.studies.group_imbalance.data import Population, Samples, World, scores
from lemmata.studies.group_imbalance.network import Curvature, align_columns, curvature, local, predict_proba
from lemmata.studies.group_imbalance.theory import bounds, population
from lemmata.studies.group_imbalance.theory.bounds import ROWS, Setting
from lemmata.studies.group_imbalance.theory.rho_function import rho, rho_exact
from lemmata.studies.group_imbalance.trials import tensor
from lemmata.studies.group_imbalance.trials.descents import around
from lemmata.trial import Computed, Key, fixed


class Exact(Computed):
    """What theory says about a mixture and a teacher drawn at random: the rows of Table 4.1 for `group` from the closed
    forms, and (`what=both`) the sharp constants from the Fisher information, with both sides of Lemma C.4.4; or
    (`what=projected`) by how much lambda_min / lambda_max changes once the means are projected onto the span of W*.
    `column` is the column of the table that the mixture belongs to."""

    name: ClassVar = "group-imbalance/exact"
    paired: ClassVar = (
        "population.fractions",
        "population.shifts",
        "population.spreads",
        "population.samples",
        "what",
        "column",
    )
    dims: ClassVar = {"group_excess": ("group",), "group_entropy": ("group",)}

    population: Population = Population()
    group: int = fixed(default=1)
    column: Literal[
        "",
        "covariance-small",
        "covariance-large",
        "mean",
        "mean-small",
        "fraction-smallest",
        "fraction-largest",
    ] = fixed(default="")
    what: Literal["closed", "both", "projected"] = fixed(default="closed")

    def __check_init__(self):
        groups = len(self.population.fractions)
        require(
            0 <= self.group < groups, f"there is no group {self.group}: the mixture has {groups}, from 0 on."
        )

    def world(self, key: Key) -> World:
        return _world(self.population, key)

    def compute(self, key: Key) -> dict[str, np.ndarray | float]:
        world = jax.tree.map(np.asarray, self.world(key))
        kind = self.population.activation
        s = Setting(world.mixture, world.teacher, kind=kind)
        rows = bounds.table_quantities(s, self.group)
        found: dict[str, np.ndarray | float] = {f"closed_{row}": rows[row] for row in ROWS}
        if self.what == "closed":
            return found
        sharp = population.fisher_information(world.mixture, world.teacher, kind=kind)
        if self.what == "projected":
            span = np.linalg.qr(world.teacher)[0]
            inner = world.mixture._replace(means=world.mixture.means @ span @ span.T)
            other = population.fisher_information(inner, world.teacher, kind=kind)
            rates = (one.spectrum[0] / one.spectrum[-1] for one in (other, sharp))
            return found | {"projected_over_rate": np.divide(*rates)}
        mended = replace(s, rho=lambda u, std: rho_exact(u, std, s.dim > s.neurons, kind))
        low, high = sharp.spectrum[[0, -1]]
        bottom, top = bounds.curvature_bounds(s)
        return found | {
            "sharp_error": np.sqrt(population.error_constant(sharp)),
            "sharp_rate": low / high,
            "printed_rate": low * bounds.step_size(s),
            "sharp_group": float(population.group_excess(sharp)[self.group]),
            "sharp_average": float(world.mixture.weights @ population.group_excess(sharp)),
            "group_excess": population.group_excess(sharp),
            "group_entropy": sharp.entropies,
            "least_over_bound": low / bottom,
            "least_over_mended": low / bounds.curvature_bounds(mended)[0],
            "bound_over_largest": top / high,
        }


class Lemma(Computed):
    """Both sides of Lemma C.4.1 at one mean and sigma, and of Lemma C.4.4 for W* = sigma I and one group N(mu, I)."""

    name: ClassVar = "group-imbalance/lemma"

    mean: tuple[float, ...] = (1.0, 1.0)
    std: float = 1.0

    def __check_init__(self):
        require(self.std > 0, f"sigma must be positive, not {self.std}.")

    def compute(self, key: Key) -> dict[str, float]:
        mean = np.asarray(self.mean)
        printed, exact = rho(mean, self.std), rho_exact(mean, self.std)
        mixed = population.Mixture(np.ones(1), mean[None], np.eye(len(mean))[None])
        teacher = self.std * np.eye(len(mean))
        low = population.fisher_information(mixed, teacher, fineness=0.5).spectrum[0]
        side = 4 / len(mean) ** 2
        return {
            "rho": printed,
            "rho_exact": exact,
            "lemma_ratio": exact / printed,
            "least_over_bound": low / (side * printed),
            "least_over_mended": low / (side * exact),
        }


@traced_once()
def _world(drawn_from: Population, key: Key) -> World:
    """The world of a trial; the other parts of its key are for samples and places."""
    return drawn_from.world(jax.random.split(key, 3)[0])


@traced_once()
def _seen(drawn_from: Population, key: Key) -> tuple[World, Samples, Curvature]:
    """A world, samples of it, and the empirical risk's derivatives at W*."""
    world_key, data_key, _ = jax.random.split(key, 3)
    world = drawn_from.world(world_key)
    data = drawn_from.draw(data_key, world)
    return world, data, curvature(world.teacher[None], data.inputs, data.labels, drawn_from.activation)


PROOF = 8 * sqrt(3)
"""C_12 of Lemma C.4.2 from its own proof: C_7 = 2 + 2 + 3 + 1 (C.156 to C.159) and the 3 of a fourth moment."""


class Ball(Computed):
    """Curvature around W*: the extreme eigenvalues of the empirical Hessian at `points` random places on the sphere of the
    radius r of (C.81) over both sides of Lemma C.3.1 (eps_0 = `slack`, constants 1), and how fast Hessians change: of
    single samples (Lemma C.4.2, at W*, for r is small) and of the population (C.4.3), each over its bound."""

    name: ClassVar = "group-imbalance/ball"
    paired: ClassVar = ("population.shifts", "population.spreads", "population.samples")

    population: Population = Population()
    slack: float = 0.24
    far: float = 0.1
    points: int = fixed(default=8)

    def __check_init__(self):
        require(0 < self.slack < 0.25, f"eps_0 lies between 0 and 1/4, not at {self.slack}.")
        require(self.points > 0, f"the ball needs at least one point, not {self.points}.")

    def world(self, key: Key) -> World:
        return _world(self.population, key)

    def compute(self, key: Key) -> dict[str, float]:
        world = jax.tree.map(np.asarray, self.world(key))
        s = Setting(world.mixture, world.teacher, kind=self.population.activation)
        radius = bounds.convex_radius(s, self.slack)
        seen = _circled(self, key, np.array([radius, self.far]))
        values, apart, single = map(np.asarray, seen)
        low = (1 - 2 * self.slack) * bounds.g_fn(s) / s.neurons**2
        return {
            "radius": radius,
            "ball_low": float(values[0].min()) / low,
            "ball_high": float(values[0].max()) / bounds.m_moment(s, 2),
            "far_low": float(values[1].min()) / low,
            "population_change": float(apart.max()) / bounds.hessian_lipschitz(s),
            "sample_change": float(single) / (PROOF * bounds.sample_lipschitz(s)),
            "sample_change_mended": float(single) / (PROOF * bounds.sample_lipschitz(s, printed=False)),
        }


@traced_once()
def _circled(ball: Ball, key: Key, radii: Array) -> tuple[Array, Array, Array]:
    """The spectra of the empirical Hessian on spheres around W*, the change of the Hessian for soft labels per distance on
    the outer one, and the mean over samples of |x|^3 times the norm of the third derivative in the logits."""
    world_key, data_key, place_key = jax.random.split(key, 3)
    world, kind = ball.population.world(world_key), ball.population.activation
    data = ball.population.draw(data_key, world)
    keys = jax.random.split(place_key, ball.points)
    away = jax.vmap(lambda k: around(k, world.teacher.shape, 1.0))(keys)
    places = world.teacher + radii[:, None, None, None] * away
    hessians = jax.lax.map(lambda some: curvature(some, data.inputs, data.labels, kind).hessian, places)
    soft = predict_proba(world.teacher, data.inputs, kind)
    smooth = curvature(jnp.concatenate([world.teacher[None], places[1]]), data.inputs, soft, kind).hessian
    apart = jnp.abs(jnp.linalg.eigvalsh(smooth[1:] - smooth[0])).max(-1) / radii[1]
    third = jax.jacfwd(lambda z, y: local(z, y, kind).curve)
    change = jax.vmap(third)(data.inputs @ world.teacher, data.labels)
    single = jnp.mean(jnp.sum(data.inputs**2, -1) ** 1.5 * jax.vmap(_cubic_norm)(change))
    return jnp.linalg.eigvalsh(hessians), apart, single


def _cubic_norm(tensor: Array) -> Array:
    """max |T(u, u, u)| over unit vectors, the norm of a symmetric tensor, from below (by up to about a tenth): a few power
    steps from the axes and their sums."""
    size = tensor.shape[0]
    starts = np.concatenate([np.eye(size), np.array([*product((-1.0, 1.0), repeat=size)])])

    def follow(u: Array) -> Array:
        for _ in range(12):
            u = tensor @ u @ u + 1e-3 * u
            u = u / jnp.maximum(jnp.linalg.norm(u), 1e-300)
        return jnp.abs(tensor @ u @ u @ u)

    begun = jnp.asarray(starts / np.linalg.norm(starts, axis=1, keepdims=True))
    return jnp.max(jax.vmap(follow)(begun))


class Deviations(Computed):
    """How far samples are from the population, at W*: the Hessian (Lemma C.4.5), the gradient with noise of level
    `noise` (C.5.1), the moments Q_1, Q_2, R_3 (C.6.1 to C.6.3), the subspace (C.6.4), and the initialisation (C.3.3)
    with both magnitudes."""

    name: ClassVar = "group-imbalance/deviations"

    population: Population = Population()
    noise: float = 0.0

    def __check_init__(self):
        require(self.noise >= 0, f"the noise level must not be negative, not {self.noise}.")

    def world(self, key: Key) -> World:
        return _world(self.population, key)

    def compute(self, key: Key) -> dict[str, float]:
        world, data, seen = _seen(self.population, key)
        world, data = jax.tree.map(np.asarray, (world, data))
        kind = self.population.activation
        tensor.check_identifiable(world, kind=kind)
        exact = population.fisher_information(world.mixture, world.teacher, fineness=0.5, kind=kind)
        rng = np.random.default_rng(int(jax.random.bits(key)))
        spread = self.noise / np.sqrt(3 * len(data.labels))  # the mean of many bounded draws is normal
        gradient = np.asarray(seen.gradient[0]) + spread * rng.normal(size=world.teacher.shape)
        return {
            "hessian_off": float(np.linalg.norm(np.asarray(seen.hessian[0]) - exact.total, 2)),
            "gradient_off": float(np.linalg.norm(gradient)),
            **self._moments(world, data),
            **self._starts(world, data),
        }

    def _moments(self, world: World, data: Samples) -> dict[str, float]:
        parts, teacher = scores(world.mixture, data.inputs), world.teacher
        truth = tensor.population_moments(world, self.population.activation)
        basis = np.linalg.qr(teacher)[0]
        seen = basis.T @ teacher
        second = tensor.second_moment(parts, data.labels)
        right = (teacher * truth.second) @ teacher.T
        cubes = np.einsum("i,ai,bi,ci->abc", truth.third, seen, seen, seen)
        third = tensor.projected_third_moment(parts, data.labels, basis) - cubes
        found = tensor.leading_subspace(second, teacher.shape[1])
        return {
            "first_off": float(
                np.linalg.norm(tensor.first_moment(parts, data.labels) - teacher @ truth.first)
            ),
            "second_off": float(np.linalg.norm(second - right, 2)),
            "third_off": float(np.linalg.norm(third.reshape(len(third), -1), 2)),
            "subspace_off": float(np.linalg.norm(found @ found.T - basis @ basis.T, 2)),
        }

    def _starts(self, world: World, data: Samples) -> dict[str, float]:
        size = np.linalg.norm(world.teacher)
        return {
            f"{magnitude}_off": float(
                np.linalg.norm(
                    align_columns(
                        tensor.tensor_initialisation(
                            world.mixture,
                            data,
                            self.population.neurons,
                            magnitude,
                            kind=self.population.activation,
                        ).weights,
                        world.teacher,
                    )
                    - world.teacher
                )
                / size
            )
            for magnitude in ("inverted", "literal")
        }
