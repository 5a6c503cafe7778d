"""How many examples a chain of thought needs, and in-context learning, in plain English."""

from typing import Any

from lemmata.answer import Answer
from lemmata.studies.chain_of_thought import theory

SMALL = 0.05
"""The error that counts as success."""

LENGTHS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def _length(trial: Any, name: str) -> int | None:
    """The shortest prompt from which on the error stays below `SMALL`; None if it is longer than 128 examples."""
    errors = [theory.predicted_errors(trial, n)[name] for n in LENGTHS]
    enough = [n for i, n in enumerate(LENGTHS) if max(errors[i:]) < SMALL]
    return enough[0] if enough else None


def success(trial: Any) -> bool:
    """Whether a chain of thought errs on less than `SMALL` of the prompts, at the longest test prompt."""
    return theory.predicted_errors(trial, max(trial.test.lengths))["cot_error"] < SMALL


def sentence(trial: Any) -> str:
    chain, context = _length(trial, "cot_error"), _length(trial, "icl_error")
    q = theory.test_quality(trial)
    first = (
        f"A chain of thought needs {chain} examples"
        if chain
        else "A chain of thought needs more than 128 examples"
    )
    if q.right_rows < 1:
        second = (
            "in-context learning fails at any length: "
            f"the likeliest label is wrong for {1 - q.right_rows:.0%} of the inputs"
        )
    else:
        second = (
            f"in-context learning needs {context}" if context else "in-context learning needs more than 128"
        )
    return f"{first} for an error of {SMALL:.0%}, {second}; both by the law of the vote."


ANSWER = Answer(
    sentence,
    success,
    goal="the chain of thought errs on less than 5 %",
    inputs=(
        *(
            "test.match_fraction",
            "test.trajectory",
            "test.primacy",
            "test.errors",
            "test.lengths",
            "data.steps",
        ),
        "data.patterns",
    ),
    main=("examples for a chain-of-thought error", "examples for an in-context error", "examples, Theorem 4"),
    counts=("examples", "iterations"),
    claims=("cot-vote", "icl-vote"),
)
