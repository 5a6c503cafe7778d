"""What the paper proves about the token mixture (DM1): first phase, NTK margin, saturated attention, the obstruction.

Notation: `S` signal strength, `zeta` the fraction of relevant tokens, `M` irrelevant patterns, `Z_mu`, `Z_nu`, `Z` the
noise bounds, `Z_bar` the larger of the first two, `p` what the first phase adds to its mean and `P >= ||p||`.
"""

from dataclasses import dataclass
from itertools import product
from math import ceil, log, sqrt
from typing import Literal

import numpy as np
import scipy

from lemmata.errors import require
from lemmata.studies.multihead.data import NoiseBounds, TokenMixture
from lemmata.studies.multihead.theory.bounds import DataBounds, GoodStart

AlphaLaw = Literal["signs", "interval"]
MEAN_STEP = {"signs": 1.0, "interval": 0.5}
"""`E|alpha|` of the random first step: sign, or uniform on [-1, 1]."""


@dataclass(frozen=True)
class MixtureBounds:
    """The constants of Assumption 3 and the shapes: everything the results on DM1 depend on."""

    dim: int
    tokens: int
    patterns: int
    signal: float
    relevant_fraction: float
    noise: NoiseBounds

    @staticmethod
    def of(mixture: TokenMixture, noise: NoiseBounds) -> "MixtureBounds":
        """The constants of a data model whose noise keeps to these bounds."""
        return MixtureBounds(
            mixture.dim,
            mixture.tokens,
            mixture.patterns,
            float(mixture.signal),
            float(mixture.relevant_fraction),
            NoiseBounds(*map(float, noise)),
        )

    @property
    def radius(self) -> float:
        """`R = sqrt(S^2 + Z^2 + 2 Z_nu / M)`, raised to 1 where Assumption 1 asks for that."""
        return max(1.0, sqrt(self.signal**2 + self.noise.norm**2 + 2 * self.noise.irrelevant / self.patterns))

    @property
    def data(self) -> DataBounds:
        return DataBounds(self.dim, self.tokens, self.radius)


def forecast_bounds(mixture: TokenMixture, samples: int, delta: float) -> MixtureBounds:
    """The constants of a mixture before anything is drawn: almost sure ones, or for Gaussian noise such that all
    noise tokens of `samples` samples keep to them with probability `1 - delta` (union over tokens and patterns)."""
    return MixtureBounds.of(mixture, mixture.noise_bounds() or _gaussian_bounds(mixture, samples, delta))


def _gaussian_bounds(mixture: TokenMixture, samples: int, delta: float) -> NoiseBounds:
    count = samples * mixture.tokens
    overlap = mixture.signal * mixture.noise * sqrt(2 * log(4 * count * (mixture.patterns + 2) / delta))
    norm = mixture.noise * (sqrt(mixture.dim) + sqrt(2 * log(2 * count / delta)))
    return NoiseBounds(overlap, mixture.patterns * overlap, norm)


# The first phase (Lemmas 2, 16, 17) ------------------------------------------------------------------------------------


def row_coefficient(relevant_fraction: float, printed: bool = False) -> float:
    """The mean row of the decoder after the first phase is `alpha_h c (mu_+ - mu_-)`.

    `E[y mu_y]` is half of `mu_+ - mu_-`, so `c = zeta/4`; the document has `zeta/2` (Lemma 2).
    """
    return relevant_fraction / (2 if printed else 4)


def residual_bound(mixture: MixtureBounds, samples: int, delta: float, constant: float = 1.0) -> float:
    """`P = C (2S + Z)(sqrt(d/n_1) + sqrt(log(1/delta)/n_1))` (eq. 6); `C` is universal and not stated."""
    lead = constant * (2 * mixture.signal + mixture.noise.norm)
    return lead * (sqrt(mixture.dim / samples) + sqrt(log(1 / delta) / samples))


def start_norm_bound(mixture: MixtureBounds, residual: float) -> float:
    """`B_2 = sqrt(T)(S + P)` (Prop. 2, P1)."""
    return sqrt(mixture.tokens) * (mixture.signal + residual)


def sharp_start_norm(mixture: MixtureBounds, residual: float) -> float:
    """`sqrt(T)(c ||mu_+ - mu_-|| + P)` with the true `c = zeta/4`: what the proof of P1 bounds by `B_2` (App. D.2.1)."""
    mean = row_coefficient(mixture.relevant_fraction) * sqrt(2) * mixture.signal
    return sqrt(mixture.tokens) * (mean + residual)


def sure_start_norm(mixture: MixtureBounds) -> float:
    """`sqrt(T) R / 2`: every head's norm after the first phase, almost surely, since its rows are at most half a mean of
    tokens. It needs no bound on the residual, as `B_2` does."""
    return sqrt(mixture.tokens) * mixture.radius / 2


def start_output_bound(mixture: MixtureBounds, residual: float, samples: int, delta: float) -> float:
    """`B_Phi = T R (S + P) sqrt(2 log(n/delta))` with probability `1 - delta` over the signs (Prop. 2, P2)."""
    return mixture.tokens * mixture.radius * (mixture.signal + residual) * sqrt(2 * log(samples / delta))


# Margins (Lemmas 13 to 15, App. F) -------------------------------------------------------------------------------------


def linear_margin(mixture: MixtureBounds) -> float:
    """`gamma_lin = S sqrt(T/2)(zeta - 2(1 - zeta) Z_mu / S^2)`: margin of `1_T (mu_+ - mu_-)^T` without attention, and
    the decoder's share of the NTK margin (eq. 106, App. F)."""
    s, zeta = mixture.signal, mixture.relevant_fraction
    return s * sqrt(mixture.tokens / 2) * (zeta - 2 * (1 - zeta) * mixture.noise.signal / s**2)


def attention_share(
    mixture: MixtureBounds, residual: float, law: AlphaLaw = "signs", printed_row: bool = False
) -> float:
    """The attention weights' share of the NTK margin, for the true law of the first step (eq. 116, corrected):

    `E|alpha| [ c T(1-zeta)/sqrt(2(M+1)) (zeta S^4 - 7 Z_bar S^2 - 12 Z_bar^2 - 16 Z_bar^3/S^2) - 2 P T^2.5 (S+Z)^3 ]`.
    """
    zeta, s, z = mixture.relevant_fraction, mixture.signal, mixture.noise.largest
    bracket = zeta * s**4 - 7 * z * s**2 - 12 * z**2 - 16 * z**3 / s**2
    lead = row_coefficient(zeta, printed_row) * mixture.tokens * (1 - zeta) / sqrt(2 * (mixture.patterns + 1))
    return MEAN_STEP[law] * (lead * bracket - 2 * _residual_cost(mixture, residual))


def sharper_attention_share(mixture: MixtureBounds, residual: float, law: AlphaLaw = "signs") -> float:
    """The same from the intermediate bounds (112) to (114), before the noise terms are merged into `Z_bar`."""
    zeta, s, t = mixture.relevant_fraction, mixture.signal, mixture.tokens
    mu, nu, rest = mixture.noise.signal, mixture.noise.irrelevant, 1 - mixture.relevant_fraction
    own = (
        zeta * s**6
        - zeta * rest * (mu + nu) * s**4
        - 2 * rest * (2 - zeta) * mu**2 * s**2
        - 4 * rest**2 * mu**2 * (mu + nu)
    )
    mean = (
        zeta**2 * s**6
        + zeta * rest * (4 * mu + zeta * nu) * s**4
        + 2 * rest**2 * ((2 + zeta) * mu + 2 * zeta * nu) * mu * s**2
        + 4 * rest**3 * mu**2 * (mu + nu)
    )
    unit = s**2 * sqrt(2 * (mixture.patterns + 1))
    far = s + mixture.noise.norm
    cost = residual * t**2.5 * (zeta * s + rest * far) * (zeta * s**2 + rest * far**2)
    return MEAN_STEP[law] * (row_coefficient(zeta) * t * (own - mean) / unit - cost)


def printed_ntk_margin(mixture: MixtureBounds, residual: float) -> float:
    """`gamma*` as printed (eq. 119), written for `E|alpha| = 1/2` and row coefficient `zeta/2`."""
    return attention_share(mixture, residual, "interval", printed_row=True) + linear_margin(mixture)


def ntk_margin(mixture: MixtureBounds, residual: float, law: AlphaLaw = "signs") -> float:
    """`gamma*` with the true mean of the first phase and the law that is used."""
    return attention_share(mixture, residual, law) + linear_margin(mixture)


def noise_free_attention_share(mixture: MixtureBounds, law: AlphaLaw = "signs") -> float:
    """`E|alpha| (zeta/4) T (1-zeta) zeta S^4 / sqrt(2(M+1))`: exact for every sample when noise and `p` are zero."""
    zeta = mixture.relevant_fraction
    lead = row_coefficient(zeta) * mixture.tokens * (1 - zeta) * zeta
    return MEAN_STEP[law] * lead * mixture.signal**4 / sqrt(2 * (mixture.patterns + 1))


def summand_bound(mixture: MixtureBounds, residual: float) -> float:
    """`2(2 R^3 T (S+P) + sqrt(T) R)`: one head's contribution to the NTK margin (eq. 118)."""
    r, t = mixture.radius, mixture.tokens
    return 2 * (2 * r**3 * t * (mixture.signal + residual) + sqrt(t) * r)


def margin_deviation(mixture: MixtureBounds, residual: float, heads: float, delta: float) -> float:
    """`2(2 R^3 T (S+P) + sqrt(T) R) sqrt(2 log(1/delta)/H)`: how far the margin of `H` drawn heads may fall below its
    mean (Lemma 14). Zero for signs, under which all heads contribute alike."""
    return summand_bound(mixture, residual) * sqrt(2 * log(1 / delta) / heads)


def heads_for_margin(
    mixture: MixtureBounds, residual: float, margin: float, samples: int, delta: float
) -> float:
    """`sqrt(H) >= 4 (2 R^3 T (S+P) + sqrt(T) R)/gamma* sqrt(2 log(n/delta))`: P3 with `gamma*/2` (Lemma 15)."""
    if margin <= 0:
        return np.inf
    return ceil((2 * summand_bound(mixture, residual) / margin * sqrt(2 * log(samples / delta))) ** 2)


def good_start(
    mixture: MixtureBounds, residual: float, samples: int, delta: float, printed: bool = False
) -> GoodStart:
    """Prop. 2: the constants of Definition 1 after the first phase, `gamma = gamma*/2`."""
    margin = printed_ntk_margin(mixture, residual) if printed else ntk_margin(mixture, residual)
    return GoodStart(
        max(1.0, start_norm_bound(mixture, residual)),
        max(1.0, start_output_bound(mixture, residual, samples, delta)),
        margin / 2,
        printed,
    )


def best_margin(features: np.ndarray, labels: np.ndarray) -> float:
    """`max_{||theta*|| = sqrt(2)} min_i y_i <f_i, theta*>` exactly (least distance programming by Lawson and Hanson).

    Zero when no direction separates the features.
    """
    signed = features * labels[:, None]
    stacked = np.vstack([signed.T, np.ones(len(labels))])
    goal = np.zeros(len(stacked))
    goal[-1] = 1
    weights, _ = scipy.optimize.nnls(stacked, goal)
    residual = stacked @ weights - goal
    if -residual[-1] < 1e-12:
        return 0.0
    direction = residual[:-1] / -residual[-1]  # the shortest w with y_i <f_i, w> >= 1
    return sqrt(2) / float(np.linalg.norm(direction))


# Saturated attention (Lemma 18, Prop. 3) -------------------------------------------------------------------------------


def relevant_score_floor(mixture: MixtureBounds) -> float:
    """`A = S^4 - S^2 (Z_mu + Z_nu)`: scores of relevant tokens under `W*` are at least this (eq. 129)."""
    return mixture.signal**4 - mixture.signal**2 * (mixture.noise.signal + mixture.noise.irrelevant)


def irrelevant_score_ceiling(mixture: MixtureBounds) -> float:
    """`B = 2(Z_mu^2 + Z_mu Z_nu + S^2 Z_mu)`: scores of irrelevant tokens are at most this (eq. 129)."""
    mu, nu = mixture.noise.signal, mixture.noise.irrelevant
    return 2 * (mu**2 + mu * nu + mixture.signal**2 * mu)


def saturation_scale(floor: float, ceiling: float, relevant: int, tokens: int, leak: float) -> float:
    """`Gamma >= (2/A) log((T/L - 1)/eps)` puts at most `eps` on irrelevant tokens; needs `A > 2B`, `A > 0` (Lemma 18).

    Zero where even attention that looks everywhere alike leaks no more."""
    require(
        floor > max(0, 2 * ceiling),
        "softmax saturation needs relevant scores above twice the irrelevant ones.",
    )
    return 2 / floor * max(0.0, log((tokens / relevant - 1) / leak))


def sharp_saturation_scale(floor: float, ceiling: float, relevant: int, tokens: int, leak: float) -> float:
    """`Gamma >= log((T/L - 1)/eps)/(A - B)` already suffices, and `A > B` is all it needs."""
    require(floor > ceiling, "softmax saturation needs relevant scores above the irrelevant ones.")
    return max(0.0, log((tokens / relevant - 1) / leak)) / (floor - ceiling)


def saturating_norm(mixture: MixtureBounds, leak: float) -> float:
    """`Gamma >= (8 sqrt(2(M+1))/(3 S^2)) log((1/zeta - 1)/eps)` for `W = Gamma W_opt`; needs `Z_mu, Z_nu <= S^2/8`
    (Prop. 3)."""
    require(
        mixture.noise.largest <= mixture.signal**2 / 8,
        f"saturated attention needs noise overlaps of at most S^2/8 = {mixture.signal**2 / 8:g}, "
        f"not {mixture.noise.largest:g}.",
    )
    lead = 8 * sqrt(2 * (mixture.patterns + 1)) / (3 * mixture.signal**2)
    return lead * max(0.0, log((1 / mixture.relevant_fraction - 1) / leak))


def attention_margin(mixture: MixtureBounds, leak: float = 0.0) -> float:
    """`gamma_attn(eps) = sqrt(T)/(sqrt(2) S) (S^2 (1 - eps) - 2 eps Z_mu)`; `S sqrt(T/2)` in the limit (Prop. 3)."""
    s = mixture.signal
    return sqrt(mixture.tokens / 2) / s * (s**2 * (1 - leak) - 2 * leak * mixture.noise.signal)


def ordering_limit(mixture: MixtureBounds) -> float:
    """The largest `S` up to which `gamma* <= gamma_attn` can hold without noise: `S^3 = 4 sqrt(M+1)/(zeta^2 sqrt(T))`.

    `gamma*` grows like `S^4`, `gamma_attn` like `S`, so the ordering is not universal.
    """
    cube = 4 * sqrt(mixture.patterns + 1) / (mixture.relevant_fraction**2 * sqrt(mixture.tokens))
    return cube ** (1 / 3)


# The obstruction (Sec. 5.3) --------------------------------------------------------------------------------------------


def saturated_target_feasible(
    signal: float, heads: float, power: float, constant: float, log_samples: float, scale: float = 0.5
) -> bool:
    """Can the saturated solution be the target of the theorems? All hidden constants are 1.

    With `U_h = (log n/gamma_attn) H^(c-1) U_opt` and `W_h = C H^-p W_opt` it must saturate (`S^2 >= H^p/C`) and the
    heads must pay for the distance (`H^c >= S^5 ||theta||^3`, `||U|| = H^(c-1/2) log n / S`, `||W|| = C H^(1/2-p)`).
    Paying for `W` once it saturates gives `S >= H^(3/2-c)`; paying for `U` then gives `H^(-3/2) >= log^3 n`, which no
    `H >= 1` meets when `log n > 1`, whatever `c`, `p` and `C` are.
    """
    decoder = heads ** (scale - 0.5) * log_samples / signal
    attention = constant * heads ** (0.5 - power)
    saturates = signal**2 >= heads**power / constant
    affordable = heads**scale >= signal**5 * max(decoder, attention) ** 3
    return bool(saturates and affordable)


def feasible_saturated_targets(
    log_samples: float, scale: float = 0.5, points: int = 13
) -> list[tuple[float, float, float, float]]:
    """Every `(p, C, S, H)` of a logarithmic grid at which the saturated solution could be a target: none when
    `log n > 1`. `S` runs from 1 on, as Assumption 1 does."""
    powers = np.linspace(-1, 3, points)
    constants, signals, heads = (
        np.logspace(-6, 6, points),
        np.logspace(0, 6, points),
        np.logspace(0, 18, points),
    )
    return [
        (float(p), float(c), float(s), float(h))
        for p, c, s, h in product(powers, constants, signals, heads)
        if saturated_target_feasible(s, h, p, c, log_samples, scale)
    ]


def _residual_cost(mixture: MixtureBounds, residual: float) -> float:
    """`P T^(5/2) (S + Z)^3`: what the first phase's residual can cost the attention's share."""
    return residual * mixture.tokens**2.5 * (mixture.signal + mixture.noise.norm) ** 3
