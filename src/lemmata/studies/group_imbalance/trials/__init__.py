"""The trials of the study: gradient descent from one start (`descents`), limits from many starts (`starts`), tensor
initialisation and then descent (`tensor`), and what takes no training (`exact`)."""

from lemmata.studies.group_imbalance.trials.descents import Descents
from lemmata.studies.group_imbalance.trials.exact import Ball, Deviations, Exact, Lemma
from lemmata.studies.group_imbalance.trials.starts import Starts
from lemmata.studies.group_imbalance.trials.tensor import (
    Initialised,
    inverted_magnitude,
    leading_subspace,
    tensor_initialisation,
)

__all__ = [
    "Ball",
    "Descents",
    "Deviations",
    "Exact",
    "Initialised",
    "Lemma",
    "Starts",
    "inverted_magnitude",
    "leading_subspace",
    "tensor_initialisation",
]
