"""The lemmas behind Theorem 1: attention bounds, growth of neurons, keys, queries and values, lucky neurons.

Printed forms stand beside corrected ones. [P] is the conference paper, [T] the thesis. `q2` is ||q_1(t)||^2,
measured as <W_K mu_1, W_Q mu_1>; `spread` is delta + tau; `many` and `total` are |S_1| and |S|; a = sqrt(m).
"""

import math

import numpy as np
from scipy import special, stats

# Attention --------------------------------------------------------------------------------------------------


def attention_phi(q2: float, spread: float, many: float, total: float) -> float:
    """phi_n(t) = 1/(|S_1| exp(||q||^2 + (delta+tau)||q||) + |S| - |S_1|) (Definition 1)."""
    return 1 / (many * math.exp(q2 + spread * math.sqrt(q2)) + total - many)


def attention_nu(q2: float, spread: float, many: float, total: float) -> float:
    """nu_n(t) = 1/(|S_1| exp(||q||^2 - (delta+tau)||q||) + |S| - |S_1|) (Definition 1, printed with
    |S_1|-|S_1|)."""
    return 1 / (many * math.exp(q2 - spread * math.sqrt(q2)) + total - many)


def relevant_attention_printed(q2: float, spread: float, many: float, total: float) -> float:
    """p_n(t) = |S_1| exp(||q||^2 - (delta+tau)||q||) nu_n(t): the printed lower bound ([P] 195) for the
    attention that a relevant token pays to the relevant tokens. It is not a bound: errors enter the logit
    twice."""
    return many * math.exp(q2 - spread * math.sqrt(q2)) * attention_nu(q2, spread, many, total)


def relevant_attention_bound(q2: float, spread: float, many: float, total: float) -> float:
    """The bound that holds: with |n|, |o| <= delta+tau, a relevant logit is at least ||q||^2 - 2 D||q|| - D^2
    and any other at most 2 D||q|| + D^2, so the gap is ||q||^2 - 4 D||q|| - 2 D^2."""
    gap = q2 - 4 * spread * math.sqrt(q2) - 2 * spread**2
    return many * math.exp(gap) / (many * math.exp(gap) + total - many)


def other_pattern_weight(q2: float, spread: float, many: float, total: float, others: float) -> float:
    """W_j^n(t) <= nu_n(t) |S_j|: how much of another pattern's value a relevant token carries (Lemma 2, (27))."""
    return attention_nu(q2, spread, many, total) * others


def initial_attention(relevant: float, own: float | None = None) -> float:
    """Attention on the relevant tokens at the start for delta = tau = 0 and q_j = r_j for all j.

    A relevant token pays alpha_* e/(alpha_* e + 1 - alpha_*); a token of another pattern, whose own fraction
    is `own`, pays alpha_*/(own e + 1 - own).
    """
    if own is None:
        return relevant * math.e / (relevant * math.e + 1 - relevant)
    return relevant / (own * math.e + 1 - own)


def attention_limit(learning_rate: float, exponent: float) -> float:
    """1 - eta^C: where Proposition 2 says that the attention on the relevant tokens goes."""
    return 1 - learning_rate**exponent


def attention_after(steps: float, relevant: float, exponent: float = 1.0) -> float:
    """p_n(T) >= T^C/(T^C + (1-alpha)/alpha), from ||q_1(T)||^2 = C log T ([P] 60): 1 - p falls as T^-C."""
    return steps**exponent / (steps**exponent + (1 - relevant) / relevant)


def next_attention(
    q2: float, growth: float, spread: float, many: float, total: float, relevant: bool
) -> tuple[float, float]:
    """Attention paid by a relevant token to one token at t+1, and its increment, when ||q||^2 grows by 1 +
    K(t) (Claim 2): at least this for a relevant token, at most this for another."""
    now = q2 - spread * math.sqrt(q2)
    then = (1 + growth) * q2 - spread * math.sqrt(q2)
    whole = many * math.exp(then) + total - many
    if relevant:
        return math.exp(then) / whole, (total - many) * math.exp(now) * growth / whole**2
    return 1 / whole, -many * math.exp(now) * growth / whole**2


# Keys and queries -------------------------------------------------------------------------------------------


def late_key_growth(learning_rate: float, q2: float, spread: float) -> float:
    """K(t) >= eta exp(-(||q||^2 - (delta+tau)||q||)) ([P] 57), up to a constant."""
    return learning_rate * math.exp(-(q2 - spread * math.sqrt(q2)))


def key_norm_squared(steps: int, learning_rate: float, spread: float, start: float = 1.0) -> np.ndarray:
    """||q_1(t)||^2 for t = 0..steps under q^2 <- (1 + K) q^2 with K at its late-stage size: grows as log
    t."""
    path = np.empty(steps + 1)
    path[0] = start
    for t in range(steps):
        path[t + 1] = path[t] * (1 + late_key_growth(learning_rate, path[t], spread))
    return path


def key_leak(growth: float, others: float, many: float, total: float) -> float:
    """|K_e| <= K(t) |S_j|/(|S| - |S_1|): what the key of pattern 1 gains along pattern j (Claim 2)."""
    return growth * others / (total - many)


def query_growth_floor(growth: float, cross_inner: float) -> float:
    """Q(t) >= (1 - lambda) K(t) (Claim 2)."""
    return (1 - cross_inner) * growth


# Neurons ----------------------------------------------------------------------------------------------------


def neuron_growth(
    steps: np.ndarray,
    learning_rate: float,
    relevant: float,
    attention: float,
    disorder: float,
    neurons: int,
    start: float,
    feedback: float = 1.0,
) -> np.ndarray:
    """w_i . p_1 of a lucky neuron as the solution of y' = A + B t y, y(0) = start:

    y(t) = exp(B t^2/2) [start + A sqrt(pi/(2B)) erf(t sqrt(B/2))], A = (eta/a)(alpha_* p - (sigma+tau)),
    B = feedback eta^2 alpha_*^2 p / 2 (from [P] 95 with m/a^2 = 1). [T] A.87 has one eta less in A and B.
    """
    push = learning_rate / math.sqrt(neurons) * (relevant * attention - disorder)
    pull = feedback * learning_rate**2 * relevant**2 * attention / 2
    t = np.asarray(steps, float)
    integral = math.sqrt(math.pi / (2 * pull)) * special.erf(t * math.sqrt(pull / 2))
    return np.exp(pull * t**2 / 2) * (start + push * integral)


def early_neuron_slope(
    learning_rate: float, neurons: int, attention: float, rival_attention: float = 0.0
) -> float:
    """d(w_i . p_1)/dt of an active neuron with positive shared output weight, per step: (eta/sqrt(m)) times
    half the difference of the mean attention on S_1 over all tokens of positive and of negative samples."""
    return learning_rate / math.sqrt(neurons) * (attention - rival_attention) / 2


def neuron_growth_printed(
    steps: float, learning_rate: float, relevant: float, attention: float, disorder: float, hidden_std: float
) -> float:
    """w_i . p_1 >= exp((eta t)^2 alpha_* p) + xi(1 - (sigma+tau)) up to constants ([P] 98 with m/a^2 = 1)."""
    return math.exp((learning_rate * steps) ** 2 * relevant * attention) + hidden_std * (1 - disorder)


def neuron_growth_thesis(
    steps: float, learning_rate: float, relevant: float, attention: float, hidden_std: float
) -> float:
    """w_i . p_1 >= xi (eta t^2/4) alpha_*^2 p + xi ([T] A.19 with m/a^2 = 1)."""
    return hidden_std * (learning_rate * steps**2 / 4 * relevant**2 * attention + 1)


def neuron_norm_bound(steps: float, learning_rate: float, patterns: int, hidden_std: float) -> float:
    """||w_i||^2 <= M xi^2 + (eta t)^4 for lucky neurons; the second term is absent for the others ([P])."""
    return patterns * hidden_std**2 + (learning_rate * steps) ** 4


def noise_projection_bound(
    steps: float, learning_rate: float, patterns: int, hidden_std: float, disorder: float
) -> float:
    """|w_i . z_l| <= (sigma+tau)(sqrt(M) xi + (eta t)^2) ([P])."""
    return disorder * (math.sqrt(patterns) * hidden_std + (learning_rate * steps) ** 2)


def neuron_increment(
    relevant: float,
    attention: float,
    disorder: float,
    learning_rate: float,
    neurons: int,
    patterns: int,
    steps: float,
    projection: float,
    width_slack: float,
) -> float:
    """One step of w_i . p_1 ([P] 95): (eta/a)[alpha_* p - (sigma+tau) + eta t alpha_*^2 (a/2) p (1 - epsilon
    - (sigma+tau)M/pi) (w_i . p_1)/M]."""
    root = math.sqrt(neurons)
    feedback = learning_rate * steps * relevant**2 * root / 2 * attention
    feedback *= (1 - width_slack - disorder * patterns / math.pi) / patterns * projection
    return learning_rate / root * (relevant * attention - disorder + feedback)


# Values -----------------------------------------------------------------------------------------------------


def value_coefficient(relevant: float, attention: float, neurons: int) -> float:
    """-V_i(t) of a lucky neuron: (1/2) alpha_* p/a ([T]; [P] prints 1/(mL) for 1/(a|S|))."""
    return relevant * attention / (2 * math.sqrt(neurons))


def unlucky_value_coefficient(batch: int, neurons: int) -> float:
    """|V_i(t)| <= 1/(sqrt(B) a) of the other neurons ([T] A.18, up to a factor 1/M)."""
    return 1 / math.sqrt(batch * neurons)


def output_lower_bound(eta_steps: float, first: float, fifth: float) -> float:
    """F >= a_0 (eta T)^5 + a_1 (eta T)^2 ([P] 63)."""
    return fifth * eta_steps**5 + first * eta_steps**2


# Lucky neurons ----------------------------------------------------------------------------------------------


def lucky(hidden: np.ndarray, features: np.ndarray, definition: str, disorder: float = 0.0) -> np.ndarray:
    """Which neurons (rows of `hidden`) are lucky for the first of the value features (rows, p_1 first).

    "angle": within sigma+tau of p_1 (Definition 2 of [P], literally). "nearest": p_1 has the largest inner
    product. "nearest_margin": it still has when shrunk by 1-(sigma+tau) and the others grown by
    1+(sigma+tau), which is what the proof of Lemma 4 uses. "active": positive on p_1 ([T]).
    """
    along = hidden @ features.T
    first, others = along[:, 0], along[:, 1:].max(axis=1)
    if definition == "angle":
        return first >= math.cos(disorder) * np.linalg.norm(hidden, axis=1)
    if definition == "nearest":
        return first > others
    if definition == "nearest_margin":
        return first * (1 - disorder) >= others * (1 + disorder)
    if definition == "active":
        return first > 0
    raise ValueError(definition)


def lucky_share_printed(patterns: int, disorder: float, width_slack: float = 0.0) -> float:
    """|W(0)|/m >= (1 - epsilon - (sigma+tau) M/pi)/M ([P] Lemma 3). It takes angles to be uniform on the
    circle, which they are in two dimensions only."""
    return (1 - width_slack - disorder * patterns / math.pi) / patterns


def lucky_share_angle(value_dim: int, angle: float) -> float:
    """The share of random directions within `angle` of a given one: the cap 1/2 I_{sin^2}((d-1)/2, 1/2)."""
    return 0.5 * float(special.betainc((value_dim - 1) / 2, 0.5, math.sin(angle) ** 2))


def lucky_share_active(disorder: float, value_dim: int) -> float:
    """A lower bound for the share of neurons that are active on c_l despite an error sigma+tau: the cap of
    angle pi/2 - (sigma+tau) ([T] A.5.1). At sigma+tau = 0 it is 1/2."""
    return lucky_share_angle(value_dim, math.pi / 2 - disorder)


def lucky_share_nearest(patterns: int, disorder: float) -> float:
    """The share of neurons whose largest inner product among M orthonormal features is with p_1, even with
    margin.

    w . p_j are independent normal numbers, so it is the integral of their density times Phi(ratio g)^(M-1),
    with ratio = (1-(sigma+tau))/(1+(sigma+tau)), split at zero where the margin turns round; 1/M without
    margin.
    """
    ratio = (1 - disorder) / (1 + disorder)
    node, weight = np.polynomial.legendre.leggauss(400)
    g = 8 * node
    density = stats.norm.pdf(g) * 8 * weight
    return float(np.sum(density * stats.norm.cdf(ratio * g) ** (patterns - 1)))
