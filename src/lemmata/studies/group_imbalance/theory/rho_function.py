"""The rho function of Definition C.2.2: its values by quadrature, its limits, its monotone envelopes, and what Lemma
C.4.1 needs in its place.

For z ~ N(u, 1): alpha_q = E[phi'(sigma z) z^q], beta_q = E[phi'(sigma z)^2 z^q],

    rho(u, sigma) = min( min_{i != j} (u_j^2 + 1) V(u_i),  min_i B(u_i) ),
    V = beta_0 - alpha_0^2,   B = beta_2 - alpha_2^2 / (u^2 + 1)                                        (C.6)

All expectations are by the trapezoidal rule, which converges geometrically for these functions: their nearest poles
lie at the distance pi / sigma from the real line. Other activations: (1 + tanh t) / 2 is the sigmoid at twice the speed, so
that rho is four times the sigmoid's at 2 sigma; the derivative of (1 + erf t) / 2 has no poles.
"""

from math import exp, pi, sqrt

import numpy as np

from lemmata.studies.group_imbalance.network import Kind, neuron

Number = np.ndarray | np.floating | float
REACH = 11.0  # standard deviations at which a Gaussian is below rounding


SPEED: dict[Kind, float] = {"sigmoid": 1.0, "tanh": 2.0, "erf": 2.0}
"""How much faster than the sigmoid's the derivatives change."""


def slope(t: Number, kind: Kind = "sigmoid") -> Number:
    """phi'(t)."""
    return neuron(np.asarray(t, float), kind).first


def bend(t: Number, kind: Kind = "sigmoid") -> Number:
    """phi''(t)."""
    return neuron(np.asarray(t, float), kind).second


def third(t: Number, kind: Kind = "sigmoid") -> Number:
    """The third derivative: phi' (1 - 6 phi') of the sigmoid, 8 times that at 2t of tanh, (4 t^2 - 2) phi' of erf."""
    if kind == "erf":
        return (4 * np.square(t) - 2) * slope(t, kind)
    speed = SPEED[kind]
    first = slope(speed * np.asarray(t, float))
    return speed**3 * first * (1 - 6 * first)


def _below_top(t: np.ndarray, kind: Kind) -> np.ndarray:
    """phi'(0) - phi'(t), without a difference."""
    if kind == "erf":
        return -np.expm1(-(t**2)) / sqrt(pi)
    return SPEED[kind] / 4 * np.tanh(SPEED[kind] * t / 2) ** 2


def line(mean: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of N(mean, 1) for analytic functions of `scale` z with poles at distance pi that decay as e^-|t|,
    and for constants where `scale` is at most 30.

    Beyond, such functions live within 60 / scale of 0 (unless the mean is as large, when all of it underflows).
    """
    step, centre = 0.35 * min(1.0, 1 / scale), abs(mean)
    low, high = min(centre, max(centre - 2 * scale, 0.0)) - REACH, centre + REACH
    if _narrow(mean, scale):
        low, high = -60 / scale, 60 / scale
    elif scale > 150:
        return np.zeros(1), np.zeros(1)
    count = int(np.ceil((high - low) / step))
    nodes = low + (high - low) * np.arange(count + 1) / count
    weights = np.exp(-((nodes - centre) ** 2) / 2)
    return (nodes if mean >= 0 else -nodes), weights * (nodes[1] - nodes[0]) / sqrt(2 * pi)


def _narrow(mean: float, scale: float) -> bool:
    """Whether phi'(scale z) is a narrow peak beside the density."""
    return bool(scale > 30 and abs(mean) <= scale / 4)


def alpha_moment(order: int, mean: float, std: float, kind: Kind = "sigmoid") -> float:
    """alpha_q = E[phi'(sigma z) z^q], z ~ N(u, 1)."""
    z, weight = line(mean, SPEED[kind] * std)
    return float(weight @ (slope(std * z, kind) * z**order))


def beta_moment(order: int, mean: float, std: float, kind: Kind = "sigmoid") -> float:
    """beta_q = E[phi'(sigma z)^2 z^q], z ~ N(u, 1)."""
    z, weight = line(mean, SPEED[kind] * std)
    return float(weight @ (slope(std * z, kind) ** 2 * z**order))


def value_gap(mean: float, std: float, kind: Kind = "sigmoid") -> float:
    """V = beta_0 - alpha_0^2, as the variance of phi'(sigma z): nothing cancels."""
    if _narrow(mean, SPEED[kind] * std):
        return beta_moment(0, mean, std, kind) - alpha_moment(0, mean, std, kind) ** 2
    z, weight = line(mean, SPEED[kind] * std)
    return _variance(std * z, weight, kind)


def tilted_gap(mean: float, std: float, kind: Kind = "sigmoid") -> float:
    """B = beta_2 - alpha_2^2 / (u^2 + 1), as E[z^2] times the variance of phi'(sigma z) under the density z^2 N(z;
    u, 1)."""
    if _narrow(mean, SPEED[kind] * std):
        return beta_moment(2, mean, std, kind) - alpha_moment(2, mean, std, kind) ** 2 / (mean * mean + 1)
    z, weight = line(mean, SPEED[kind] * std)
    return _variance(std * z, weight * z**2, kind)


def _variance(t: np.ndarray, weight: np.ndarray, kind: Kind) -> float:
    """The total weight times the variance of phi'(t). Where phi' is near its top, what it lacks is taken instead."""
    near, far = _below_top(t, kind), slope(t, kind)
    if not weight.any():
        return 0.0
    g = near if weight @ near < weight @ far else far
    mean = weight @ g / weight.sum()
    return float(weight @ (g - mean) ** 2)


def rho(mean: np.ndarray, std: float, kind: Kind = "sigmoid") -> float:
    """rho(u, sigma) (C.6), the indices running over the neurons; one neuron has only the second family.

    >>> round(float(rho(np.zeros(2), 1.0)), 8)
    0.00214402
    """
    u = np.atleast_1d(np.asarray(mean, float))
    gaps = np.array([value_gap(one, std, kind) for one in u])
    found = min(tilted_gap(one, std, kind) for one in u)
    for j, one in enumerate(u):
        others = np.delete(gaps, j)
        if len(others):
            found = min(found, (one**2 + 1) * float(others.min()))
    return found


def rho_exact(mean: np.ndarray, std: float, extra: bool = False, kind: Kind = "sigmoid") -> float:
    """The largest number that makes Lemma C.4.1 true: the smallest eigenvalue of E[x_a x_b phi'(sigma x_i)
    phi'(sigma x_j)] under N(mu, I) (the symmetrised mixture gives the same, Property 5).

    Coordinates are independent, so every entry is a product of one-dimensional moments. With `extra` there is a further
    coordinate of mean 0 which no neuron looks at.
    """
    u = np.append(np.atleast_1d(np.asarray(mean, float)), [0.0] if extra else [])
    neurons, dim = len(u) - extra, len(u)
    plain = np.array([[1.0, m, 1 + m * m] for m in u])
    once = np.array([[alpha_moment(q, m, std, kind) for q in range(3)] for m in u])
    twice = np.array([[beta_moment(q, m, std, kind) for q in range(3)] for m in u])
    matrix = np.empty((neurons, dim, neurons, dim))
    for i, a, j, b in np.ndindex(matrix.shape):
        value = 1.0
        for k in {i, a, j, b}:
            table = (plain, once, twice)[(i == k) + (j == k)]
            value *= table[k, (a == k) + (b == k)]
        matrix[i, a, j, b] = value
    return float(np.linalg.eigvalsh(matrix.reshape(neurons * dim, -1))[0])


# Limits (Properties 3 and 4, mended) ------------------------------------------------------------------------------------


def small_std(mean: float, std: float) -> tuple[float, float]:
    """V and B as sigma -> 0 (Property 4.1): V = sigma^4 (1/128 + u^2/64); B = (sigma^4/256)(E z^6 - (E z^4)^2 / E z^2).

    The printed sigma^2 law for B is wrong.
    """
    u = mean * mean
    second, fourth, sixth = 1 + u, 3 + 6 * u + u**2, 15 + 45 * u + 15 * u**2 + u**3
    return std**4 * (1 / 128 + u / 64), std**4 / 256 * (sixth - fourth**2 / second)


def large_std(mean: float, std: float) -> tuple[float, float]:
    """V and B as sigma -> infinity (Property 4.2, sharp): N(0; u, 1)/(6 sigma) and N(0; u, 1)(pi^2/18 -
    1/3)/sigma^3."""
    density = exp(-mean * mean / 2) / sqrt(2 * pi)
    return density / (6 * std), density * (pi**2 / 18 - 1 / 3) / std**3


def far_mean(mean: float, std: float) -> float:
    """V for u >> 2 sigma (Property 4.3, sharp): e^(-2 sigma u) (e^(2 sigma^2) - e^(sigma^2))."""
    return exp(-2 * std * mean) * (exp(2 * std**2) - exp(std**2))


def concentrated_limit(mean: np.ndarray, kind: Kind = "sigmoid") -> float:
    """C_s(u): the limit of rho(u / sigma, sigma) as sigma -> 0 (Property 3.3): min_ij u_j^2 phi''(u_i)^2, mended; 0
    if some u_i is 0.

    >>> round(concentrated_limit(np.array([1.0])), 6)
    0.008255
    """
    u = np.atleast_1d(np.asarray(mean, float))
    return float((np.outer(bend(u, kind) ** 2, u**2)).min())


# Monotone envelopes -----------------------------------------------------------------------------------------------------

FINE = 41  # places of a running minimum


def mean_envelope(mean: np.ndarray, std: float, kind: Kind = "sigmoid") -> float:
    """L_m (C.24), for a mean that moves along its own ray: the minimum of rho(t u, sigma) over t in [0, 1].

    The document moves one coordinate of the mean in the covariance's own axes (`coordinate_envelope`); Table 4.1 its norm.
    """
    return min(rho(t * np.asarray(mean, float), std, kind) for t in np.linspace(0, 1, FINE))


def coordinate_envelope(
    teacher: np.ndarray, mean: np.ndarray, scale: float, std: float, coordinate: int, kind: Kind = "sigmoid"
) -> float:
    """L_m as printed (C.24): the minimum of rho(W^T v / scale, sigma) over v with v_i between 0 and mu_i, v_j = mu_j else;
    `teacher` and `mean` in the covariance's own axes."""
    found = []
    for t in np.linspace(0, 1, FINE):
        moved = np.array(mean, float)
        moved[coordinate] *= t
        found.append(rho(teacher.T @ moved / scale, std, kind))
    return min(found)


def turning_std(mean: np.ndarray, kind: Kind = "sigmoid") -> float:
    """zeta_s (C.28): the largest sigma up to 1 below which rho(m / sigma, sigma) stays above half its limit C_s; 1 where
    some m_i is 0, when the limit is 0 and nothing is asked."""
    limit = concentrated_limit(mean, kind)
    if limit <= 0:
        return 1.0
    stds = np.geomspace(1e-2, 1.0, FINE)
    low = [rho(np.asarray(mean) / s, s, kind) <= limit / 2 for s in stds]
    return float(stds[max(int(np.argmax(low)) - 1, 0)]) if any(low) else 1.0


def std_envelope(mean: np.ndarray, std: float, kind: Kind = "sigmoid") -> float:
    """L_s (C.29 to C.34) at a fixed projected mean m, a bound below rho(m / sigma, sigma).

    Above zeta_s it is the running minimum from there on, which falls. Below, C_s sigma^2 / (2 zeta_s), or sigma times the
    minimum over [sigma, zeta_s] where some m_i is 0: divided by sigma it rises."""
    m, turn = np.asarray(mean, float), turning_std(mean, kind)
    limit = concentrated_limit(m, kind)
    if std <= turn and limit > 0:
        return limit / (2 * turn) * std**2
    low = min(rho(m / s, s, kind) for s in np.geomspace(min(std, turn), max(std, turn), FINE))
    return low if std > turn else std * low
