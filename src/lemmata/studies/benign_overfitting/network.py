"""The network (Eq. 1): one softmax attention layer, a linear value and a frozen read-out, averaged over the queries.

    f(X) = 1/M sum_l softmax(x_l^T W_Q W_K^T X^T) X W_V w_O

Trained: W_Q, W_K, W_V. Frozen: w_O. No scaling, mask, bias, residual, normalisation, perceptron or position.
"""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.errors import require
from lemmata.trial import Key, fixed


class Network(eqx.Module):
    """Sizes and initialisation.

    `torch`: every matrix U(-1/sqrt(fan in), 1/sqrt(fan in)), the trained ones divided by `init_divisor`, the read-out by
    `readout_divisor` (the paper's experiments, where "the parameters" are divided by 16). `gaussian`: N(0, std_qk^2) and
    N(0, std_value^2), the read-out a random direction of norm `readout_norm` (the paper's theory).
    """

    init_divisor: float = 16.0
    readout_divisor: float = 16.0
    std_qk: float = 1e-3
    std_value: float = 1e-3
    readout_norm: float = 1.0
    key_dim: int = fixed(default=512)
    value_dim: int = fixed(default=512)
    init: Literal["torch", "gaussian"] = fixed(default="torch")

    def __check_init__(self):
        require(self.key_dim > 0, f"the key dimension must be positive, not {self.key_dim}.")
        require(self.value_dim > 0, f"the value dimension must be positive, not {self.value_dim}.")
        for name in ("init_divisor", "readout_divisor", "std_qk", "std_value", "readout_norm"):
            require(getattr(self, name) > 0, f"{name} must be positive, not {getattr(self, name)}.")


class Weights(NamedTuple):
    """W_Q, W_K, W_V and the frozen w_O."""

    query: Float[Array, "dim key_dim"]
    key: Float[Array, "dim key_dim"]
    value: Float[Array, "dim value_dim"]
    readout: Float[Array, " value_dim"]


def draw_weights(network: Network, key: Key, dim: int, dtype: str) -> Weights:
    """Initial weights for inputs of this dimension."""
    shapes = ((dim, network.key_dim), (dim, network.key_dim), (dim, network.value_dim), (network.value_dim,))
    keys = jax.random.split(key, 4)
    if network.init == "torch":
        spans = [dim**-0.5 / network.init_divisor] * 3 + [network.value_dim**-0.5 / network.readout_divisor]
        drawn = [
            jax.random.uniform(k, s, dtype, -1, 1) * b for k, s, b in zip(keys, shapes, spans, strict=True)
        ]
    else:
        drawn = [jax.random.normal(k, s, dtype) for k, s in zip(keys, shapes, strict=True)]
        stds = [
            network.std_qk,
            network.std_qk,
            network.std_value,
            network.readout_norm / jnp.linalg.norm(drawn[3]),
        ]
        drawn = [d * s for d, s in zip(drawn, stds, strict=True)]
    return Weights(*(d.astype(dtype) for d in drawn))


def output(logits: Float[Array, "*n query key"], values: Float[Array, "*n key"]) -> Float[Array, "*n"]:
    """f from attention logits and scalar values V_j = x_j^T W_V w_O."""
    return jnp.mean(jnp.einsum("...ij,...j->...i", jax.nn.softmax(logits, axis=-1), values), axis=-1)


def look(weights: Weights, tokens: Float[Array, "samples tokens dim"]) -> tuple[Array, Array]:
    """The attention logits and scalar values of samples under these weights."""
    queries, keys = tokens @ weights.query, tokens @ weights.key
    return jnp.einsum("nih,njh->nij", queries, keys), tokens @ (weights.value @ weights.readout)


class Filters(eqx.Module):
    """The rival: a two-layer convolutional network with ReLU^q filters and a fixed second layer (Cao et al. 2022).

    f(X) = 1/m sum_r sum_i [relu(w_+r . x_i)^q - relu(w_-r . x_i)^q],   w ~ N(0, std^2)
    """

    std: float = 0.01
    power: int = fixed(default=3)
    filters: int = fixed(default=10)

    def __check_init__(self):
        require(self.std > 0, f"the initial scale of the filters must be positive, not {self.std}.")
        require(
            self.power > 2,
            f"the theory of the convolutional network needs a power above 2, not {self.power}.",
        )
        require(self.filters > 0, f"the network needs at least one filter, not {self.filters}.")

    def draw(self, key: Key, dim: int, dtype: str) -> Float[Array, "2 filters dim"]:
        return (self.std * jax.random.normal(key, (2, self.filters, dim), dtype)).astype(dtype)

    def output(
        self, weights: Float[Array, "2 filters dim"], tokens: Float[Array, "samples tokens dim"]
    ) -> Float[Array, " samples"]:
        active = jax.nn.relu(jnp.einsum("srd,nid->nsri", weights, tokens)) ** self.power
        by_class = jnp.mean(jnp.sum(active, axis=3), axis=2)
        return by_class[:, 0] - by_class[:, 1]
