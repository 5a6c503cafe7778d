"""The trials of this study: trainings (`training`), trainings inside the theorems' conditions from zero (`guaranteed`)
and after the first step (`second_phase`), and what needs no long training: on the mixture (`mixture`) and at random
points (`inequalities`)."""

from lemmata.studies.multihead.trials.guaranteed import Guaranteed
from lemmata.studies.multihead.trials.inequalities import INEQUALITIES, Looseness, RandomHeads
from lemmata.studies.multihead.trials.mixture import FirstPhase, Realizing, Saturation
from lemmata.studies.multihead.trials.second_phase import SecondPhase
from lemmata.studies.multihead.trials.training import Training

__all__ = [
    "INEQUALITIES",
    "FirstPhase",
    "Guaranteed",
    "Looseness",
    "RandomHeads",
    "Realizing",
    "Saturation",
    "SecondPhase",
    "Training",
]
