"""The theorems as functions: `bounds` (general data), `mixture` (the token mixture), their `conditions` at a trial, and what they
say before anything is trained (`predict`)."""

from lemmata.studies.multihead.theory.conditions import (
    after_first_phase,
    bounded_noise,
    bounded_tokens,
    corollary_2,
    good_start,
    margin_order,
    realizability,
    saturation,
    separability,
    theorem_1,
    theorem_2,
)
from lemmata.studies.multihead.theory.forecast import predict

__all__ = [
    "after_first_phase",
    "bounded_noise",
    "bounded_tokens",
    "corollary_2",
    "good_start",
    "margin_order",
    "predict",
    "realizability",
    "saturation",
    "separability",
    "theorem_1",
    "theorem_2",
]
