"""What a planned training needs for the theorems to hold, in plain English."""

from math import isfinite, log

from lemmata.answer import Answer, needed
from lemmata.studies.multihead.theory import bounds as general
from lemmata.studies.multihead.theory.forecast import Forecast


def _theorem(q: Forecast) -> tuple[float, float, float]:
    """Heads that Theorem 1 asks for, the largest step size that it allows, and its bound on the mean training loss."""
    data = general.DataBounds(q.dim, q.tokens, q.radius)
    head_norm = q.head_norm or q.distance / q.heads**0.5
    target = general.Target(q.distance, head_norm, q.target_loss, q.start_loss)
    heads = (
        general.equal_heads_required(data, q.distance, general.TRAINING_HEADS)
        if q.head_norm == 0
        else general.required_heads(data, target, general.TRAINING_HEADS)
    )
    step = min(general.step_limits(data, target, q.heads, q.steps).values())
    return heads, step, general.training_bound(target, q.step_size, q.steps)


def success(question: Forecast) -> bool:
    """Whether the conditions of Theorem 1 hold and its bound lies below the loss at the start."""
    heads, step, bound = _theorem(question)
    return question.heads >= heads and question.step_size <= step and bound < question.start_loss


def sentence(question: Forecast) -> str:
    heads, step, bound = _theorem(question)
    far = not isfinite(heads)
    asked = "more heads than can be counted" if far else needed(heads, "heads")
    met = question.heads >= heads and question.step_size <= step
    have = f"{question.heads:.3g} heads and steps of {question.step_size:.3g}"
    state = f"With {have} its conditions {'hold' if met else 'do not hold'}"
    promise = f"the mean training loss is then at most {bound:.3g}"
    vacuous = (
        f", which is vacuous: the loss starts at {question.start_loss:.3g}"
        if bound >= question.start_loss
        else ""
    )
    return (
        f"You need {asked} and a step size of at most {step:.3g} for Theorem 1. {state}; {promise}{vacuous}."
    )


ANSWER = Answer(
    sentence,
    success,
    goal="Theorem 1 promises a falling loss",
    inputs=("heads", "step_size", "steps", "samples", "dim", "tokens", "radius", "distance", "target_loss"),
    main=("heads that Theorem 1", "largest step size allowed", "if they are met: mean training loss"),
    counts=("heads that", "mixture: heads", "Corollary 2: heads"),
    useless_from={
        "if they are met: mean training loss": log(2),
        "if they are met: expected generalisation gap": log(2),
        "if they are met: attention weights": 1.0,
        "Corollary 2: training loss": log(2),
        "Corollary 2: gap": log(2),
    },
    claims=("training-theorem", "gap-theorem"),
)
