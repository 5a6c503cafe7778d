"""In-context linear regression: `x ~ N(0, Lambda)`, `w ~ N(0, I)`, `y_n = w.x_n`, and the moments that the loss needs."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lemmata.errors import require
from lemmata.trial import Key, fixed


class Moments(NamedTuple):
    """What the loss knows of the prompts: `z = beta x_q^T` with `beta = (1/N) sum_n y_n x_n` (4), and the target `y_q`.

    `target`: `E y_q^2`. `cross`: `E y_q z`. `square`: `E z z^T`, of z as a vector.
    """

    target: Float[Array, ""]
    cross: Float[Array, "dim dim"]
    square: Float[Array, "entries entries"]


class Prompts(NamedTuple):
    """Inputs of the samples, the query, and the task of each prompt."""

    inputs: Float[Array, "prompts context dim"]
    query: Float[Array, "prompts dim"]
    task: Float[Array, "prompts dim"]

    @property
    def moments(self) -> Moments:
        answers = jnp.einsum("pnd,pd->pn", self.inputs, self.task)
        beta = jnp.einsum("pn,pnd->pd", answers, self.inputs) / self.inputs.shape[1]
        z = (beta[:, :, None] * self.query[:, None, :]).reshape(len(beta), -1)
        target = jnp.sum(self.query * self.task, axis=1)
        cross = (target @ z).reshape(beta.shape[1], -1)
        return Moments(jnp.mean(target**2), cross / len(z), z.T @ z / len(z))


class Regression(eqx.Module):
    """The law of the prompts: `Lambda = diag(D, D - 1, ..., 1)^power / trace`, and `context` samples before the query.

    Start and loss do not change under rotations, so a diagonal covariance stands for all. `power = 0` is white data.
    """

    power: float = 1.0
    context: int = fixed(default=31)
    dim: int = fixed(default=4)

    def __check_init__(self):
        require(self.dim >= 1, f"a token has at least one dimension, not {self.dim}.")
        require(self.context >= 1, f"a prompt has at least one sample, not {self.context}.")

    @property
    def eigenvalues(self) -> Float[Array, " dim"]:
        """The eigenvalues of Lambda, the largest first."""
        powers = np.arange(self.dim, 0, -1) ** jnp.asarray(self.power)
        return powers / jnp.sum(powers)

    @property
    def moments(self) -> Moments:
        """The moments over all prompts: `E beta beta^T = Lambda^2 + (Lambda + tr(Lambda) I) Lambda / N` (15)."""
        own = self.eigenvalues
        memory = own**2 + (own + jnp.sum(own)) * own / self.context
        return Moments(jnp.sum(own), jnp.diag(own**2), jnp.diag(jnp.outer(memory, own).ravel()))

    def draw(self, key: Key, prompts: int) -> Prompts:
        scale = jnp.sqrt(self.eigenvalues)
        inputs, query, task = jax.random.split(key, 3)
        return Prompts(
            scale * jax.random.normal(inputs, (prompts, self.context, self.dim)),
            scale * jax.random.normal(query, (prompts, self.dim)),
            jax.random.normal(task, (prompts, self.dim)),
        )
