"""Transfer in formulas (Section 5, Appendix F): what few samples of a new task give, with the groups known and without."""

import math

import numpy as np
import scipy

from lemmata.studies.spatial_structure.theory.events import TiedScores
from lemmata.studies.spatial_structure.theory.images import glm_error, law_of_sum


def one_step_cosine(D, C: int, samples, noise: float = 1.0):
    """Alignment of one normalised gradient step with the new feature: `C / sqrt(C^2 + D noise^2 / N~)`.

    The direction does not depend on the attention; `noise` is `sigma sqrt(d)`.
    """
    return C / np.sqrt(C**2 + D * noise**2 / samples)


def transfer_snr(D: int, C: int, d: int, cosine: float, scores: TiedScores) -> float:
    """`c1 G sqrt(d) / (D sqrt(sum_j S_ij^2))`: signal over patch noise at a signal row; about 3 is needed."""
    spread = math.sqrt(scores.self_score**2 + (C - 1) * scores.same**2 + (D - C) * scores.cross**2)
    return cosine * scores.gain * math.sqrt(d) / (D * spread)


def sign_error(D: int, C: int, q: float, samples: int) -> float:
    """How often one gradient step points away from the feature, exactly: `P[N~ C + T < 0] + P[N~ C + T = 0] / 2` with `T` the
    sum of `N~ (D - C)` spurious coefficients.

    With the groups known and patch noise averaged out (`d` large) this is the whole error: a network that points the right
    way is nearly always right, one that points the wrong way nearly always wrong. About `Phi(-C sqrt(N~ / (q (D - C))))`.
    """
    values, law = law_of_sum(samples * (D - C), q)
    total = values + samples * C
    return float(law[total < 0].sum() + 0.5 * law[total == 0].sum())


def sign_samples(C: int, spurious: float, target: float) -> float:
    """The samples at which `sign_error` falls to the target, by the normal law: `(Phi^-1(target) / C)^2 q (D - C)`."""
    return float(scipy.special.ndtri(target) ** 2 * spurious / C**2)


def unseen_groups(D: int, C: int, samples):
    """Expected share of groups that were never the signal group: `(1 - 1/L)^N~`."""
    return (1 - C / D) ** samples


def unassociated_error_floor(D: int, C: int, q: float, samples):
    """A heuristic reading of Theorem 5.2: on unseen groups a learner without the partition errs at least `(1 - TV) / 2`,
    with `TV` between planting +1's and -1's; that is the error of the equal-weight vote."""
    return unseen_groups(D, C, samples) * glm_error(D, C, q)


def coupon_error(D: int, C: int, q: float, samples: float) -> float:
    """Error of a learner that is told the feature and finds a group once it has seen it twice: coupon collecting.

    A share `u = P[Bin(N~, 1/L) <= 1]` of the groups is unresolved: one sighting cannot be told from the many pairs that agree
    once by chance (their number does not fall with D as long as q D does not), two can for large D. A position of a resolved
    group then has a vote in `C` rows, one of an unresolved group in its own, and in `(C-1) u` more that took it by lot. On an
    image whose signal group is unresolved the vote is linear with these weights, and the spurious ones outvote it by the normal
    law.
    """
    seen = C / D
    unresolved = (1 - seen) ** (samples - 1) * (
        1 - seen + samples * seen
    )  # of a binomial count, also between integers
    strays = (C - 1) * unresolved
    variance = q * (D - C) * ((1 - unresolved) * (C + strays) ** 2 + unresolved * (1 + strays) ** 2)
    return (
        unresolved * float(scipy.special.ndtr(-C * (1 + strays) / math.sqrt(variance)))
        if variance > 0
        else 0.0
    )


def coupon_samples(D: int, C: int, q: float, target: float) -> float:
    """The samples at which `coupon_error` falls to the target; over `L` it tends to a constant as D grows with q D."""
    groups = D / C
    if coupon_error(D, C, q, 2) <= target:
        return 2.0
    rate = scipy.optimize.brentq(lambda x: coupon_error(D, C, q, x * groups) - target, 2 / groups, 40)
    return float(rate) * groups  # pyright: ignore[reportArgumentType]
