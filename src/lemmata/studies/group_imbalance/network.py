"""The network of one hidden layer with a fixed average on top, its loss and its derivatives, and the exact minimiser.

    H(W, x) = (1/K) sum_j phi(w_j . x),   phi(t) = 1 / (1 + e^-t),   W = [w_1 .. w_K]            (4.1)
    l(W; x, y) = -y log H - (1 - y) log(1 - H),   f_n = mean over the samples                      (4.3)

K = 1 is logistic regression. Labels y may be soft (in [0, 1]).
"""

from itertools import permutations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.optimize import linear_sum_assignment
from scipy.special import expit

Numbers = Any  # an array of JAX or of NumPy
TINY = 1e-300  # where a probability would underflow
BLOCK = 512  # samples whose outer products fit in a cache together


def predict_proba(weights: Float[Array, "dim neurons"], inputs: Float[Array, "samples dim"]) -> Array:
    """H(W, x) of every sample (4.1)."""
    return jnp.mean(jax.nn.sigmoid(inputs @ weights), axis=-1)


def loss_of(weights: Array, inputs: Array, labels: Array) -> Float[Array, " samples"]:
    """The cross-entropy of every sample (4.3); 1 - H is computed as the mean of phi(-w_j . x)."""
    logits = inputs @ weights
    up, down = (jnp.maximum(jnp.mean(jax.nn.sigmoid(s * logits), -1), TINY) for s in (1, -1))
    return -labels * jnp.log(up) - (1 - labels) * jnp.log(down)


def excess_of(weights: Array, teacher: Array, inputs: Array) -> Float[Array, " samples"]:
    """KL(H(W*, x) || H(W, x)) of every input: the excess risk without the noise of labels."""
    truth, ours = inputs @ teacher, inputs @ weights
    total = 0.0
    for sign in (1, -1):
        p, q = (jnp.maximum(jnp.mean(jax.nn.sigmoid(sign * z), -1), TINY) for z in (truth, ours))
        total = total + p * (jnp.log(p) - jnp.log(q))
    return total


def entropy_of(teacher: Array, inputs: Array) -> Float[Array, " samples"]:
    """The entropy of the label given x: the smallest possible cross-entropy."""
    return loss_of(teacher, inputs, predict_proba(teacher, inputs))


class Local(NamedTuple):
    """What loss, gradient and Hessian need of one sample, from its logits z_j = w_j . x.

    `slope` has d l / d z_j = -(1/K) (y - H) / (H (1 - H)) phi'_j (C.71); `curve` has d^2 l / d z_j d z_l = xi_jl
    (C.72-73): (1/K^2) phi'_j phi'_l (y / H^2 + (1 - y) / (1 - H)^2) - 1[j = l] (1/K) phi''_j (y - H) / (H (1 - H)).
    """

    loss: Numbers
    slope: Numbers
    curve: Numbers


def local(logits: Numbers, labels: Numbers) -> Local:
    """Loss, slope and curvature in the logits, in one pass; of JAX arrays, or of NumPy's (the theory's)."""
    xp = np if isinstance(logits, np.ndarray) else jnp
    loss, slope, up, down, first, second, pull = _parts(logits, labels)
    neurons = logits.shape[-1]
    weight = (labels / up**2 + (1 - labels) / down**2) / neurons**2
    curve = weight[..., None, None] * first[..., :, None] * first[..., None, :]
    return Local(loss, slope, curve - xp.eye(neurons) * ((pull / neurons)[..., None] * second)[..., None])


def _parts(logits: Numbers, labels: Numbers) -> tuple[Numbers, ...]:
    xp, phi = (np, expit) if isinstance(logits, np.ndarray) else (jnp, jax.nn.sigmoid)
    neurons = logits.shape[-1]
    p = phi(logits)
    q = phi(-logits)
    up, down = xp.maximum(xp.mean(p, -1), TINY), xp.maximum(xp.mean(q, -1), TINY)
    first = p * q
    pull = labels / up - (1 - labels) / down
    loss = -labels * xp.log(up) - (1 - labels) * xp.log(down)
    return loss, -(pull / neurons)[..., None] * first, up, down, first, first * (q - p), pull


def value_and_gradient(weights: Array, inputs: Array, labels: Array) -> tuple[Array, Array]:
    """f_n and its gradient in one pass (C.71)."""
    loss, slope, *_ = _parts(inputs @ weights, labels)
    return jnp.mean(loss), inputs.T @ slope / inputs.shape[0]


class Curvature(NamedTuple):
    """Mean loss, gradient (d, K) and Hessian (dK, dK) of the empirical risk; coordinates of a Hessian run over the
    columns of W one after another (w_1, then w_2, ...)."""

    loss: Numbers
    gradient: Numbers
    hessian: Numbers


def curvature(weights: Float[Array, "starts dim neurons"], inputs: Array, labels: Array) -> Curvature:
    """Loss, gradient and Hessian at several weights at once, in one pass over the samples.

    Samples go by in blocks. The outer products x x^T of a block are formed once for all weights and all pairs of neurons,
    so that the Hessian is one product of matrices: (starts x pairs, block) times (block, d(d+1)/2).
    """
    starts, dim, neurons = weights.shape
    rows, columns = np.triu_indices(dim)
    first, second = np.triu_indices(neurons)
    count = inputs.shape[0]
    blocks = -(-count // BLOCK)
    size = -(-count // blocks)
    pad = blocks * size - count
    x = jnp.pad(inputs, ((0, pad), (0, 0))).reshape(blocks, size, dim)
    y = jnp.pad(labels, (0, pad)).reshape(blocks, size)
    share = (jnp.arange(blocks * size) < count).astype(inputs.dtype).reshape(blocks, size) / count
    flat = weights.transpose(1, 0, 2).reshape(dim, starts * neurons)

    def add(total: Curvature, block: tuple[Array, Array, Array]) -> tuple[Curvature, None]:
        x, y, share = block
        here = local((x @ flat).reshape(-1, starts, neurons), y[:, None])
        loss = share @ here.loss
        slope = (share[:, None, None] * here.slope).reshape(-1, starts * neurons)
        pairs = (share[:, None, None] * here.curve[:, :, first, second]).reshape(-1, starts * len(first))
        outer = x[:, rows] * x[:, columns]
        return Curvature(
            total.loss + loss, total.gradient + x.T @ slope, total.hessian + pairs.T @ outer
        ), None

    zero = Curvature(
        jnp.zeros(starts, inputs.dtype),
        jnp.zeros((dim, starts * neurons), inputs.dtype),
        jnp.zeros((starts * len(first), len(rows)), inputs.dtype),
    )
    total, _ = jax.lax.scan(add, zero, (x, y, share))
    parts = total.hessian.reshape(starts, len(first), len(rows))
    square = jnp.zeros((starts, len(first), dim, dim), inputs.dtype)
    square = square.at[:, :, rows, columns].set(parts).at[:, :, columns, rows].set(parts)
    hessian = jnp.zeros((starts, neurons, neurons, dim, dim), inputs.dtype)
    hessian = hessian.at[:, first, second].set(square).at[:, second, first].set(square)
    hessian = hessian.transpose(0, 1, 3, 2, 4).reshape(starts, neurons * dim, neurons * dim)
    gradient = total.gradient.reshape(dim, starts, neurons).transpose(1, 0, 2)
    return Curvature(total.loss, gradient, hessian)


# The critical point ----------------------------------------------------------------------------------------------------


class Newton(NamedTuple):
    """Several searches for a critical point on the same samples: weights, what is known there, how far a step may
    go."""

    weights: Float[Array, "starts dim neurons"]
    here: Curvature
    radius: Float[Array, " starts"]
    steps: Array


def newton_begin(weights: Array, inputs: Array, labels: Array) -> Newton:
    here = curvature(weights, inputs, labels)
    starts = weights.shape[0]
    return Newton(weights, here, jnp.full(starts, 0.5, weights.dtype), jnp.zeros((), jnp.int32))


def newton_step(search: Newton, inputs: Array, labels: Array, tolerance: float | Array) -> Newton:
    """One Newton step of every search that has not arrived: downhill also where the risk is not convex (eigenvalues by
    their absolute value), no further than the radius, taken back where the risk would rise."""
    weights, here, radius, steps = search
    _, dim, neurons = weights.shape
    moving = ~arrived(search, tolerance)

    def direction(gradient: Array, hessian: Array, most: Array) -> Array:
        values, vectors = jnp.linalg.eigh(hessian)
        size = jnp.maximum(jnp.abs(values), 1e-12 * jnp.max(jnp.abs(values)))
        step = -vectors @ ((vectors.T @ gradient.T.reshape(-1)) / size)
        step = step * jnp.minimum(1.0, most / jnp.maximum(jnp.linalg.norm(step), TINY))
        return step.reshape(neurons, dim).T

    step = jax.lax.map(lambda one: direction(*one), (here.gradient, here.hessian, radius))
    there = curvature(weights + step, inputs, labels)
    slack = 1e-14 * jnp.abs(here.loss)  # rounding of the mean decides nothing
    better = moving & (there.loss <= here.loss + slack)

    def chosen(new: Array, old: Array) -> Array:
        return jnp.where(better.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

    length = jnp.sqrt(jnp.sum(step**2, (1, 2)))
    radius = jnp.where(better, jnp.maximum(radius, 2 * length), jnp.where(moving, length / 4, radius))
    radius = jnp.minimum(radius, 5.0)
    return Newton(chosen(weights + step, weights), jax.tree.map(chosen, there, here), radius, steps + 1)


def arrived(search: Newton, tolerance: float | Array) -> Bool[Array, " starts"]:
    """Which searches have a gradient of norm at most the tolerance."""
    return jnp.sqrt(jnp.sum(search.here.gradient**2, (1, 2))) <= tolerance


def critical_point(
    weights: Array, inputs: Array, labels: Array, tolerance: float | Array, most: int = 100
) -> Newton:
    """The critical points W_n reached from several starts (compiled loop of `newton_step`)."""

    def going(search: Newton) -> Array:
        return (search.steps < most) & ~jnp.all(arrived(search, tolerance))

    begun = newton_begin(weights, inputs, labels)
    return jax.lax.while_loop(going, lambda s: newton_step(s, inputs, labels, tolerance), begun)


# Permutations ----------------------------------------------------------------------------------------------------------


def align_columns(weights: Numbers, teacher: Numbers) -> np.ndarray:
    """W with its columns in the order nearest to W* (exact: linear assignment on squared distances)."""
    weights, teacher = np.asarray(weights), np.asarray(teacher)
    cost = ((weights[:, :, None] - teacher[:, None, :]) ** 2).sum(0)
    own, theirs = linear_sum_assignment(cost)
    return weights[:, own[np.argsort(theirs)]]


def distance(weights: Numbers, teacher: Numbers) -> float:
    """min over permutations P of |W - W* P|_F."""
    return float(np.linalg.norm(align_columns(weights, teacher) - teacher))


def aligned(weights: Float[Array, "starts dim neurons"], teacher: Float[Array, "dim neurons"]) -> Array:
    """As `align_columns`, compiled, for several weights: the best of all K! orders (few neurons)."""
    orders = np.array(list(permutations(range(teacher.shape[1]))))
    cost = jnp.sum((weights[:, :, :, None] - teacher[None, :, None, :]) ** 2, 1)  # (start, own, theirs)
    total = jnp.sum(cost[:, orders, np.arange(teacher.shape[1])], -1)
    best = jnp.asarray(orders)[jnp.argmin(total, -1)]
    return jnp.take_along_axis(weights, best[:, None, :], axis=2)
