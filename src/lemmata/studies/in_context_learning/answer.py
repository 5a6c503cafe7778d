"""How many tasks and contexts in-context learning needs, in plain English."""

from typing import Any

from lemmata.answer import Answer, needed
from lemmata.errors import require
from lemmata.studies.in_context_learning import theory

SMALL = 0.05
"""The error that counts as success."""


def _error(trial: Any) -> float:
    """The error of the vote at the first test fraction and the longest test prompt."""
    require(bool(trial.test.fractions), "test.fractions is empty; name a fraction alpha' to predict for.")
    return theory.vote_error(trial.test.fractions[0], max(trial.test.lengths))


def success(trial: Any) -> bool:
    """Whether the training tasks are enough and the vote errs at most as often as `SMALL`."""
    tasks = trial.data.task_count
    return (tasks == 0 or tasks >= theory.least_tasks(trial.data.relevant)) and _error(trial) <= SMALL


def sentence(trial: Any) -> str:
    fraction, length, error = (
        trial.test.fractions[0] if trial.test.fractions else 0.0,
        max(trial.test.lengths),
        _error(trial),
    )
    contexts, certain = theory.vote_length(fraction, SMALL), theory.test_length(fraction)
    return (
        f"You need {theory.least_tasks(trial.data.relevant)} training tasks, and {contexts} contexts "
        f"for an error of {SMALL:.0%} on unseen tasks, by the law of the vote; "
        f"the theorem asks for {needed(certain, 'contexts')}. "
        f"With {length} contexts the error is about {error:.2g}."
    )  # fmt: skip


ANSWER = Answer(
    sentence,
    success,
    goal="errs on at most 5 % of unseen tasks",
    inputs=("data.relevant", "data.task_count", "data.relevant_fraction", "test.fractions", "test.lengths", "neurons"),
    main=("training tasks needed", "test prompt length for an error", "error at"),
    counts=("training tasks needed", "training prompt length", "test prompt length", "iterations", "neurons"),
    claims=("vote", "tasks-suffice"),
)  # fmt: skip
