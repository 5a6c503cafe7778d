"""The ledger: the numbered statements of the paper, and what each is held against."""

from lemmata.study import Statement

LEDGER = (
    Statement(
        "Lemma 1",
        "Each step multiplies the loss by (1 - eta h)^2",
        function="theory.factor",
        held_against="claim factor-of-a-step",
    ),
    Statement(
        "Theorem 1",
        "After log(1/eps) / (2 eta h) steps the loss is eps times the first one",
        "the logarithm of 1/(1 - eta h)^2 in place of 2 eta h",
        "theory.steps_needed",
        "claim steps-rate",
    ),
)
