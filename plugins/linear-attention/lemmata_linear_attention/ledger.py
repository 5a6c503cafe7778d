"""The ledger: the numbered statements of the paper, and what each is held against."""

from lemmata.study import Statement

LEDGER = (
    Statement("(15)", "E[Lhat^2] = Lambda^2 + (Lambda + tr(Lambda) I) Lambda / N", function="network.loss"),
    Statement(
        "(16) to (18)",
        "2^D fixed points in function space, A = sum over a set of a_d e_d e_d^T",
        "eigenvalues must be distinct: with equal ones every a u u^T with a unit u of their space is a fixed point",
        "theory.best",
        "claim order-of-eigenvectors",
    ),
    Statement(
        "(19)",
        "The loss at M_m is tr Lambda - sum_{d <= m} lambda_d / (1 + (1 + tr(Lambda)/lambda_d)/N)",
        function="theory.plateaus",
        held_against="claim plateaus-at-19, claim end-at-minimum",
    ),
    Statement(
        "(20a)", "Learned heads have |v| = |k| = |q| = a_d^(1/3)", "", "theory.head_sizes", "claim head-norms"
    ),
)
