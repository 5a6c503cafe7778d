"""The ledger: the numbered statements of the paper, and what each is held against."""

from lemmata.study import Statement

LEDGER = (
    Statement(
        "(5)",
        "tau W' = -(1/2) dL/dW",
        function="network.flow",
        held_against="claim sampled-rate, claim sampled-time",
    ),
    Statement(
        "(9), (11)",
        "Merged heads have two sets of fixed points: zero, and the global minimum A*",
        function="theory.best",
        held_against="claim merged-limit, claim one-drop",
    ),
    Statement(
        "(10)",
        "White data, small start: A = sigma(t) I with a logistic sigma",
        "for an aligned start; a drawn start is late by a constant",
        "theory.half_time",
        "claim merged-time",
    ),
    Statement(
        "Section 3",
        "The drop comes after about tau ln(1/w_init) / ||Lambda^2||_F",
        function="theory.escape_rate",
        held_against="claim escape-slope",
    ),
    Statement("(15)", "E[Lhat^2] = Lambda^2 + (Lambda + tr(Lambda) I) Lambda / N", function="network.loss"),
    Statement(
        "(16) to (18)",
        "2^D fixed points in function space, A = sum over a set of a_d e_d e_d^T",
        "eigenvalues must be distinct: with equal ones every a u u^T with a unit u of their space is a fixed point",
        "theory.best",
        "claim fixed-points, claim fixed-points-distinct",
    ),
    Statement(
        "Section 4.2",
        "From a small start M_0, M_1, ..., M_D are visited in the order of the eigenvalues",
        "where the eigenvalues are at least 1.5 apart; nearer ones are learned out of order in some runs",
        "theory.blow_up",
        "claim order-of-eigenvectors, claim order-and-start, claim plateau-visited",
    ),
    Statement(
        "(19)",
        "The loss at M_m is tr Lambda - sum_{d <= m} lambda_d / (1 + (1 + tr(Lambda)/lambda_d)/N)",
        function="theory.plateaus",
        held_against="claim plateaus-at-19, claim end-at-minimum",
    ),
    Statement(
        "(20)",
        "Each eigenvector is learned by one head, with |v| = |k| = |q| = a_d^(1/3)",
        "",
        "theory.head_sizes",
        "claim head-norms, claim one-head-each",
    ),
    Statement(
        "(21)",
        "tau v' = lambda^2 v^2 - lambda^3 (1 + (1 + tr(Lambda)/lambda)/N) v^5; plateaus last for a time of order lambda^-2",
        function="theory.size_at, theory.plateau_ends",
        held_against="claim ode-21, claim plateau-exponent, claim plateau-ends",
    ),
    Statement(
        "(22)",
        "Early stopping is principal component regression in context",
        held_against="claim early-stopping",
    ),
    Statement("Section 5", "With rank R only every R-th plateau is long", held_against="claim rank-plateaus"),
    Statement(
        "Appendix E.8",
        "v_i^2 - sum_r |k_ir|^2 and |k_ir|^2 - |q_ir|^2 are conserved",
        held_against="claim conserved",
    ),
)
