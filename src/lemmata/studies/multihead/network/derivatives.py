"""Derivatives in closed form (Lemma 1/4), and the Hessian of the training loss over all heads with its spectrum.

    hess L = (1/n) sum_i l'_i y_i hess Phi~_i  +  (1/n) sum_i l''_i grad Phi~_i grad Phi~_i^T

The first part is block-diagonal over heads, the second couples them through their gradients. With `n_c` equal heads in
a group, directions that sum to zero over the group see only the group's block; directions equal over the group see a
small matrix with one row of weights a group. The spectrum of 1e12 heads is therefore that of two small matrices. The closed
forms stand beside automatic differentiation, which they must match.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from lemmata.reduce.heads import Members
from lemmata.studies.multihead.data import Samples
from lemmata.studies.multihead.network import (
    Heads,
    Network,
    Square,
    Tokens,
    attention_map,
    full_decoder,
    margins,
    mean_loss,
)

# One head --------------------------------------------------------------------------------------------------------------


def softmax_jacobian(weights: Float[Array, " token"]) -> Float[Array, "token token"]:
    """`phi'(v) = diag(phi) - phi phi^T`."""
    return jnp.diag(weights) - jnp.outer(weights, weights)


def decoder_gradient(attention: Square, tokens: Tokens) -> Tokens:
    """`grad_U Phi = softmax(X W X^T) X`."""
    return attention_map(attention, tokens) @ tokens


def attention_gradient(decoder: Tokens, attention: Square, tokens: Tokens) -> Square:
    """`grad_W Phi = sum_t x_t u_t^T X^T phi'(g_t) X`, batched over `t`: `X^T (A * (V - rowsum(A * V))) X`, `V = U X^T`."""
    weights = attention_map(attention, tokens)
    values = decoder @ tokens.T
    centred = weights * (values - jnp.sum(weights * values, axis=1, keepdims=True))
    return tokens.T @ centred @ tokens


def head_gradient(decoder: Tokens, attention: Square, tokens: Tokens) -> Float[Array, " weight"]:
    """The gradient of one head, flat: `U` row by row, then `W` row by row."""
    return jnp.concatenate(
        [decoder_gradient(attention, tokens).ravel(), attention_gradient(decoder, attention, tokens).ravel()]
    )


def head_hessian(decoder: Tokens, attention: Square, tokens: Tokens) -> Float[Array, "weight weight"]:
    """The Hessian of one head, in the order of `head_gradient`; the block of `U` with itself is zero.

    `d/dW_kl of [grad_U Phi]_tj = x_tk (X_:j^T phi'(g_t) X)_l`, and
    `d/dW_kl of [grad_W Phi]_ij = sum_t x_ti x_tk (d_tj^T phi'(g_t) X)_l` with
    `d_tj = diag(X_:j) X u_t - (phi_t^T X_:j) X u_t - (phi_t^T X u_t) X_:j`.
    """
    count, dim = tokens.shape
    weights = attention_map(attention, tokens)
    jacobians = jax.vmap(softmax_jacobian)(weights)
    values = tokens @ decoder.T  # column t is X u_t
    spread = jnp.einsum("tab,bl->tal", jacobians, tokens)  # phi'(g_t) X
    mixed = jnp.einsum("tk,aj,tal->tjkl", tokens, tokens, spread).reshape(count * dim, dim * dim)
    mean_token = weights @ tokens
    mean_value = jnp.einsum("ta,at->t", weights, values)
    bent = (
        jnp.einsum("aj,at->tja", tokens, values)
        - jnp.einsum("tj,at->tja", mean_token, values)
        - jnp.einsum("t,aj->tja", mean_value, tokens)
    )
    twice = jnp.einsum("ti,tk,tja,tal->ijkl", tokens, tokens, bent, spread).reshape(dim * dim, dim * dim)
    return jnp.block([[jnp.zeros((count * dim, count * dim)), mixed], [mixed.T, twice]])


# The training loss -----------------------------------------------------------------------------------------------------


class Curvature(NamedTuple):
    """`blocks`: the Hessian seen by directions that cancel over a group; `joint`: by directions equal over groups."""

    blocks: Float[Array, "group weight weight"]
    joint: Float[Array, "both both"]


def head_features(network: Network, params: Heads, samples: Samples) -> Float[Array, "group sample weight"]:
    """`grad_{theta_h} Phi(X_i; theta_h)` for one head of every group."""
    return jax.vmap(lambda head: jax.vmap(lambda x: gradient_of(network, head, x))(samples.tokens))(params)


def kernel_features(
    network: Network, params: Heads, members: Members, samples: Samples
) -> Float[Array, "sample feature"]:
    """Vectors whose inner products are those of the model's gradients `grad Phi~(X_i)` over all heads (the NTK)."""
    weights = network.scale * jnp.sqrt(members)
    features = head_features(network, params, samples) * weights[:, None, None]
    return jnp.moveaxis(features, 0, 1).reshape(len(samples.labels), -1)


def loss_curvature(network: Network, params: Heads, members: Members, samples: Samples) -> Curvature:
    """The two matrices whose eigenvalues make the spectrum of the Hessian of the training loss."""
    margin = margins(network, params, members, samples)
    slope = -jax.nn.sigmoid(-margin) * samples.labels / len(margin)
    bend = jax.nn.sigmoid(margin) * jax.nn.sigmoid(-margin) / len(margin)

    def block(head: Heads) -> Float[Array, "weight weight"]:
        hessians = jax.vmap(lambda x: hessian_of(network, head, x))(samples.tokens)
        return network.scale * jnp.einsum("i,iab->ab", slope, hessians)

    blocks = jax.vmap(block)(params)
    features = kernel_features(network, params, members, samples)
    joint = jax.scipy.linalg.block_diag(*blocks) + jnp.einsum("i,ia,ib->ab", bend, features, features)
    return Curvature(blocks, joint)


def extreme_eigenvalues(curvature: Curvature, members: Members) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The smallest and the largest eigenvalue of the Hessian over all heads."""
    joint = jnp.linalg.eigvalsh(curvature.joint)
    inner = jnp.linalg.eigvalsh(curvature.blocks)
    shared = (members > 1)[:, None]  # a head alone in its group has no direction that cancels
    low = jnp.min(jnp.where(shared, inner, jnp.inf), initial=jnp.inf)
    high = jnp.max(jnp.where(shared, inner, -jnp.inf), initial=-jnp.inf)
    return jnp.minimum(joint[0], low), jnp.maximum(joint[-1], high)


def smallest_eigenvalue_by_products(network: Network, params: Heads, samples: Samples) -> float:
    """The smallest eigenvalue over explicit heads by Lanczos on Hessian-vector products: for models too large to
    write the Hessian down."""
    flat, rebuild = ravel_pytree(params)
    ones = jnp.ones(len(params.attention))

    def loss(weights: Array) -> Array:
        return mean_loss(network, rebuild(weights), ones, samples)

    product = jax.jit(lambda vector: jax.jvp(jax.grad(loss), (flat,), (vector,))[1])

    def apply(vector: np.ndarray) -> np.ndarray:
        return np.asarray(product(jnp.asarray(vector.ravel(), float)))

    operator = scipy.sparse.linalg.LinearOperator((flat.size,) * 2, matvec=apply, dtype=float)  # pyright: ignore[reportCallIssue]
    start = np.random.default_rng(0).standard_normal(flat.size)  # equal over heads it would stay so
    return float(scipy.sparse.linalg.eigsh(operator, k=1, which="SA", return_eigenvectors=False, v0=start)[0])


def gradient_of(network: Network, head: Heads, tokens: Tokens) -> Float[Array, " weight"]:
    """The gradient of one head in its own weights, whatever its decoder."""
    decoder = full_decoder(head.decoder, network.decoder, len(tokens))
    flat = head_gradient(decoder, head.attention, tokens)
    return flat if network.decoder == "full" else _lift(network, tokens.shape).T @ flat


def hessian_of(network: Network, head: Heads, tokens: Tokens) -> Float[Array, "weight weight"]:
    """The Hessian of one head in its own weights, whatever its decoder."""
    decoder = full_decoder(head.decoder, network.decoder, len(tokens))
    full = head_hessian(decoder, head.attention, tokens)
    if network.decoder == "full":
        return full
    lift = _lift(network, tokens.shape)
    return lift.T @ full @ lift


def _lift(network: Network, shape: tuple[int, ...]) -> Array:
    """The matrix that takes the flat weights of a head with a vector decoder to those with a full one."""
    tokens, dim = shape
    decoder = jax.jacobian(lambda u: full_decoder(u, network.decoder, tokens).ravel())(jnp.zeros(dim))
    return jax.scipy.linalg.block_diag(decoder, jnp.eye(dim * dim))
