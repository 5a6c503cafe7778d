"""Theorem 2 and its lemmas as functions of the mixture and the teacher, hidden constants set to 1; Table 4.1
regenerated.

    s_l = |Sigma_l^-1|^-1/2,  tau = sigma_max / sigma_min,  kappa = delta_1 / delta_K,  eta_W = prod_i delta_i / delta_K,
    rho_l = rho(W*^T mu_l / (delta_K s_l), delta_K s_l),  M_p = sum_l lambda_l (|mu_l| + |Sigma_l^1/2|)^p
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import log, sqrt
from typing import Literal, get_args

import numpy as np

from lemmata.errors import require
from lemmata.studies.group_imbalance.data import Mixture
from lemmata.studies.group_imbalance.network import STEEPEST, Kind
from lemmata.studies.group_imbalance.theory.rho_function import mean_envelope, rho, std_envelope, turning_std

Column = Literal["covariance-small", "covariance-large", "mean", "fraction-smallest", "fraction-largest"]
Row = Literal["samples", "rate", "error", "average", "group"]
ROWS: tuple[Row, ...] = ("samples", "rate", "error", "average", "group")

TABLE: dict[tuple[str, str], float | str] = {
    (row, column): entry
    for row, entries in {
        "samples": (-3.0, 3.0, 12.0, "falls", "rises"),
        "rate": (3.0, -1.0, -2.0, "rises", "falls"),
        "error": ("falls", 0.5, 1.0, "falls", "rises"),
        "average": ("falls", 1.0, 2.0, "falls", "rises"),
        "group": ("falls", 1.0, 2.0, "falls", "rises"),
    }.items()
    for column, entry in zip(get_args(Column), entries, strict=True)
}
"""Table 4.1: the exponent of |Sigma_l| or |mu_l| (large means: |mu_l| >= 1), or the direction as the parameter
grows, of n_sc, 1 - v, |W_n - W* P|, f and f_l."""


@dataclass(frozen=True)
class Setting:
    """A mixture and a teacher, as the theorems see them. `rho` may be replaced (by `rho_exact`, by the envelopes)."""

    mixture: Mixture
    teacher: np.ndarray
    rho: Callable[[np.ndarray, float], float] | None = None
    kind: Kind = "sigmoid"

    @cached_property
    def means(self) -> np.ndarray:
        """|mu_l|."""
        return np.linalg.norm(self.mixture.means, axis=1)

    @cached_property
    def min_std(self) -> np.ndarray:
        """s_l = |Sigma_l^-1|^-1/2."""
        return np.sqrt(np.linalg.eigvalsh(self.mixture.covariances)[:, 0])

    @cached_property
    def max_std(self) -> np.ndarray:
        """|Sigma_l^1/2|."""
        return np.sqrt(np.linalg.eigvalsh(self.mixture.covariances)[:, -1])

    @cached_property
    def singular_values(self) -> np.ndarray:
        """delta_1 >= ... >= delta_K."""
        return np.linalg.svd(self.teacher, compute_uv=False)

    @property
    def dim(self) -> int:
        return self.teacher.shape[0]

    @property
    def neurons(self) -> int:
        return self.teacher.shape[1]

    @property
    def sigma_max(self) -> float:
        return float(self.max_std.max())

    @property
    def covariance_condition(self) -> float:
        """tau."""
        return self.sigma_max / float(self.min_std.min())

    @property
    def weight_condition(self) -> float:
        """kappa."""
        return float(self.singular_values[0] / self.singular_values[-1])

    @property
    def weight_volume_ratio(self) -> float:
        """eta_W = prod_i delta_i / delta_K (eta in print)."""
        return float(np.prod(self.singular_values / self.singular_values[-1]))

    @cached_property
    def rhos(self) -> np.ndarray:
        """rho_l of every group."""
        last, of = self.singular_values[-1], self.rho or partial(rho, kind=self.kind)
        return np.array(
            [
                of(self.teacher.T @ mean / (last * s), last * s)
                for mean, s in zip(self.mixture.means, self.min_std, strict=True)
            ]
        )

    @property
    def strength(self) -> float:
        """Z = sum_l lambda_l s_l^2 rho_l."""
        return float(self.mixture.weights @ (self.min_std**2 * self.rhos))

    @property
    def weakening(self) -> float:
        """eta_W tau^K kappa^2, which divides Z."""
        return self.weight_volume_ratio * self.covariance_condition**self.neurons * self.weight_condition**2


def enveloped(s: Setting, moving: Literal["means", "covariances"]) -> Setting:
    """The setting with rho replaced by its monotone bound from below: L_m where only means move (the covariances S are
    fixed), L_s where only covariances do (the means M are fixed). B, q and all that is made of rho then are those of (C.93)
    and (C.96)."""
    if moving == "means":
        return replace(s, rho=partial(mean_envelope, kind=s.kind))
    return replace(s, rho=lambda u, std: std_envelope(u * std, std, s.kind))


def m_moment(s: Setting, power: int) -> float:
    """M_p = sum_l lambda_l (|mu_l| + |Sigma_l^1/2|)^p."""
    return float(s.mixture.weights @ (s.means + s.max_std) ** power)


def d_moment(s: Setting, power: int) -> float:
    """D_m = sum_l lambda_l (|mu_l| / s_l + 1)^m (C.8). D_m D_2m <= D_3m and D_m^2 <= D_2m (Property 10)."""
    return float(s.mixture.weights @ (s.means / s.min_std + 1) ** power)


def g_fn(s: Setting) -> float:
    """G = sum_l lambda_l s_l^2 rho_l / (eta_W tau^K kappa^2)."""
    return s.strength / s.weakening


def gamma_fn(s: Setting) -> float:
    """Gamma = G / sigma_max^2 (C.7)."""
    return g_fn(s) / s.sigma_max**2


def convex_radius(s: Setting, slack: float = 0.1) -> float:
    """r = eps_0 G / (K^7/2 (M_4 M_8)^1/4) (C.81), C_3 = 1."""
    return slack * g_fn(s) / (s.neurons**3.5 * (m_moment(s, 4) * m_moment(s, 8)) ** 0.25)


def in_convex_ball(s: Setting, weights: np.ndarray, slack: float = 0.1) -> bool:
    """Whether W lies within r of W* (its columns already aligned)."""
    return float(np.linalg.norm(weights - s.teacher)) <= convex_radius(s, slack)


def sample_complexity_factor(s: Setting) -> float:
    """B = (sigma_max delta_1)^2 tau^12 (sum_l lambda_l s_l^2 rho_l / (eta_W sigma_max^2))^-2 D_12 (C.93), without
    tau^K kappa^2."""
    inner = s.strength / (s.weight_volume_ratio * s.sigma_max**2)
    return float(
        (s.sigma_max * s.singular_values[0]) ** 2 * s.covariance_condition**12 / inner**2 * d_moment(s, 12)
    )


def sample_complexity_factor_full(s: Setting) -> float:
    """As B with Gamma's full form: (tau^K kappa^2)^2 times more."""
    return sample_complexity_factor(s) * (s.covariance_condition**s.neurons * s.weight_condition**2) ** 2


def sample_complexity(s: Setting, slack: float = 0.1) -> float:
    """n_sc = eps_0^-2 kappa^12 K^14 (sigma_max delta_1)^2 tau^12 Gamma^-2 D_12 d log^2 d (C.92), C_0 = 1."""
    powers = s.weight_condition**12 * s.neurons**14 * s.covariance_condition**12
    scale = (s.sigma_max * s.singular_values[0]) ** 2 * d_moment(s, 12) / gamma_fn(s) ** 2
    return float(slack**-2 * powers * scale * s.dim * _log2(s.dim))


def sample_complexity_early(s: Setting, slack: float = 0.1) -> float:
    """(C.89), before it is simplified: with (M_4 M_8)^1/2 D_6 in place of sigma_max^6 D_12."""
    powers = s.weight_condition**12 * s.neurons**14 * s.covariance_condition**12
    scale = sqrt(m_moment(s, 4) * m_moment(s, 8)) * s.singular_values[0] ** 2 * d_moment(s, 6)
    return float(slack**-2 * powers * scale / g_fn(s) ** 2 * s.dim * _log2(s.dim))


def convexity_samples(s: Setting, slack: float = 0.1) -> float:
    """(C.82): eps_0^-2 M_2^2 G^-2 d K^5 log^2 d, C_1 = 1."""
    return slack**-2 * (m_moment(s, 2) / g_fn(s)) ** 2 * s.dim * s.neurons**5 * _log2(s.dim)


def initialisation_samples(s: Setting) -> float:
    """(C.86): kappa^8 K^4 tau^12 D_6 d log^2 d."""
    powers = s.weight_condition**8 * s.neurons**4 * s.covariance_condition**12
    return powers * d_moment(s, 6) * s.dim * _log2(s.dim)


def initialisation_error(s: Setting, samples: int) -> float:
    """(C.87): kappa^6 K^3 tau^6 sqrt(D_6 d log n / n) |W*|."""
    powers = s.weight_condition**6 * s.neurons**3 * s.covariance_condition**6
    return float(powers * sqrt(d_moment(s, 6) * s.dim * log(samples) / samples) * s.singular_values[0])


def _log2(dim: int) -> float:
    return max(log(dim), log(2)) ** 2


def step_size(s: Setting) -> float:
    """eta_0 = 1 / M_2 (Algorithm 1), constant 1: far smaller than the curvature allows."""
    return 1 / m_moment(s, 2)


def rate_parameter(s: Setting) -> float:
    """q = G / M_2 (C.96)."""
    return g_fn(s) / m_moment(s, 2)


def rate_parameter_large(s: Setting, group: int) -> float:
    """q where the means are fixed and one group has |Sigma_i^1/2| >= max(1, zeta_s) (C.96, third case): its summand is
    lambda_i L_s / (eta_W tau^K kappa^2), without s_i^2; the others keep rho."""
    own = s.teacher.T @ s.mixture.means[group]
    least = max(1.0, turning_std(own, s.kind) / float(s.singular_values[-1]))
    require(
        bool(s.min_std[group] >= least),
        f"this case needs a covariance of at least {least**2:.3g} of group {group + 1}.",
    )
    low = enveloped(s, "covariances").rhos[group]
    others = np.delete(s.mixture.weights * s.min_std**2 * s.rhos, group).sum()
    return float((s.mixture.weights[group] * low + others) / s.weakening / m_moment(s, 2))


def contraction_bound(s: Setting) -> float:
    """v = 1 - q / K^2 (4.9)."""
    return 1 - rate_parameter(s) / s.neurons**2


def weight_error_factor(s: Setting) -> float:
    """E_w = sqrt(M_2) / Z (C.97)."""
    return sqrt(m_moment(s, 2)) / s.strength


def average_risk_factor(s: Setting) -> float:
    """E = M_2 / Z (C.98)."""
    return m_moment(s, 2) / s.strength


def group_risk_factor(s: Setting) -> np.ndarray:
    """E_l = sqrt(M_2) (|mu_l| + |Sigma_l^1/2|) / Z (C.99), of every group."""
    return sqrt(m_moment(s, 2)) * (s.means + s.max_std) / s.strength


def noise_floor_bound(s: Setting, step: float, bound: float, factor: float, samples: int) -> float:
    """The last term of (4.8): eta_0 xi / (1 - v) sqrt(dK log n / n)."""
    return step * bound / (1 - factor) * sqrt(s.dim * s.neurons * log(samples) / samples)


def weight_error_bound(s: Setting, samples: int, noise: float = 0.0) -> float:
    """(C.84): K^5/2 sqrt(M_2) (1 + xi) / G sqrt(d log n / n), constant 1."""
    return (
        s.neurons**2.5 * sqrt(m_moment(s, 2)) * (1 + noise) / g_fn(s) * sqrt(s.dim * log(samples) / samples)
    )


def average_risk_bound(s: Setting, samples: int, noise: float = 0.0) -> float:
    """(4.11): K^5/2 E eta tau^K kappa^2 (1 + xi) sqrt(d log n / n), constant 1; of the excess risk."""
    return weight_error_bound(s, samples, noise) * sqrt(m_moment(s, 2))


def group_risk_bound(s: Setting, samples: int, noise: float = 0.0) -> np.ndarray:
    """(4.12): as (4.11) with E_l, of every group."""
    return weight_error_bound(s, samples, noise) * (s.means + s.max_std)


def curvature_bounds(s: Setting) -> tuple[float, float]:
    """4 G / K^2 and M_2 / (4K): Lemma C.4.4 at W*, with its C_4 made explicit (for a sigmoid). The lower one is violated where
    the means have two or more coordinates (see `rho_exact`)."""
    return 4 * g_fn(s) / s.neurons**2, STEEPEST[s.kind] / s.neurons * m_moment(s, 2)


def hessian_lipschitz(s: Setting) -> float:
    """K^3/2 (M_4 M_8)^1/4 (Lemma C.4.3), C_5 = 1."""
    return s.neurons**1.5 * (m_moment(s, 4) * m_moment(s, 8)) ** 0.25


def sample_lipschitz(s: Setting, printed: bool = True) -> float:
    """d^3/2 K^5/2 sqrt(A_2 A_4) with A_p = sum_l lambda_l (|mu_l|_inf + |Sigma_l|)^p (Lemma C.4.2), C_12 = 1.

    The printed |Sigma_l| cannot be meant: E|x|^3 is of order |Sigma_l|^3/2 (Property 7 has |Sigma_l^1/2|)."""
    reach = np.abs(s.mixture.means).max(1) + (s.max_std**2 if printed else s.max_std)
    second, fourth = (s.mixture.weights @ reach**p for p in (2, 4))
    return float(s.dim**1.5 * s.neurons**2.5 * sqrt(second * fourth))


def hessian_deviation(s: Setting, samples: int) -> float:
    """M_2 sqrt(dK log n / n) (Lemma C.4.5), C_6 = 1."""
    return m_moment(s, 2) * sqrt(s.dim * s.neurons * log(samples) / samples)


def gradient_deviation(s: Setting, samples: int, noise: float = 0.0) -> float:
    """sqrt(K M_2) sqrt(d log n / n) (1 + xi) (Lemma C.5.1), C_13 = 1."""
    return sqrt(s.neurons * m_moment(s, 2) * s.dim * log(samples) / samples) * (1 + noise)


def moment_errors(s: Setting, samples: int) -> dict[str, float]:
    """Lemmas C.6.1 to C.6.3 with constants 1: the errors of Q_1, Q_2 (or Q_3(I, I, a)) and R_3."""
    top, tau = float(s.singular_values[0]) ** 2, s.covariance_condition
    shrink = sqrt(log(samples) / samples)
    return {
        "first": tau**2 * sqrt(d_moment(s, 2) * s.dim) * shrink,
        "second": top * tau**6 * sqrt(d_moment(s, 2) * d_moment(s, 4) * s.dim) * shrink,
        "third": top * tau**6 * sqrt(d_moment(s, 6)) * shrink,
    }


# Table 4.1 --------------------------------------------------------------------------------------------------------------


def table_quantities(s: Setting, group: int) -> dict[str, float]:
    """The rows of Table 4.1 from the closed forms, without the polynomials that the proof sets aside: n_sc (C.100),
    1 - v, E_w, E and the group's E_l."""
    return {
        "samples": sqrt(m_moment(s, 4) * m_moment(s, 8)) * d_moment(s, 6) / s.strength**2,
        "rate": s.strength / m_moment(s, 2),
        "error": weight_error_factor(s),
        "average": average_risk_factor(s),
        "group": float(group_risk_factor(s)[group]),
    }


def varied(mixed: Mixture, group: int, column: Column, value: float) -> Mixture:
    """The mixture with one parameter of one group moved: |Sigma_l|, |mu_l| or lambda_l set to `value`; the other
    fractions keep their proportions."""
    weights, means, covariances = (np.array(part, float) for part in mixed)
    if column.startswith("covariance"):
        covariances[group] *= value / np.linalg.eigvalsh(covariances[group])[-1]
    elif column == "mean":
        length = np.linalg.norm(means[group])
        direction = means[group] / length if length else np.full(len(means[group]), len(means[group]) ** -0.5)
        means[group] = value * direction
    else:
        weights *= (1 - value) / (1 - weights[group])
        weights[group] = value
    return Mixture(weights, means, covariances)


def table_4_1(
    mixed: Mixture, teacher: np.ndarray, group: int, column: Column, grid: np.ndarray
) -> dict[str, dict[str, object]]:
    """A column of Table 4.1 from the closed forms: values on the grid, local exponent and direction, beside the
    table's entry."""
    rows: dict[str, list[float]] = {row: [] for row in ROWS}
    for value in grid:
        for row, number in table_quantities(
            Setting(varied(mixed, group, column, float(value)), teacher), group
        ).items():
            rows[row].append(number)
    found = {}
    for row, numbers in rows.items():
        change = np.diff(numbers)
        direction = "rises" if (change > 0).all() else "falls" if (change < 0).all() else "neither"
        exponent = float(np.polyfit(np.log(grid), np.log(numbers), 1)[0])
        found[row] = {
            "values": np.array(numbers), "exponent": exponent, "direction": direction, "table": TABLE[row, column]
        }  # fmt: skip
    return found
