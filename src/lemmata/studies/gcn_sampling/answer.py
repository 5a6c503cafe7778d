"""How many labelled nodes a training needs, in plain English."""

from typing import Any

from lemmata.answer import OUT_OF_REACH, Answer, needed
from lemmata.studies.gcn_sampling.theory import theorem


def success(trial: Any) -> bool:
    """Whether there are as many labelled nodes as the measured law asks for."""
    return trial.labels >= theorem.labels_needed(theorem.sizes_of(trial).norm)


def sentence(trial: Any) -> str:
    s, law = theorem.sizes_of(trial), theorem.measured()
    own, printed = theorem.labels_needed(s.norm), theorem.label_complexity(s)
    bound = "is vacuous" if printed > OUT_OF_REACH else f"asks for {needed(printed, 'labelled nodes')}"
    return (
        f"You need {needed(own, 'labelled nodes')} for a normalised error of {law['error']:g}, by a law measured "
        f"at 100 neurons, which missed degree profiles held out by a factor of {law['held_out_factor']:.3g}; "
        f"(5.18) with constant 1 {bound}. "
        f"Here there are {trial.labels:,}."
    )


ANSWER = Answer(
    sentence,
    success,
    goal="enough labelled nodes",
    inputs=("labels", "graph.degrees", "graph.sizes", "scaling", "rates", "width", "graph.features"),
    main=("norm of A*, the largest row", "c_1 that p* takes", "labelled nodes for a normalised error"),
    counts=("labelled nodes",),
    claims=("labels-norm", "twin-error"),
)
