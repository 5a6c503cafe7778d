"""The three data models: bounded tokens (Assumption 1), a mixture of tokens (DM1), a planted attention teacher (DM2).

Each has `teacher(key)`, what is drawn once a trial, `sample(key, teacher, count)`, and `oracle(teacher)`: unit-norm weights of
one head that solve it, along which targets are looked for. Sample `i` depends on `key` and `i` alone, so that a larger set
begins with the smaller one. Data are drawn in float64; a trial casts them to its type.
"""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from lemmata.errors import require
from lemmata.trial import Key, fixed

NoiseLaw = Literal["none", "cube", "ball", "truncated", "orthogonal", "gaussian"]

TRUNCATION = 2.0
"""The truncated Gaussian keeps `||z|| <= TRUNCATION * sqrt(d) * sigma`."""


class Samples(NamedTuple):
    """Tokens `X`, labels `y` in {-1, +1}, which tokens carry the label, and the noise that was added to the others
    (None where nobody will ask)."""

    tokens: Float[Array, "sample token dim"]
    labels: Float[Array, " sample"]
    relevant: Bool[Array, "sample token"]
    noise: Float[Array, "sample token dim"] | None = None


class Teacher(NamedTuple):
    """Attention `W*` and decoder `U*` that solve a problem: those planted in DM2, or a data model's `oracle`."""

    attention: Float[Array, "dim dim"]
    decoder: Float[Array, "token dim"]


class NoiseBounds(NamedTuple):
    """The constants of Assumption 3: `|<z, mu>| <= signal`, `|<z, nu>| <= irrelevant / M`, `||z|| <= norm`."""

    signal: float
    irrelevant: float
    norm: float

    @property
    def largest(self) -> float:
        """The larger of the two overlaps, `Z_bar`."""
        return max(self.signal, self.irrelevant)


class BoundedTokens(eqx.Module):
    """Generic data of Assumption 1, tokens of norm at most `radius`.

    `aligned`: `x_t = R (y v + s g_t) / ||y v + s g_t||` with `||g_t|| <= 1`, `v` the first unit vector, `s = spread`.
    Every token then has `<x_t, y v> >= R sqrt(1 - s^2)`, so an explicit target with an almost sure loss exists, as the
    generalisation theorem wants. `random`: tokens uniform in the ball, labels independent of them.
    """

    radius: float = fixed(default=1.0)
    spread: float = fixed(default=0.5)
    labels: Literal["aligned", "random"] = fixed(default="aligned")
    tokens: int = fixed(default=2)
    dim: int = fixed(default=2)
    samples: int = fixed(default=10)
    test_samples: int = fixed(default=1000)

    def __check_init__(self):
        _check_shape(self)
        require(self.radius >= 1, f"the bound on the token norms must be at least 1, not {self.radius}.")
        require(0 <= self.spread < 1, f"the spread must lie in [0, 1), not {self.spread}.")

    def teacher(self, key: Key) -> None:
        return None

    def oracle(self, teacher: None = None) -> Teacher:
        """The label's direction in every row of the decoder; no attention is needed."""
        rows = jnp.tile(jnp.eye(self.dim)[0], (self.tokens, 1))
        return Teacher(jnp.zeros((self.dim, self.dim)), rows / self.tokens**0.5)

    def sample(self, key: Key, teacher: None, count: int) -> Samples:
        def one(key: Key) -> Samples:
            label_key, noise_key = jax.random.split(key)
            label = jax.random.rademacher(label_key, dtype=float)
            noise = jax.random.ball(noise_key, self.dim, shape=(self.tokens,))
            if self.labels == "random":
                return Samples(self.radius * noise, label, jnp.ones(self.tokens, bool))
            direction = self.spread * noise + label * jnp.eye(self.dim)[0]
            tokens = self.radius * direction / jnp.linalg.norm(direction, axis=1, keepdims=True)
            return Samples(tokens, label, jnp.ones(self.tokens, bool))

        return _each(one, key, count)


class TokenMixture(eqx.Module):
    """DM1: `zeta T` tokens equal to the label's pattern `mu_y`; every other token an irrelevant pattern plus noise.

    The patterns are the first `M + 2` unit vectors times `signal` (any orthogonal frame is a rotation of these):
    `mu_+`, `mu_-`, `nu_1`, ..., `nu_M`. `noise` is the standard deviation of a coordinate for the Gaussian laws and
    the largest norm for the bounded ones.
    """

    signal: float = 2.0
    relevant_fraction: float = 0.1
    noise: float = 0.1
    tokens: int = fixed(default=10)
    dim: int = fixed(default=4)
    patterns: int = fixed(default=2)
    noise_law: NoiseLaw = fixed(default="gaussian")
    positions: Literal["random", "prefix"] = fixed(default="random")
    samples: int = fixed(default=100)
    test_samples: int = fixed(default=300)

    def __check_init__(self):
        _check_shape(self)
        count = self.relevant_fraction * self.tokens
        require(
            abs(count - round(count)) < 1e-6 and 1 <= round(count) < self.tokens,
            f"the number of relevant tokens, {self.relevant_fraction} x {self.tokens} = {count:g}, must be a whole "
            f"number from 1 to {self.tokens - 1}.",
        )
        require(
            self.patterns >= 1, f"the mixture needs at least one irrelevant pattern, not {self.patterns}."
        )
        require(
            self.dim >= self.patterns + 2,
            f"{self.patterns} irrelevant patterns and 2 signals need at least {self.patterns + 2} dimensions, "
            f"not {self.dim}.",
        )
        require(
            self.noise_law != "orthogonal" or self.dim > self.patterns + 2,
            f"noise orthogonal to all patterns needs more than {self.patterns + 2} dimensions, not {self.dim}.",
        )
        require(self.signal > 0, f"the signal strength must be positive, not {self.signal}.")
        require(self.noise >= 0, f"the noise cannot be negative, as {self.noise} is.")

    @property
    def frame(self) -> Float[Array, "pattern dim"] | Float[np.ndarray, "pattern dim"]:
        """All patterns, one a row: `mu_+`, `mu_-`, `nu_1`, ..., `nu_M`; an array of NumPy outside compiled programs."""
        return self.signal * np.eye(self.patterns + 2, self.dim)

    def teacher(self, key: Key) -> None:
        return None

    def oracle(self, teacher: None = None) -> Teacher:
        """`W* = mu_+ mu_+^T + mu_- mu_-^T + sum_l nu_l (mu_+ + mu_-)^T` (queries in rows) and `U* = 1_T (mu_+ - mu_-)^T`,
        both at unit norm (eqs 104, 105)."""
        frame, both = self.frame, self.frame[0] + self.frame[1]
        own = jnp.outer(frame[0], frame[0]) + jnp.outer(frame[1], frame[1])
        attention = own + jnp.outer(frame[2:].sum(axis=0), both)
        decoder = jnp.tile(frame[0] - frame[1], (self.tokens, 1))
        return Teacher(attention / jnp.linalg.norm(attention), decoder / jnp.linalg.norm(decoder))

    def sample(self, key: Key, teacher: None, count: int) -> Samples:
        frame = jnp.asarray(self.frame)

        def one(key: Key) -> Samples:
            choice_key, noise_key = jax.random.split(key)
            choices = jax.random.uniform(
                choice_key, (2 * self.tokens + 1,)
            )  # one draw: each costs compile time
            positive = choices[-1] < 0.5
            order = (
                jnp.argsort(choices[: self.tokens]) if self.positions == "random" else jnp.arange(self.tokens)
            )
            relevant = order < jnp.round(self.relevant_fraction * self.tokens)
            kinds = jnp.floor(choices[self.tokens : -1] * self.patterns).astype(int)
            noise = jnp.where(relevant[:, None], 0, self.draw_noise(noise_key))
            signal = jnp.where(positive, frame[0], frame[1])
            tokens = jnp.where(relevant[:, None], signal, frame[2 + kinds] + noise)
            return Samples(tokens, jnp.where(positive, 1.0, -1.0), relevant, noise)

        return _each(one, key, count)

    def draw_noise(self, key: Key) -> Float[Array, "token dim"]:
        """One noise vector a token."""
        shape = (self.tokens, self.dim)
        if self.noise_law == "none":
            return jnp.zeros(shape)
        if self.noise_law == "cube":
            return jax.random.uniform(key, shape, minval=-1, maxval=1) * self.noise / self.dim**0.5
        if self.noise_law == "ball":
            return jax.random.ball(key, self.dim, shape=(self.tokens,)) * self.noise
        if self.noise_law == "orthogonal":
            free = self.dim - self.patterns - 2
            inside = jax.random.ball(key, free, shape=(self.tokens,)) * self.noise
            return jnp.concatenate([jnp.zeros((self.tokens, self.dim - free)), inside], axis=1)
        if self.noise_law == "truncated":
            return jax.vmap(self._truncated)(jax.random.split(key, self.tokens))
        return jax.random.normal(key, shape) * self.noise

    def _truncated(self, key: Key) -> Float[Array, " dim"]:
        """A Gaussian vector conditioned to its ball, by rejection."""
        largest = TRUNCATION * self.dim**0.5

        def again(carry):
            key, _ = carry
            key, here = jax.random.split(key)
            return key, jax.random.normal(here, (self.dim,))

        def outside(carry):
            return jnp.linalg.norm(carry[1]) > largest

        return jax.lax.while_loop(outside, again, again((key, None)))[1] * self.noise

    def noise_bounds(self) -> NoiseBounds | None:
        """The almost sure constants of Assumption 3; None for Gaussian noise, which has none (measure it)."""
        norm = {"none": 0.0, "truncated": TRUNCATION * self.dim**0.5 * self.noise}.get(
            self.noise_law, self.noise
        )
        if self.noise_law == "gaussian":
            return None
        if self.noise_law in ("none", "orthogonal"):
            return NoiseBounds(0.0, 0.0, norm)
        return NoiseBounds(self.signal * norm, self.patterns * self.signal * norm, norm)


def measured_noise_bounds(mixture: TokenMixture, samples: Samples) -> NoiseBounds:
    """The constants of Assumption 3 over the noise that was drawn."""
    assert samples.noise is not None
    noise = np.asarray(samples.noise)
    overlaps = np.abs(noise @ mixture.frame.T)
    return NoiseBounds(
        float(overlaps[..., :2].max()),
        float(mixture.patterns * overlaps[..., 2:].max()),
        float(np.linalg.norm(noise, axis=-1).max()),
    )


class PlantedAttention(eqx.Module):
    """DM2: Gaussian tokens, labelled by the sign of one attention head with Gaussian weights, drawn once a trial."""

    tokens: int = fixed(default=10)
    dim: int = fixed(default=5)
    samples: int = fixed(default=1000)
    test_samples: int = fixed(default=3000)

    def __check_init__(self):
        _check_shape(self)

    def teacher(self, key: Key) -> Teacher:
        attention_key, decoder_key = jax.random.split(key)
        return Teacher(
            jax.random.normal(attention_key, (self.dim, self.dim)),
            jax.random.normal(decoder_key, (self.tokens, self.dim)),
        )

    def oracle(self, teacher: Teacher) -> Teacher:
        return Teacher(*(weights / jnp.linalg.norm(weights) for weights in teacher))

    def sample(self, key: Key, teacher: Teacher, count: int) -> Samples:
        def one(key: Key) -> Samples:
            tokens = jax.random.normal(key, (self.tokens, self.dim))
            attended = jax.nn.softmax(tokens @ teacher.attention @ tokens.T, axis=-1) @ tokens
            label = jnp.where(jnp.sum(teacher.decoder * attended) >= 0, 1.0, -1.0)
            return Samples(tokens, label, jnp.ones(self.tokens, bool))

        return _each(one, key, count)


DataModel = BoundedTokens | TokenMixture | PlantedAttention


def _each(one, key: Key, count: int) -> Samples:
    return jax.vmap(lambda i: one(jax.random.fold_in(key, i)))(jnp.arange(count))


def _check_shape(data) -> None:
    require(data.tokens >= 2, f"attention needs at least 2 tokens, not {data.tokens}.")
    require(data.dim >= 1, f"a token needs at least one dimension, not {data.dim}.")
    require(data.samples >= 1, f"training needs at least one sample, not {data.samples}.")
    require(data.test_samples >= 1, f"testing needs at least one sample, not {data.test_samples}.")
