"""Sampling by degree groups: which scalings and rates the document admits, what the sampled matrix is on average and how far
a draw lies from it. Exact where a name says so; NumPy and SciPy, float64."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sparse

from lemmata.errors import require

Numbers = Sequence[float] | np.ndarray


def dominance(degrees: Numbers, sizes: Numbers) -> np.ndarray:
    """`psi_l = sqrt(d_L d_l) N_l / sum_i d_i N_i` (5.9), d_L the largest degree whatever the order of the groups.

    >>> dominance((10, 1), (100, 1900)).round(3).tolist()
    [0.345, 2.072]
    """
    d, n = np.asarray(degrees, float), np.asarray(sizes, float)
    return np.sqrt(d.max() * d) * n / (d @ n)


def pair_dominance(degrees: Numbers, sizes: Numbers) -> np.ndarray:
    """`Psi(n, i) = sqrt(d_n / d_i) d_i N_i / sum_l d_l N_l` (D.7): the row of a node of group n sums to this over group i."""
    d, n = np.asarray(degrees, float), np.asarray(sizes, float)
    return np.sqrt(d[:, None] / d) * d * n / (d @ n)


def max_scaling(degrees: Numbers, sizes: Numbers, constant: float = 1.0) -> np.ndarray:
    """The largest admissible `p*_l = c_1 / (L psi_l)` (5.8)."""
    psi = dominance(degrees, sizes)
    return constant / (len(psi) * psi)


def min_rate(degrees: Numbers, sizes: Numbers, scaling: Numbers, constant: float) -> np.ndarray:
    """The smallest admissible `S_l/N_l = (1 + c_1 poly(eps) / (L p*_l psi_l))^-1` (5.10); `constant` is c_1 poly(eps)."""
    psi, p = dominance(degrees, sizes), np.asarray(scaling, float)
    return len(psi) * p * psi / (len(psi) * p * psi + constant)


def implied_scale_constant(degrees: Numbers, sizes: Numbers, scaling: Numbers) -> float:
    """The c_1 that just admits a scaling: `max_l L p*_l psi_l`."""
    psi = dominance(degrees, sizes)
    return float(np.max(len(psi) * np.asarray(scaling, float) * psi))


def implied_rate_constant(degrees: Numbers, sizes: Numbers, scaling: Numbers, rates: Numbers) -> float:
    """The c_1 poly(eps) that just admits sampling rates: `max_l (N_l/S_l - 1) L p*_l psi_l`."""
    psi, rate = dominance(degrees, sizes), np.asarray(rates, float)
    return float(np.max((1 / rate - 1) * len(psi) * np.asarray(scaling, float) * psi))


def symmetric_max_scaling(degrees: Numbers, sizes: Numbers, constant: float = 1.0) -> np.ndarray:
    """`p*_l = c_2 / (L psi_l)^2` (D.16)."""
    psi = dominance(degrees, sizes)
    return constant / (len(psi) * psi) ** 2


def symmetric_min_rate(degrees: Numbers, sizes: Numbers, scaling: Numbers, constant: float) -> np.ndarray:
    """`S_l/N_l = (1 + c_2 poly(eps) / (L sqrt(p*_l) psi_l))^-2` (D.17)."""
    psi, p = dominance(degrees, sizes), np.asarray(scaling, float)
    return (len(psi) * np.sqrt(p) * psi / (len(psi) * np.sqrt(p) * psi + constant)) ** 2


def sample_sizes(sizes: Numbers, rates: Numbers) -> np.ndarray:
    """S_l: the rate times N_l to the nearest whole number, at least 1."""
    for rate in rates:
        require(0 < rate <= 1, f"a sampling rate S_l/N_l lies in (0, 1], not {rate}.")
    return np.maximum(1, np.round(np.asarray(sizes, float) * np.asarray(rates, float))).astype(int)


def rates_of(samples: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """S_l/N_l of given numbers of samples."""
    for s, n in zip(samples, sizes, strict=True):
        require(1 <= s <= n, f"{s} of the {n} nodes of a group cannot be sampled; it takes 1 to {n}.")
    return np.asarray(samples, float) / np.asarray(sizes, float)


# Row sums --------------------------------------------------------------------------------------------------------------


def row_sum_printed(degrees: Numbers, sizes: Numbers, scaling: Numbers) -> float:
    """`|A*|_inf` by (D.8), without self-loops: `sum_l p*_l psi_l`."""
    return float(np.asarray(scaling, float) @ dominance(degrees, sizes))


def row_sum(degrees: Numbers, sizes: Numbers, scaling: Numbers) -> float:
    """A typical row of A* of the highest degree h, self-loops counted (mended):
    `p_h/(d_h + 1) + sum_l p_l d_h d_l N_l / (sum_i d_i N_i sqrt((d_h + 1)(d_l + 1)))`. The largest row is higher."""
    d, n, p = (np.asarray(x, float) for x in (degrees, sizes, scaling))
    h = int(np.argmax(d))
    return float(p[h] / (d[h] + 1) + np.sum(p * d[h] * d * n / (d @ n * np.sqrt((d[h] + 1) * (d + 1)))))


def max_row_sum(matrix: sparse.csr_array) -> float:
    """`|A|_inf`, the largest row sum of absolute values."""
    return float(np.max(abs(matrix).sum(1)))


def imbalance(matrix: sparse.csr_array, group_of: np.ndarray) -> float:
    """The sum of the columns of the group with most weight over that of the group with least: how far a group dominates."""
    weight = np.bincount(group_of, weights=np.asarray(abs(matrix).sum(0)).ravel())
    return float(weight.max() / weight.min())


# The sampled matrix, exactly --------------------------------------------------------------------------------------------


def effective(
    matrix: sparse.csr_array, group_of: np.ndarray, scaling: Numbers, symmetric: bool = False
) -> sparse.csr_array:
    """`A* = A P*` (5.6), or `P* A P*` with roots (D.14)."""
    p = np.asarray(scaling, float)[group_of]
    if symmetric:
        root = sparse.diags_array(np.sqrt(p))
        return sparse.csr_array(root @ matrix @ root)
    return sparse.csr_array(matrix @ sparse.diags_array(p))


def entry_variance(
    matrix: sparse.csr_array, group_of: np.ndarray, scaling: Numbers, rates: Numbers
) -> sparse.csr_array:
    """`Var A^s_nj = (p*_l A_nj)^2 (N_l/S_l - 1)`, exactly; the mean is A*, exactly."""
    spread = sparse.diags_array((1 / np.asarray(rates, float) - 1)[group_of])
    return sparse.csr_array(effective(matrix, group_of, scaling).power(2) @ spread)


def row_deviation(
    matrix: sparse.csr_array, group_of: np.ndarray, scaling: Numbers, rates: Numbers
) -> np.ndarray:
    """`E |a^s_n - a*_n|_1 = 2 sum_l p*_l (1 - S_l/N_l) sum_{j in l} A_nj`, exactly, row by row."""
    lost = np.asarray(scaling, float) * (1 - np.asarray(rates, float))
    return 2 * np.asarray(matrix @ lost[group_of])


def loop_deviation(matrix: sparse.csr_array, scaling: Numbers, group_of: np.ndarray) -> float:
    """The largest `p*_n A_nn`: what one lost self-loop costs a row, whatever the rate. `|A^s - A*|_inf` stays above it while
    any such node is left out, so that it does not fall to zero with 1 - S/N (against Lemma D.1.2)."""
    return float(np.max(np.asarray(scaling, float)[group_of] * matrix.diagonal()))


def symmetric_mean(
    matrix: sparse.csr_array,
    group_of: np.ndarray,
    scaling: Numbers,
    samples: Sequence[int],
    sizes: Sequence[int],
) -> sparse.csr_array:
    """`E A^s` of the symmetric sampler as printed, exactly: A* on the diagonal, elsewhere A* times the chance that both ends
    are drawn over sqrt(S_u S_k / (N_u N_k)): it is biased."""
    rate = rates_of(samples, sizes)
    s, n = np.asarray(samples, float), np.asarray(sizes, float)
    pair = np.outer(rate, rate)
    np.fill_diagonal(pair, rate * (s - 1) / np.maximum(n - 1, 1))
    bias = pair / np.sqrt(np.outer(rate, rate))
    star = effective(matrix, group_of, scaling, symmetric=True).tocoo()
    factor = np.where(star.row == star.col, 1.0, bias[group_of[star.row], group_of[star.col]])
    return sparse.csr_array((star.data * factor, (star.row, star.col)), shape=star.shape)


def dependency_degree(graph: sparse.csr_array, hops: int) -> int:
    """The most nodes that lie within `2 hops` of one node: how many labels can share a feature when each looks `hops` far. The
    document has (1 + delta)^4, which is two hops; (5.12) looks three far."""
    nodes = len(graph.indptr) - 1
    reach = sparse.csr_array(sparse.eye_array(nodes))
    step = sparse.csr_array(graph.astype(float) + reach)
    for _ in range(2 * hops):
        reach = sparse.csr_array((reach @ step) > 0).astype(float)
    return int(reach.sum(1).max())
