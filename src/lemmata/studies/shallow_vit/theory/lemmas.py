"""The lemmas behind Theorem 1: attention bounds, growth of neurons, keys, queries and values, lucky neurons.

Printed forms stand beside corrected ones. [P] is the conference paper, [T] the thesis. `q2` is ||q_1(t)||^2, measured as
<W_K mu_1, W_Q mu_1>; `spread` is delta + tau; `many` and `total` are |S_1| and |S|; a = sqrt(m). Plain arithmetic works on
arrays too.
"""

import math
from typing import Any

import numpy as np
import scipy

from lemmata.parts.probes import cap_share

# Attention -------------------------------------------------------------------------------------------------------------


def attention_phi(q2: Any, spread: float, many: float, total: float) -> Any:
    """phi_n(t) = 1/(|S_1| exp(||q||^2 + (delta+tau)||q||) + |S| - |S_1|) (Definition 1)."""
    return 1 / (many * np.exp(q2 + spread * np.sqrt(q2)) + total - many)


def attention_nu(q2: Any, spread: float, many: float, total: float) -> Any:
    """nu_n(t) = 1/(|S_1| exp(||q||^2 - (delta+tau)||q||) + |S| - |S_1|) (Definition 1, printed with |S_1|-|S_1|)."""
    return 1 / (many * np.exp(q2 - spread * np.sqrt(q2)) + total - many)


def relevant_attention_printed(q2: Any, spread: float, many: float, total: float) -> Any:
    """p_n(t) = |S_1| exp(||q||^2 - (delta+tau)||q||) nu_n(t): the printed lower bound ([P] 195; (28) and (43) say the
    same) for the attention that a relevant token pays to the relevant tokens. It is not a bound: errors enter the
    logit twice."""
    return many * np.exp(q2 - spread * np.sqrt(q2)) * attention_nu(q2, spread, many, total)


def relevant_attention_ceiling(q2: Any, spread: float, many: float, total: float) -> Any:
    """1 - phi_n(t)(|S| - |S_1|): the printed upper bound of the same attention, from ([P] 128)."""
    return 1 - attention_phi(q2, spread, many, total) * (total - many)


def relevant_attention_bound(q2: Any, spread: float, many: float, total: float) -> Any:
    """The lower bound that holds: with |n|, |o| <= D = delta+tau, a relevant logit is at least ||q||^2 - 2 D||q|| -
    D^2 and any other at most 2 D||q|| + D^2, so the gap is ||q||^2 - 4 D||q|| - 2 D^2."""
    gap = np.exp(q2 - 4 * spread * np.sqrt(q2) - 2 * spread**2)
    return many * gap / (many * gap + total - many)


def initial_attention(relevant: float, own: float | None = None) -> float:
    """Attention on the relevant tokens at the start for delta = tau = 0 and q_j = r_j for all j.

    A relevant token pays alpha_* e/(alpha_* e + 1 - alpha_*); a token of another pattern, whose own fraction is `own`, pays
    alpha_*/(own e + 1 - own).
    """
    if own is None:
        return relevant * math.e / (relevant * math.e + 1 - relevant)
    return relevant / (own * math.e + 1 - own)


def key_norm_squared(steps: int, learning_rate: float, spread: float, start: float = 1.0) -> np.ndarray:
    """||q_1(t)||^2 for t = 0..steps under q^2 <- (1 + K) q^2 with K at its late size, eta exp(-(||q||^2 - (delta+tau)||q||))
    ([P] 57): it grows as log t ([P] 60)."""
    path = np.empty(steps + 1)
    path[0] = start
    for t in range(steps):
        late = learning_rate * math.exp(-(path[t] - spread * math.sqrt(path[t])))
        path[t + 1] = path[t] * (1 + late)
    return path


# Neurons and values ----------------------------------------------------------------------------------------------------


def neuron_growth(
    steps: np.ndarray,
    learning_rate: float,
    relevant: float,
    attention: float,
    disorder: float,
    neurons: int,
    start: float,
) -> np.ndarray:
    """w_i . p_1 of a lucky neuron as the solution of y' = A + B t y, y(0) = start:

    y(t) = exp(B t^2/2) [start + A sqrt(pi/(2B)) erf(t sqrt(B/2))], A = (eta/a)(alpha_* p - (sigma+tau)), B = eta^2
    alpha_*^2 p/2 (from [P] 95 with m/a^2 = 1, without its last factors). [T] A.87 has one eta less in A and B."""
    push = learning_rate / math.sqrt(neurons) * (relevant * attention - disorder)
    pull = learning_rate**2 * relevant**2 * attention / 2
    t = np.asarray(steps, float)
    integral = math.sqrt(math.pi / (2 * pull)) * scipy.special.erf(t * math.sqrt(pull / 2))
    return np.exp(pull * t**2 / 2) * (start + push * integral)


def early_neuron_slope(
    learning_rate: float, neurons: int, attention: float, rival_attention: float = 0.0
) -> float:
    """d(w_i . p_1)/dt of an active neuron with positive shared output weight, per step: (eta/sqrt(m)) times half the
    difference of the mean attention on S_1 over all tokens of positive and of negative samples ([P] 91 without its
    order signs)."""
    return learning_rate / math.sqrt(neurons) * (attention - rival_attention) / 2


def neuron_norm_bound(time: Any, patterns: int, hidden_std: Any) -> Any:
    """||w_i||^2 <= M xi^2 + (eta t)^4 for lucky neurons ([P] 34 with m/a^2 = 1), `time` being eta t; at time 0 the
    bound for the others ([P] 42)."""
    return patterns * hidden_std**2 + time**4


def value_coefficient(relevant: float, attention: Any, neurons: int) -> Any:
    """-V_i(t) >= alpha_* p/(4a) of a lucky neuron ([T] A.16: the sum over the positive half of a batch is half of its
    mean; [P] 29 prints 1/(mL) for 1/(a|S|)). For the neurons of pattern 2, (30) prints the other sign: with negative
    output weights and negative labels their V_i is negative too."""
    return relevant * attention / (4 * math.sqrt(neurons))


def unlucky_value_bound(batch: int, neurons: int, patterns: int) -> float:
    """|V_i(t)| <= 1/(sqrt(B) a M) of the other neurons ([T] A.18; [P] 199 has no M)."""
    return 1 / (math.sqrt(batch * neurons) * patterns)


def unlucky_value_printed(batch: int, neurons: int) -> float:
    """-V_i(t) <= 1/(sqrt(B) m) of the other neurons ([P] 31). It falls as 1/m, where every -V_i falls as 1/sqrt(m)."""
    return 1 / (math.sqrt(batch) * neurons)


# Lucky neurons at the start --------------------------------------------------------------------------------------------


def lucky_share_printed(patterns: int, disorder: float, width_slack: float = 0.0) -> float:
    """|W(0)|/m >= (1 - epsilon - (sigma+tau) M/pi)/M ([P] 208). It takes angles to be uniform on the circle, which
    they are in two dimensions only."""
    return (1 - width_slack - disorder * patterns / math.pi) / patterns


def lucky_share_active(disorder: float, value_dim: int) -> float:
    """A lower bound for the share of neurons that are active on c_l despite an error sigma+tau: the cap of angle pi/2 -
    (sigma+tau) ([T] A.189). At sigma+tau = 0 it is 1/2."""
    return cap_share(value_dim, math.pi / 2 - disorder)


def lucky_share_nearest(patterns: int, disorder: float) -> float:
    """The share of neurons whose largest inner product among M orthonormal features is with p_1, even with margin ([P] 220).

    w . p_j are independent normal numbers, so it is the integral of their density times Phi(ratio g)^(M-1), with ratio =
    (1-(sigma+tau))/(1+(sigma+tau)), split at zero where the margin turns round; 1/M without margin.
    """
    ratio = (1 - disorder) / (1 + disorder)
    node, weight = np.polynomial.legendre.leggauss(400)
    g = 8 * node
    density = np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi) * 8 * weight
    return float(np.sum(density * scipy.special.ndtr(ratio * g) ** (patterns - 1)))
