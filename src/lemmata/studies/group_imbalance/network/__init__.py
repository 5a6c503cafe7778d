"""The network of one hidden layer with a fixed average on top, its loss and its derivatives, and the exact minimiser.

    H(W, x) = (1/K) sum_j phi(w_j . x),   phi(t) = 1 / (1 + e^-t),   W = [w_1 .. w_K]            (4.1)
    l(W; x, y) = -y log H - (1 - y) log(1 - H),   f_n = mean over the samples                      (4.3)

K = 1 is logistic regression. Labels y may be soft (in [0, 1]). In place of the sigmoid phi may be (1 + tanh t) / 2, which is
the sigmoid of 2t, or (1 + erf t) / 2 (the document's footnote on other activations).
"""

from itertools import permutations
from math import pi, sqrt
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Bool, Float

from lemmata.kernels import kernel, refuse_unless

Numbers = Any  # an array of JAX or of NumPy
Kind = Literal["sigmoid", "tanh", "erf"]
STEEPEST: dict[Kind, float] = {"sigmoid": 1 / 4, "tanh": 1.0, "erf": 4 / pi}
"""The largest phi'^2 / (phi (1 - phi)): the Fisher information is at most this over K times the inputs' second moments."""
SPEED: dict[Kind, int] = {"sigmoid": 1, "tanh": 2}
"""What multiplies the logits of an activation that is a sigmoid."""
TINY = 1e-300  # where a probability would underflow
BLOCK = 512  # samples whose outer products fit in a cache together


class Neuron(NamedTuple):
    """phi(z), phi(-z) = 1 - phi(z), phi'(z) and phi''(z), none of them by a difference of large numbers."""

    up: Numbers
    down: Numbers
    first: Numbers
    second: Numbers


def neuron(logits: Numbers, kind: Kind = "sigmoid") -> Neuron:
    """The activation and its derivatives, of JAX arrays or of NumPy's: one exponential for all four."""
    xp = np if isinstance(logits, np.ndarray) else jnp
    if kind == "erf":
        tail = scipy.special.erfc if xp is np else jax.scipy.special.erfc
        first = xp.exp(-(logits**2)) / sqrt(pi)
        return Neuron(tail(-logits) / 2, tail(logits) / 2, first, -2 * logits * first)
    speed = SPEED[kind]
    large = xp.exp(-xp.maximum(speed * logits, -0.9 * np.log(np.finfo(logits.dtype).max)))
    up = 1 / (1 + large)
    down = large * up
    first = speed * up * down
    return Neuron(up, down, first, speed * first * (down - up))


def _chances(weights: Array, inputs: Array, kind: Kind) -> tuple[Array, Array]:
    """H and 1 - H of every sample, the second as the mean of phi(-w_j . x)."""
    each = neuron(inputs @ weights, kind)
    return tuple(jnp.maximum(jnp.mean(side, -1), TINY) for side in (each.up, each.down))  # type: ignore[return-value]


def predict_proba(
    weights: Float[Array, "dim neurons"], inputs: Float[Array, "samples dim"], kind: Kind = "sigmoid"
) -> Array:
    """H(W, x) of every sample (4.1)."""
    return jnp.mean(neuron(inputs @ weights, kind).up, axis=-1)


def loss_of(weights: Array, inputs: Array, labels: Array, kind: Kind = "sigmoid") -> Float[Array, " samples"]:
    """The cross-entropy of every sample (4.3)."""
    up, down = _chances(weights, inputs, kind)
    return -labels * jnp.log(up) - (1 - labels) * jnp.log(down)


def excess_of(
    weights: Array, teacher: Array, inputs: Array, kind: Kind = "sigmoid"
) -> Float[Array, " samples"]:
    """KL(H(W*, x) || H(W, x)) of every input: the excess risk without the noise of labels."""
    truth, ours = _chances(teacher, inputs, kind), _chances(weights, inputs, kind)
    return sum(p * (jnp.log(p) - jnp.log(q)) for p, q in zip(truth, ours, strict=True))  # type: ignore[return-value]


def entropy_of(teacher: Array, inputs: Array, kind: Kind = "sigmoid") -> Float[Array, " samples"]:
    """The entropy of the label given x: the smallest possible cross-entropy."""
    return loss_of(teacher, inputs, predict_proba(teacher, inputs, kind), kind)


class Local(NamedTuple):
    """What loss, gradient and Hessian need of one sample, from its logits z_j = w_j . x.

    `slope` has d l / d z_j = -(1/K) (y - H) / (H (1 - H)) phi'_j (C.71); `curve` has d^2 l / d z_j d z_l = xi_jl
    (C.72-73): (1/K^2) phi'_j phi'_l (y / H^2 + (1 - y) / (1 - H)^2) - 1[j = l] (1/K) phi''_j (y - H) / (H (1 - H)).
    """

    loss: Numbers
    slope: Numbers
    curve: Numbers


def local(logits: Numbers, labels: Numbers, kind: Kind = "sigmoid") -> Local:
    """Loss, slope and curvature in the logits, in one pass; of JAX arrays, or of NumPy's (the theory's).

    The neuron is the first dimension of logits, slope and curve: sums over few neurons then add long rows."""
    xp = np if isinstance(logits, np.ndarray) else jnp
    neurons, each = logits.shape[0], neuron(logits, kind)
    up, down = (xp.maximum(xp.sum(side, 0), TINY) for side in (each.up, each.down))  # K H and K (1 - H)
    loss = -labels * xp.log(up / neurons) - (1 - labels) * xp.log(down / neurons)
    pull = (labels * down - (1 - labels) * up) / (up * down)
    rise, fall = each.first / up, each.first / down  # squares of `up` may underflow
    own = xp.eye(neurons).reshape(neurons, neurons, *(1,) * (logits.ndim - 1))
    curve = labels * rise[:, None] * rise[None, :] + (1 - labels) * fall[:, None] * fall[None, :]
    curve = curve - own * (pull * each.second)[:, None]
    return Local(loss, -pull * each.first, curve)


class _Blocks(NamedTuple):
    """Samples in blocks that fit in a cache, the last one filled up with samples of no weight."""

    inputs: Array
    labels: Array
    share: Array


def _blocks(inputs: Array, labels: Array) -> _Blocks:
    count, dim = inputs.shape
    blocks = -(-count // BLOCK)
    size = -(-count // blocks)
    pad = blocks * size - count
    x = jnp.pad(inputs, ((0, pad), (0, 0))).reshape(blocks, size, dim)
    y = jnp.pad(labels, (0, pad)).reshape(blocks, size)
    share = (jnp.arange(blocks * size) < count).astype(inputs.dtype).reshape(blocks, size) / count
    return _Blocks(x, y, share)


def _logits(weights: Float[Array, "starts dim neurons"], inputs: Array) -> Array:
    """w_j . x for every neuron, start and sample: (neurons, starts, samples)."""
    starts, dim, neurons = weights.shape
    return (weights.transpose(2, 0, 1).reshape(-1, dim) @ inputs.T).reshape(neurons, starts, -1)


def gradients_in_blocks(
    weights: Float[Array, "starts dim neurons"],
    inputs: Array,
    labels: Array,
    kind: Kind = "sigmoid",
    valued: bool = True,
) -> tuple[Array, Array]:
    """The risk and its gradient (C.71) at several weights at once, in one pass over the samples, block by block. Where the risk
    is not asked for (`valued`) it is 0."""
    starts, dim, neurons = weights.shape

    def add(total: tuple[Array, Array], block: _Blocks) -> tuple[tuple[Array, Array], None]:
        here = local(_logits(weights, block.inputs), block.labels, kind)  # its curvature is not compiled
        slope = (block.share * here.slope).reshape(neurons * starts, -1)
        risk = here.loss @ block.share if valued else 0
        return (total[0] + risk, total[1] + slope @ block.inputs), None

    zero = jnp.zeros(starts, inputs.dtype), jnp.zeros((neurons * starts, dim), inputs.dtype)
    (loss, gradient), _ = jax.lax.scan(add, zero, _blocks(inputs, labels))
    return loss, gradient.reshape(neurons, starts, dim).transpose(1, 2, 0)


@kernel("imbalance_gradients.cc", plain=gradients_in_blocks)
def gradients(
    weights: Array, inputs: Array, labels: Array, kind: Kind = "sigmoid", valued: bool = True
) -> tuple[Array, Array]:
    """`gradients_in_blocks`."""
    refuse_unless(kind in SPEED, f"the kernel knows sigmoids, not {kind}")
    given = (part.astype(inputs.dtype) for part in (weights, inputs, labels))
    return gradients.call("imbalance_gradients", *given, lanes="sequential", speed=SPEED[kind], valued=valued)


def value_and_gradient(
    weights: Float[Array, "dim neurons"], inputs: Array, labels: Array, kind: Kind = "sigmoid"
) -> tuple[Array, Array]:
    """f_n and its gradient at one place."""
    loss, gradient = gradients(weights[None], inputs, labels, kind)
    return loss[0], gradient[0]


class Curvature(NamedTuple):
    """Mean loss, gradient (d, K) and Hessian (dK, dK) of the empirical risk; coordinates of a Hessian run over the
    columns of W one after another (w_1, then w_2, ...)."""

    loss: Numbers
    gradient: Numbers
    hessian: Numbers


def curvature(
    weights: Float[Array, "starts dim neurons"], inputs: Array, labels: Array, kind: Kind = "sigmoid"
) -> Curvature:
    """Loss, gradient and Hessian at several weights at once, in one pass over the samples.

    Samples go by in blocks. The outer products x x^T of a block are formed once for all weights and all pairs of neurons,
    so that the Hessian is one product of matrices: (starts x pairs, block) times (block, d(d+1)/2).
    """
    starts, dim, neurons = weights.shape
    rows, columns = np.triu_indices(dim)
    first, second = np.triu_indices(neurons)

    def add(total: Curvature, block: _Blocks) -> tuple[Curvature, None]:
        x, y, share = block
        here = local(_logits(weights, x), y, kind)
        slope = (share * here.slope).reshape(neurons * starts, -1)
        pairs = (share * here.curve[first, second]).reshape(len(first) * starts, -1)
        outer = x[:, rows] * x[:, columns]
        return Curvature(
            total.loss + here.loss @ share, total.gradient + slope @ x, total.hessian + pairs @ outer
        ), None

    zero = Curvature(
        jnp.zeros(starts, inputs.dtype),
        jnp.zeros((neurons * starts, dim), inputs.dtype),
        jnp.zeros((len(first) * starts, len(rows)), inputs.dtype),
    )
    total, _ = jax.lax.scan(add, zero, _blocks(inputs, labels))
    parts = total.hessian.reshape(len(first), starts, len(rows)).transpose(1, 0, 2)
    square = jnp.zeros((starts, len(first), dim, dim), inputs.dtype)
    square = square.at[:, :, rows, columns].set(parts).at[:, :, columns, rows].set(parts)
    hessian = jnp.zeros((starts, neurons, neurons, dim, dim), inputs.dtype)
    hessian = hessian.at[:, first, second].set(square).at[:, second, first].set(square)
    hessian = hessian.transpose(0, 1, 3, 2, 4).reshape(starts, neurons * dim, neurons * dim)
    gradient = total.gradient.reshape(neurons, starts, dim).transpose(1, 2, 0)
    return Curvature(total.loss, gradient, hessian)


# The critical point ----------------------------------------------------------------------------------------------------


class Newton(NamedTuple):
    """Several searches for a critical point on the same samples: weights, what is known there, how far a step may
    go."""

    weights: Float[Array, "starts dim neurons"]
    here: Curvature
    radius: Float[Array, " starts"]
    steps: Array


def newton_begin(weights: Array, inputs: Array, labels: Array, kind: Kind = "sigmoid") -> Newton:
    here = curvature(weights, inputs, labels, kind)
    starts = weights.shape[0]
    return Newton(weights, here, jnp.full(starts, 0.5, weights.dtype), jnp.zeros((), jnp.int32))


def newton_step(
    search: Newton, inputs: Array, labels: Array, tolerance: float | Array, kind: Kind = "sigmoid"
) -> Newton:
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
    there = curvature(weights + step, inputs, labels, kind)
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
    weights: Array,
    inputs: Array,
    labels: Array,
    tolerance: float | Array,
    kind: Kind = "sigmoid",
    most: int = 100,
) -> Newton:
    """The critical points W_n reached from several starts (compiled loop of `newton_step`)."""

    def going(search: Newton) -> Array:
        return (search.steps < most) & ~jnp.all(arrived(search, tolerance))

    begun = newton_begin(weights, inputs, labels, kind)
    return jax.lax.while_loop(going, lambda s: newton_step(s, inputs, labels, tolerance, kind), begun)


# Permutations ----------------------------------------------------------------------------------------------------------


def align_columns(weights: Numbers, teacher: Numbers) -> np.ndarray:
    """W with its columns in the order nearest to W* (exact: linear assignment on squared distances)."""
    weights, teacher = np.asarray(weights), np.asarray(teacher)
    cost = ((weights[:, :, None] - teacher[:, None, :]) ** 2).sum(0)
    own, theirs = scipy.optimize.linear_sum_assignment(cost)
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
