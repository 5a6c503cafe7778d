"""How complex a smooth function is, (5.2) and (5.3): both are sums over its power series, to 1e-12.

C_s is computed twice: term by term, and by quadrature from closed forms of the series of absolute values."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, factorial, gamma, inf, log, sqrt

import numpy as np
from numpy.polynomial import polynomial
from scipy.integrate import quad
from scipy.special import gammaln, xlogy, zeta

from lemmata.errors import require

TERMS, ENTIRE_TERMS = 400, 4000
"""Terms of a series, and of one with coefficients over i!: sums of those are infinite in float64 before more terms matter."""


@dataclass(frozen=True)
class Smooth:
    """A function by its power series: the coefficient of `z^i` is `numerator(i)`, over `i!` if `entire`; the function of the
    absolute coefficients with its first two derivatives (`absolute(z)` gives the three), and the radius within which the series
    converges."""

    name: str
    numerator: Callable[[int], float]
    absolute: Callable[[float], tuple[float, float, float]]
    radius: float = inf
    degree: float = inf
    entire: bool = False

    def coefficients(self, i: int) -> float:
        return self.numerator(i) / factorial(i) if self.entire else self.numerator(i)

    @cached_property
    def logs(self) -> np.ndarray:
        """Logarithms of the absolute coefficients, as many as matter: the coefficients themselves underflow."""
        i = np.arange(int(min(self.degree, ENTIRE_TERMS if self.entire else TERMS)) + 1)
        with np.errstate(divide="ignore"):
            found = np.log(np.abs([self.numerator(int(k)) for k in i]))
        return found - gammaln(i + 1) if self.entire else found


def _tanh(i: int) -> float:
    """For i = 2n - 1: `(-1)^(n-1) 2 (2/pi)^2n (1 - 2^-2n) zeta(2n)`, which is `4^n (4^n - 1) B_2n / (2n)!` without large
    numbers."""
    if i % 2 == 0:
        return 0.0
    power = i + 1
    return (-1) ** (power // 2 - 1) * 2 * (2 / np.pi) ** power * (1 - 2.0**-power) * float(zeta(power))


def _tan(z: float) -> tuple[float, float, float]:
    t = np.tan(z)
    return t, 1 + t**2, 2 * t * (1 + t**2)


def _exp(z: float) -> tuple[float, float, float]:
    found = float(np.exp(z))
    return found, found, found


EXP = Smooth("exp", lambda i: 1.0, _exp, entire=True)
SIN = Smooth(
    "sin",
    lambda i: (0.0, 1.0, 0.0, -1.0)[i % 4],
    lambda z: (float(np.sinh(z)), float(np.cosh(z)), float(np.sinh(z))),
    entire=True,
)
COS = Smooth(
    "cos",
    lambda i: (1.0, 0.0, -1.0, 0.0)[i % 4],
    lambda z: (float(np.cosh(z)), float(np.sinh(z)), float(np.cosh(z))),
    entire=True,
)
TANH = Smooth("tanh", _tanh, _tan, np.pi / 2)


def power_series(*coefficients: float) -> Smooth:
    """A polynomial `c_0 + c_1 z + ...`."""
    sizes = np.abs(np.asarray(coefficients, float))

    def absolute(z: float) -> tuple[float, float, float]:
        parts = (sizes, polynomial.polyder(sizes), polynomial.polyder(sizes, 2))
        return tuple(float(polynomial.polyval(z, part)) for part in parts)  # pyright: ignore[reportReturnType]

    return Smooth("polynomial", lambda i: coefficients[i], absolute, inf, len(coefficients) - 1)


def _inside(function: Smooth, size: float, what: str) -> None:
    require(size >= 0, f"{what} takes a size R of at least 0, not {size}.")
    require(
        size < function.radius or function.radius == inf,
        f"{what} of {function.name} diverges: its series converges below {function.radius:.6g} only, and R is {size:.6g}.",
    )


def sample_complexity_norm(function: Smooth, size: float, constant: float = 1.0) -> float:
    """`C_s(phi, R) = C* sum_i (i + 1)^1.75 R^i |c_i|` (5.3), term by term. Infinite where float64 ends."""
    _inside(function, size, "C_s")
    if size == inf:
        return inf
    i = np.arange(len(function.logs))
    with np.errstate(under="ignore", over="ignore"):
        return constant * float(np.sum(np.exp(xlogy(i, size) + 1.75 * np.log1p(i) + function.logs)))


def sample_complexity_by_quadrature(function: Smooth, size: float, constant: float = 1.0) -> float:
    """(5.3) from `(i + 1)^1.75 = (i + 1)^2 (i + 1)^-1/4` and `n^-1/4 = int t^-3/4 e^-nt dt / Gamma(1/4)`: with t = s^4,
    `C_s = 4 C*/Gamma(1/4) int_0^inf G(R e^-s^4) e^-s^4 ds`, `G(z) = sum (i + 1)^2 |c_i| z^i = f + 3 z f' + z^2 f''` of the
    series f of absolute values."""
    _inside(function, size, "C_s")

    def integrand(s: float) -> float:
        z = size * exp(-(s**4))
        value, slope, curve = function.absolute(z)
        return (value + 3 * z * slope + z**2 * curve) * exp(-(s**4))

    total = (
        quad(integrand, 0, 1, epsabs=0, epsrel=1e-13, limit=200)[0]
        + quad(integrand, 1, 3, epsabs=0, epsrel=1e-12)[0]
    )
    return 4 * constant / gamma(0.25) * total


def model_complexity(function: Smooth, size: float, accuracy: float, constant: float = 1.0) -> float:
    """`C_eps(phi, R) = sum_i ((C* R)^i + (sqrt(log(1/eps)) C* R / sqrt(i))^i) |c_i|` (5.2); the second part of the term i =
    0 is taken as |c_0|. The first sum is the series of absolute values itself. Infinite where float64 ends."""
    _inside(function, constant * size, "C_eps")
    require(0 <= accuracy < 1, f"the accuracy eps lies between 0 and 1, not {accuracy}.")
    if accuracy == 0 or size == inf:
        return inf
    i = np.arange(1, len(function.logs))
    reach = sqrt(log(1 / accuracy)) * constant * size
    with np.errstate(under="ignore", over="ignore"):
        second = np.exp(xlogy(i, reach) - 0.5 * xlogy(i, i) + function.logs[1:])
        return function.absolute(constant * size)[0] + float(np.exp(function.logs[0]) + np.sum(second))
