"""What the paper says: light data, one place for each claim."""

from lemmata.study import Claim, Statement

CLAIMS = (
    Claim(
        id="steps-rate",
        statement="The number of steps to a given loss goes as the step size to the power -1 (Theorem 1)",
        figure="steps",
        reference="Theorem 1",
        kind="law",
        predicted="-1",
        value=-1.0,
        tolerance=(-1.1, -0.9),
        reason="A tenth keeps -1 apart from -1/2 and -2.",
        measure="steps_exponent",
        conditions="stable",
    ),
)

LEDGER = (
    Statement(
        "Theorem 1",
        "After log(1/eps) / (2 eta h) steps the loss is eps times the first one",
        "the logarithm of 1/(1 - eta h)^2 in place of 2 eta h",
        "theory.steps_needed",
        "claim steps-rate",
    ),
)
