"""Smooth functions as means over random ReLU features (Lemmas D.2.1 to D.2.3): `E[1{w.x + b >= 0} h(w.w*, b)] = phi(w*.x)`."""

from functools import cache
from math import erf, factorial, log, sqrt

import numpy as np
from numpy.polynomial.hermite_e import hermeval

from lemmata.studies.gcn_sampling.theory.complexity import Smooth


def hermite(degree: int, z: np.ndarray | float) -> np.ndarray:
    """The Hermite polynomial He_i of the standard normal law."""
    return np.asarray(hermeval(z, np.eye(degree + 1)[degree]))


def window(degree: int, radius: float) -> tuple[float, float]:
    """q_i(b): |b| <= t/(2i) for odd i, 0 < -b <= t/(2i) for even i."""
    half = radius / (2 * degree)
    return (-half, half) if degree % 2 else (-half, 0.0)


@cache
def hermite_gain(degree: int, radius: float, meant: float | None = None) -> float:
    """`p'_i = t^-i E[He_{i-1}(-b/t) pdf(b/t) 1{q_i(b)}]`, b standard normal (Lemma D.2.2 in closed form); Gauss-Legendre
    over the window, which is exact to rounding for so short a one. `meant` is the length that the window was made for, where a
    point of another length `radius` is looked at."""
    low, high = window(degree, radius if meant is None else meant)
    nodes, shares = np.polynomial.legendre.leggauss(40)
    b = (high - low) / 2 * nodes + (high + low) / 2
    density = np.exp(-(b**2) / 2) / sqrt(2 * np.pi)
    kernel = hermite(degree - 1, -b / radius) * np.exp(-((b / radius) ** 2) / 2) / sqrt(2 * np.pi)
    return float(radius**-degree * (high - low) / 2 * (shares @ (density * kernel)))


def gain_bound(degree: int, radius: float) -> float:
    """`|p'_i| >= t^{1-i} (i - 1)!! / (100 i^2 sqrt(t^2 + 1))` (Lemma D.2.2)."""
    odd = float(np.prod(np.arange(degree - 1, 0, -2, dtype=float)))
    return radius ** (1 - degree) * odd / (100 * degree**2 * sqrt(radius**2 + 1))


def clip_at(degree: int, radius: float, accuracy: float) -> float:
    """`B_i = 100 sqrt(i) + 10 sqrt(log(sqrt(t^2 + 1) t^{i-1} / eps))` (under D.26)."""
    inner = log(sqrt(radius**2 + 1) * radius ** (degree - 1) / accuracy)
    return 100 * sqrt(degree) + 10 * sqrt(max(inner, 0.0))


def indicator_feature(
    function: Smooth, alpha: np.ndarray, bias: np.ndarray, radius: float, degree: int, accuracy: float = 1e-3
) -> np.ndarray:
    """`h(alpha, b) = 2 c_0 + sum_i (c_i / p'_i) He_i(clipped alpha) 1{q_i(b)}` up to a degree (mended: the print has c_0,
    but the indicator is 1 half of the time)."""
    total = np.full(np.broadcast(alpha, bias).shape, 2 * function.coefficients(0))
    for i in range(1, degree + 1):
        size = function.coefficients(i)
        if size:
            low, high = window(i, radius)
            most = clip_at(i, radius, accuracy)
            inside = (bias >= low) & (bias <= high) if i % 2 else (bias >= low) & (bias < high)
            total = total + size / hermite_gain(i, radius) * hermite(i, np.clip(alpha, -most, most)) * inside
    return total


def feature_mean(degree: int, x: float, radius: float) -> float:
    """`E[He_i(alpha_1) 1{alpha >= -b/t} 1{q_i(b)}] / p'_i` by quadrature, `alpha_1 = alpha x/t + beta sqrt(1 - x^2/t^2)`:
    x^i by Lemma D.2.2. The mean over beta is `(x/t)^i He_i(alpha)` for the Hermite polynomials; it is taken here by
    Gauss-Hermite."""
    low, high = window(degree, radius)
    nodes, shares = np.polynomial.legendre.leggauss(30)
    b = (high - low) / 2 * nodes + (high + low) / 2
    weight_b = (high - low) / 2 * shares * np.exp(-(b**2) / 2) / sqrt(2 * np.pi)
    beta, weight_beta = np.polynomial.hermite_e.hermegauss(30)
    weight_beta = weight_beta / sqrt(2 * np.pi)
    step, weight_a = np.polynomial.legendre.leggauss(200)
    total = 0.0
    for one, own in zip(b, weight_b, strict=True):
        begin = -one / radius
        alpha = begin + (step + 1) / 2 * (12 - begin)
        density = weight_a * (12 - begin) / 2 * np.exp(-(alpha**2) / 2) / sqrt(2 * np.pi)
        along = alpha[:, None] * x / radius + beta * sqrt(max(1 - (x / radius) ** 2, 0.0))
        total += own * float(density @ hermite(degree, along) @ weight_beta)
    return total / hermite_gain(degree, radius)


def tail_bound(accuracy: float, radius: float) -> float:
    """`(eps/8) sqrt(t^2 + 1)` (Lemma D.2.3): what clipping costs at most."""
    return accuracy / 8 * sqrt(radius**2 + 1)


def clipped_tail(degree: int, most: float) -> float:
    """`E[|He_i(a) - He_i(sign(a) B)| 1{|a| > B}]`, a standard normal: the tail that Lemma D.2.3 bounds, by quadrature."""
    step, shares = np.polynomial.legendre.leggauss(200)
    a = most + (step + 1) / 2 * 12
    density = shares * 6 * np.exp(-(a**2) / 2) / sqrt(2 * np.pi)
    return 2 * float(density @ np.abs(hermite(degree, a) - hermite(degree, most)))


def feature_moment(function: Smooth, radius: float, degree: int) -> float:
    """`E h^2` of the truncated series without clipping, exactly: different Hermite polynomials are orthogonal and E He_i^2 =
    i!. At most `C_s(phi, t)^2 (t^2 + 1)` (Lemma D.2.1, its constant C* left open)."""
    total = 4 * function.coefficients(0) ** 2
    for i in range(1, degree + 1):
        low, high = window(i, radius)
        chance = 0.5 * (erf(high / sqrt(2)) - erf(low / sqrt(2)))
        total += (function.coefficients(i) / hermite_gain(i, radius)) ** 2 * factorial(i) * chance
    return total
