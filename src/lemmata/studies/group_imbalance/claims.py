"""What the document claims, as light data; and the ledger of its numbered statements."""

from math import inf
from typing import Any

from lemmata.study import Claim, Statement

RISES, FALLS = (0.0, inf), (-inf, 0.0)
DIRECTION = "Kendall's tau within seeds: above 0 it rises, below 0 it falls; only the sign is claimed."
HALF = "A tenth tells n^-1/2 from n^-1/3 and n^-2/3; log n changes the exponent by about 0.05 over the grid."


def _direction(falls: bool) -> dict[str, Any]:
    return {
        "kind": "order",
        "predicted": "falls" if falls else "rises",
        "tolerance": FALLS if falls else RISES,
        "reason": DIRECTION,
    }


# Convergence and error (P1, P2) ------------------------------------------------------------------------------------------

CONVERGENCE = (
    Claim(
        "linear-convergence",
        "Gradient descent converges linearly to W_n: log|W_t - W_n| is affine in t (P1, 4.8; Figure 4.4a)",
        figure="fig4-4a", reference="Theorem 2, (4.8)", kind="for-all", predicted="R^2 of a straight line at least 0.98",
        tolerance=(0.98, 1.0 + 1e-9), reason="The last three decades of each run that came within 1e-6 of W_n, where the slowest direction is alone.",
        measure="straightness", region="near", conditions="conditions",
    ),
    Claim(
        "contraction-bound",
        "Near W_n every step shrinks the distance at least by 1 - eta0 lambda_min of the empirical Hessian (C.232)",
        figure="fig4-4a", reference="(C.232)", kind="for-all", predicted="(1 - v) / (eta0 lambda_min) at least 1",
        tolerance=(0.98, inf), reason="Two per cent for rounding; runs within 1e-8 of W_n, where the Hessian is that of W_n.",
        measure="contraction_ratio", region="arrived", conditions="conditions",
    ),
    Claim(
        "contraction-exact",
        "In the end every step shrinks the distance by 1 - eta0 lambda_min of the empirical Hessian (C.232, asymptotically)",
        figure="fig4-4a", reference="(C.232)", kind="for-all", predicted="(1 - v) / (eta0 lambda_min) = 1",
        tolerance=(0.98, 1.02), reason="Two per cent; only runs within 1e-8 of W_n in which the next slowest direction has lost a "
        "factor 100 against the slowest.",
        measure="contraction_ratio", region="settled", conditions="conditions",
    ),
    Claim(
        "rate-fisher",
        "1 - v is lambda_min / lambda_max of the Fisher information (maximum likelihood)",
        figure="fig4-4a", reference="sharp asymptotics", kind="law", predicted="ratio 1", value=1.0, tolerance=(0.8, 1.25),
        reason="lambda_min of the Hessian at W_n fluctuates by tens of per cent a run at n = 1e4; the mean is claimed.",
        measure="rate_ratio", region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "error-samples",
        "|W_n - W* P|_F falls as n^-1/2 up to a logarithm (P1, 4.10; Figure 4.5b)",
        figure="fig4-5b", reference="Theorem 2, (4.10)", kind="law", predicted="-1/2", value=-0.5, tolerance=(-0.6, -0.4),
        reason=HALF, measure="error_exponent", region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "error-constant",
        "n E|W_n - W* P|_F^2 is tr I(W*)^-1 (maximum likelihood)",
        figure="fig4-5b", reference="sharp asymptotics", kind="law", predicted="ratio 1", value=1.0, tolerance=(0.75, 1.33),
        reason="The largest half of the grid of n; second-order terms fall as 1/n and a quarter leaves room for them.",
        measure="error_ratio", region="many_samples", conditions="conditions",
    ),
    Claim(
        "risk-samples",
        "The average excess risk falls at least as n^-1/2 (P1, 4.11, read for the excess)",
        figure="fig4-5b", reference="Theorem 2, (4.11)", kind="bound", predicted="at most -1/2", value=-0.5,
        tolerance=(-inf, -0.5), reason="An upper bound; maximum likelihood says -1.",
        measure="risk_exponent", region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "average-excess",
        "The average excess risk is dK / (2n), whatever the covariance of the minority (maximum likelihood)",
        figure="fig4-6a", reference="sharp asymptotics", kind="law", predicted="ratio 1", value=1.0, tolerance=(0.85, 1.2),
        reason="All cells of the sweep together; second-order terms raise it by some per cent at n = 2e4.",
        measure="excess_ratio", options={"whose": "average"}, region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "group-excess",
        "The minority's excess risk is tr(I_2 I^-1) / (2n) (maximum likelihood)",
        figure="fig4-6a", reference="sharp asymptotics", kind="law", predicted="ratio 1", value=1.0, tolerance=(0.8, 1.25),
        reason="As average-excess; one group's risk fluctuates more.",
        measure="excess_ratio", options={"whose": "group"}, region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "noise-linear",
        "The distance at which gradient noise keeps the iterates from W_n is proportional to the noise level (4.8)",
        figure="noise", reference="Theorem 2, (4.8)", kind="law", predicted="1", value=1.0, tolerance=(0.9, 1.1),
        reason="The exponent of xi; a tenth excludes square root and square.",
        measure="floor_exponent", options={"over": "noise"}, region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "noise-samples",
        "That distance falls as n^-1/2 up to a logarithm (P1)",
        figure="noise", reference="Theorem 2, P1", kind="law", predicted="-1/2", value=-0.5, tolerance=(-0.65, -0.35),
        reason="The curvature itself fluctuates with the samples at small n.",
        measure="floor_exponent", options={"over": "samples"}, region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "noise-bound",
        "It lies below the bound of (4.8) with the exact factor, eta0 xi / (1 - v) sqrt(dK log n / n)",
        figure="noise", reference="Theorem 2, (4.8); (C.232)", kind="for-all", predicted="at most 1",
        tolerance=(0.0, 1.0), reason="A bound.", measure="floor_over_bound", region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "noise-exact",
        "It is eta0 xi / sqrt(3n) sqrt(sum_i 1/(1 - (1 - eta0 lambda_i)^2)), the stationary law of the linearised descent",
        figure="noise", reference="exact floor", kind="law", predicted="ratio 1", value=1.0, tolerance=(0.9, 1.1),
        reason="Averaged over the second half of each run; a tenth for the few correlation times that fit.",
        measure="floor_ratio", region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "samples-dimension",
        "The samples needed grow almost linearly in d (P2; Figure 4.2)",
        figure="fig4-2", reference="(4.7), Figure 4.2", kind="rival", predicted="1", value=1.0, rivals={"d^2": 2.0, "sqrt d": 0.5},
        tolerance=(0.75, 1.35), reason="d log^2 d itself has a local exponent of 1.6 to 2 here; the text says almost linear.",
        measure="critical_exponent", options={"over": "dim"}, conditions="conditions", uses=("capped", "diverged"),
    ),
    Claim(
        "rate-neurons",
        "1 - v is proportional to 1/K^2 (4.9; Figure 4.5a)",
        figure="fig4-5a", reference="(4.9)", kind="law", predicted="-2", value=-2.0, tolerance=(-2.5, -1.5),
        reason="A half tells K^-2 from K^-1 and K^-3; q itself depends on K.",
        measure="rate_exponent", options={"over": "neurons"}, region="with_critical_point", conditions="conditions",
    ),
)  # fmt: skip

# What the mixture does (P3, P4, P5) --------------------------------------------------------------------------------------

MIXTURE = (
    Claim(
        "samples-mean",
        "More samples are needed when the mean of a group is larger (P5; Figure 4.3a)",
        figure="fig4-3a", reference="Corollary 4.4.1 (iii), Figure 4.3(a)", kind="order", predicted="above 1",
        tolerance=(1.0, inf), reason="The critical n at |mu_1| = 5 over that at 0.",
        measure="critical_ratio", options={"over": "shift", "top": -1, "bottom": 0}, conditions="conditions",
        uses=("capped", "diverged"),
    ),
    Claim(
        "samples-small-covariance",
        "More samples are needed when the covariance of a group goes to 0 (P3; Figure 4.3b)",
        figure="fig4-3b", reference="Corollary 4.4.1 (i), Figure 4.3(b)", kind="order", predicted="above 1",
        tolerance=(1.0, inf), reason="The critical n at sigma = 0.1 over that at the middle of the grid, sigma = 1.",
        measure="critical_ratio", options={"over": "spread", "top": 0, "bottom": "middle"}, conditions="conditions",
        uses=("capped", "diverged"),
    ),
    Claim(
        "samples-large-covariance",
        "More samples are needed when the covariance of a group grows beyond a constant (P3; Figure 4.3b)",
        figure="fig4-3b", reference="Corollary 4.4.1 (ii), Figure 4.3(b)", kind="order", predicted="above 1",
        tolerance=(1.0, inf), reason="The critical n at sigma = 10 over that at the middle of the grid, sigma = 1.",
        measure="critical_ratio", options={"over": "spread", "top": -1, "bottom": "middle"}, conditions="conditions",
        uses=("capped", "diverged"),
    ),
    Claim(
        "rate-mean",
        "Gradient descent converges more slowly as the means grow (P5; Figure 4.4a)",
        figure="fig4-4a", reference="Corollary 4.4.1 (iii), Figure 4.4(a)", **_direction(True),
        measure="rate_trend", options={"over": "shift"}, region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "rate-covariance",
        "Gradient descent is fastest at a medium covariance: slower when |Sigma| is smaller and when it is larger "
        "(P3; Figure 4.4b)",
        figure="fig4-4b", reference="Corollary 4.4.1 (i, ii), Figure 4.4(b)", kind="order", predicted="above 0",
        tolerance=(0.0, inf), reason="log(1 - v) at its highest inside the grid, less the higher of its ends.",
        measure="rate_peak", options={"over": "norm"}, region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "rate-covariance-at-one",
        "Among the covariances tried, |Sigma| = 1 is the fastest (Figure 4.4b)",
        figure="fig4-4b", reference="Figure 4.4(b)", kind="order", predicted="above 0", tolerance=(0.0, inf),
        reason="log(1 - v) at |Sigma| = 1, less the highest elsewhere.",
        measure="rate_lead", options={"over": "norm", "at": 1.0}, region="with_critical_point", conditions="conditions",
    ),
)  # fmt: skip

RISKS = {
    "raw": "the cross-entropy at W_n",
    "excess": "the excess risk at W_n",
    "budget": "the excess risk after 100 steps",
}
WHOSE = {"average": "average", "group": "group-2"}


def _risk_claims() -> tuple[Claim, ...]:
    """Figures 4.6 and 4.7 do not say which risk they plot: each statement is judged for three."""
    said = (
        ("fig4-6a", "covariance", "spread", "dip", "first falls and then rises as |Sigma_2| grows (P3; Figure 4.6a)"),
        ("fig4-6b", "mean", "shift", "rises", "rises as mu_2 moves from 0 towards the majority's mean and beyond (P5; Figure 4.6b)"),
        ("fig4-6b", "mean-away", "shift", "rises", "rises as mu_2 moves from 0 away from the majority's mean (P5; Figure 4.6b)"),
        ("fig4-7a", "fraction-small", "fraction", "falls", "falls as lambda_2 grows, Sigma_2 the smaller one (P4; Figure 4.7a)"),
        ("fig4-7b", "fraction-large", "fraction", "rises", "rises as lambda_2 grows, Sigma_2 the larger one (P4; Figure 4.7b)"),
    )  # fmt: skip
    found = []
    for figure, word, over, shape, text in said:
        for risk, name in RISKS.items():
            for whose, owner in WHOSE.items():
                options: dict[str, Any] = {"risk": risk, "whose": whose, "over": over}
                if over == "shift":
                    options["side"] = -1 if word == "mean-away" else 1
                kind: dict[str, Any] = _direction(shape == "falls") | {"measure": "risk_trend"}
                if shape == "dip":
                    kind = {
                        "kind": "order", "predicted": "above 0", "tolerance": (0.0, inf), "measure": "risk_dip",
                        "reason": "log risk at the lower of the ends of the grid, less its lowest inside.",
                    }  # fmt: skip
                found.append(
                    Claim(
                        f"{word}-{risk}-{whose}", f"The {owner} risk ({name}) {text}", figure=figure,
                        reference=f"Figure {figure[3]}.{figure[5]}({figure[6]})", options=options, region="with_critical_point",
                        conditions="conditions", **kind,
                    )
                )  # fmt: skip
    return tuple(found)


# Table 4.1 ---------------------------------------------------------------------------------------------------------------

COLUMNS = {
    "covariance-small": "as |Sigma_l| grows from 0",
    "covariance-large": "as |Sigma_l| grows beyond a constant",
    "mean": "as |mu_l| grows",
    "fraction-smallest": "as lambda_l grows, Sigma_l the smallest",
    "fraction-largest": "as lambda_l grows, Sigma_l the largest",
}
ROWS = {
    "samples": ("the samples needed, n_sc", (-3.0, 3.0, 12.0, "falls", "rises")),
    "rate": ("1 - v", (3.0, -1.0, -2.0, "rises", "falls")),
    "error": ("E_w, the error of the weights", ("falls", 0.5, 1.0, "falls", "rises")),
    "average": ("E, the average risk", ("falls", 1.0, 2.0, "falls", "rises")),
    "group": ("E_l, the group's risk", ("falls", 1.0, 2.0, "falls", "rises")),
}
SHARP = {
    "rate": "1 - v = lambda_min / lambda_max of the Fisher information",
    "error": "the error of the weights sqrt(tr I^-1 / n)",
    "group": "the group's excess risk tr(I_l I^-1) / (2n)",
}


def _table_claims() -> tuple[Claim, ...]:
    """Every cell of Table 4.1: the closed forms (without the polynomials set aside) have its exponent or direction."""
    found = []
    for row, (name, entries) in ROWS.items():
        for (column, text), entry in zip(COLUMNS.items(), entries, strict=True):
            options = {"row": row, "column": column}
            common: dict[str, Any] = {
                "figure": "table-4-1", "reference": "Table 4.1", "options": options, "conditions": "fixed_mixture",
            }  # fmt: skip
            if isinstance(entry, str):
                claim = Claim(
                    f"table-{row}-{column}", f"{name} {entry} {text} (Table 4.1, from the closed forms)",
                    **common, **_direction(entry == "falls"), measure="closed_trend",
                )  # fmt: skip
            else:
                power = f"|{'mu' if column == 'mean' else 'Sigma'}_l|^{entry:g}"
                claim = Claim(
                    f"table-{row}-{column}", f"{name} goes as {power} {text} (Table 4.1, from the closed forms)",
                    **common, kind="law", predicted=f"{entry:g}", value=entry,
                    tolerance=tuple(sorted((0.9 * entry, 1.1 * entry))),
                    reason="Asymptotic grids; a tenth of the exponent. An O of the table is taken as attained by its own formula.",
                    measure="closed_exponent",
                )  # fmt: skip
            found.append(claim)
    found.append(
        Claim(
            "table-samples-mean-small", "The samples needed are O(|mu_l|^4) for |mu_l| <= 1 (C.110, from the closed forms)",
            figure="table-4-1", reference="(C.110)", kind="bound", predicted="at least 4", value=4.0, tolerance=(3.6, inf),
            reason="An upper bound that vanishes with the mean: the exponent over |mu_l| in 0.01 to 1, less a tenth.",
            measure="closed_exponent", options={"row": "samples", "column": "mean-small"}, conditions="fixed_mixture",
        )
    )  # fmt: skip
    return tuple(found)


def _sharp_claims() -> tuple[Claim, ...]:
    """The directions of Table 4.1 for the quantities themselves, by the Fisher information."""
    found = []
    for row, name in SHARP.items():
        for (column, text), entry in zip(COLUMNS.items(), ROWS[row][1], strict=True):
            falls = entry == "falls" if isinstance(entry, str) else entry < 0
            word = "falls" if falls else "rises"
            found.append(
                Claim(
                    f"sharp-{row}-{column}", f"{name} {word} {text} (direction of Table 4.1)", figure="fisher",
                    reference="Corollary 4.4.1, Table 4.1", **_direction(falls), measure="sharp_trend",
                    options={"row": row, "column": column}, conditions="fixed_mixture",
                )
            )  # fmt: skip
    return tuple(found)


# Lemmas and the initialisation -------------------------------------------------------------------------------------------

LEMMAS = (
    Claim(
        "lemma-c41",
        "E[(sum_i r_i . x phi'(sigma x_i))^2] >= rho(mu, sigma) |R|_F^2 for every mu and sigma (Lemma C.4.1)",
        figure="lemmas", reference="Lemma C.4.1", kind="for-all", predicted="at least 1", tolerance=(1.0 - 1e-9, inf),
        reason="Smallest eigenvalue over rho, both by quadrature to 1e-12.", measure="lemma_ratio",
    ),
    Claim(
        "lemma-c44",
        "lambda_min of the population Hessian at W* is at least 4 G / K^2 (Lemma C.4.4), for W* = sigma I and one group",
        figure="lemmas", reference="Lemma C.4.4, (C.178)", kind="for-all", predicted="at least 1", tolerance=(1.0 - 1e-6, inf),
        reason="Quadrature to 1e-6.", measure="population_ratio",
    ),
    Claim(
        "lemma-c44-mended",
        "It is, with rho_exact in place of rho",
        figure="lemmas", reference="Lemma C.4.4, mended", kind="for-all", predicted="at least 1", tolerance=(1.0 - 1e-6, inf),
        reason="Quadrature to 1e-6.", measure="mended_ratio",
    ),
    Claim(
        "lemma-c44-upper",
        "lambda_max of the population Hessian at W* is at most M_2 / (4K) (Lemma C.4.4 with its constant made explicit)",
        figure="fisher", reference="Lemma C.4.4", kind="for-all", predicted="at least 1", tolerance=(1.0 - 1e-6, inf),
        reason="M_2 / (4K) over lambda_max.", measure="upper_ratio", conditions="fixed_mixture",
    ),
    Claim(
        "ball-low",
        "In the ball of radius r (C.81) the empirical Hessian is at least (1 - 2 eps_0) G / K^2 (Lemma C.3.1, constant 1)",
        figure="ball", reference="Lemma C.3.1, (C.83)", kind="for-all", predicted="at least 1", tolerance=(1.0, inf),
        reason="The smallest eigenvalue at random places of its sphere over the bound.",
        measure="in_ball", options={"side": "low"}, conditions="convexity",
    ),
    Claim(
        "ball-high",
        "In the ball of radius r (C.81) the empirical Hessian is at most M_2 (Lemma C.3.1, constant 1)",
        figure="ball", reference="Lemma C.3.1, (C.83)", kind="for-all", predicted="at most 1", tolerance=(0.0, 1.0),
        reason="The largest eigenvalue at random places of its sphere over the bound.",
        measure="in_ball", options={"side": "high"}, conditions="convexity",
    ),
    *(
        Claim(
            f"lipschitz-{word}", text, figure="lipschitz", reference=f"Lemma {number}", kind="for-all", predicted="at most 1",
            tolerance=(0.0, 1.0), reason=reason, measure="hessian_change", options={"whose": word.replace("-", "_")},
            conditions="fixed_mixture",
        )
        for word, text, number, reason in (
            ("sample", "E sup |Hessian of one sample at W - at W'| / |W - W'|_F <= C_12 d^3/2 K^5/2 sqrt(A_2 A_4), A_p = sum_l lambda_l "
             "(|mu_l|_inf + |Sigma_l|)^p (Lemma C.4.2)", "C.4.2", "C_12 = 8 sqrt 3, from the steps of its proof."),
            ("sample-mended", "It is, with |Sigma_l^1/2| in place of |Sigma_l|", "C.4.2, mended",
             "C_12 = 8 sqrt 3, from the steps of its proof."),
            ("population", "|Hessian of f at W - at W*| <= K^3/2 (M_4 M_8)^1/4 |W - W*|_F (Lemma C.4.3, constant 1)", "C.4.3",
             "The largest over random places at distance 0.1."),
        )
    ),
    *(
        Claim(
            f"deviation-{word}", f"{text} falls as n^-1/2 up to a logarithm (Lemma {number})", figure="deviations",
            reference=f"Lemma {number}", kind="law", predicted="-1/2", value=-0.5, tolerance=(-0.6, -0.4), reason=HALF,
            measure="deviation_exponent", options={"what": word}, conditions="conditions",
        )
        for word, text, number in (
            ("hessian", "|Hessian of f_n - Hessian of f| at W*", "C.4.5"),
            ("gradient", "|gradient of f_n| at W*", "C.5.1"),
            ("first", "|Q_1 - its estimate|", "C.6.3"),
            ("second", "|Q_2 - its estimate|", "C.6.1"),
            ("third", "|R_3 - its estimate|", "C.6.2"),
            ("subspace", "The error of the subspace", "C.6.4"),
            ("inverted", "The error of the tensor initialisation, magnitudes inverted,", "C.3.3"),
            ("literal", "The error of the tensor initialisation, magnitudes as printed,", "C.3.3"),
        )
    ),
    Claim(
        "tensor-basin",
        "Gradient descent from the tensor initialisation reaches the same critical point as from near W* (claim 7; Figure C.1)",
        figure="tensor-easy", reference="Lemma 4.4.4, Section C.1.1", kind="for-all", predicted="distance to W_n below 1e-4",
        tolerance=(0.0, 1e-4), reason="The distance that is left when the descent ends.",
        measure="last_distance", options={"begin": "tensor"}, region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "tensor-rate",
        "The linear rate from the tensor initialisation is that from near W* (Figure C.1)",
        figure="tensor-easy", reference="Section C.1.1", kind="law", predicted="ratio 1", value=1.0, tolerance=(0.9, 1.1),
        reason="(1 - v) at the end of both.", measure="start_rate_ratio", region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "far-start",
        "From entries N(0, 25) gradient descent does not converge: it ends at a higher risk than from near W* (Figure C.1)",
        figure="figC-1", reference="Section C.1.1", kind="for-all", predicted="at least 1",
        tolerance=(1.0, inf), reason="The difference of the final risks in units of dK / (2n), the statistical error of the risk.",
        measure="left_behind", options={"begin": "far"}, conditions="conditions",
    ),
    Claim(
        "tensor-reported",
        "The tensor initialisation has a relative error of 0.65 at n = 2e5, d = 50, K = 2, W* uniform on +-0.1 (Section C.1.1)",
        figure="figC-1", reference="Section C.1.1", kind="law", predicted="0.65", value=0.65, tolerance=(0.5, 0.8),
        reason="One reported run; seeds differ by about a tenth.", measure="start_error", conditions="conditions",
    ),
)  # fmt: skip

ACTIVATIONS = (
    Claim(
        "activation-linear",
        "With tanh and erf gradient descent converges linearly to W_n as well (the footnote on other activations)",
        figure="activations", reference="Section 4.3, footnote 15", kind="for-all", predicted="R^2 of a straight line at least 0.98",
        tolerance=(0.98, 1.0 + 1e-9), reason="As linear-convergence.", measure="straightness", region="near", conditions="conditions",
    ),
    Claim(
        "activation-error",
        "With tanh and erf |W_n - W* P|_F falls as n^-1/2 up to a logarithm (the footnote on other activations)",
        figure="activations", reference="Section 4.3, footnote 15", kind="law", predicted="-1/2", value=-0.5, tolerance=(-0.6, -0.4),
        reason=HALF, measure="error_exponent", region="with_critical_point", conditions="conditions",
    ),
    Claim(
        "activation-excess",
        "With tanh and erf the average excess risk is dK / (2n) (maximum likelihood)",
        figure="activations", reference="sharp asymptotics", kind="law", predicted="ratio 1", value=1.0, tolerance=(0.85, 1.2),
        reason="As average-excess.", measure="excess_ratio", options={"whose": "average"}, region="with_critical_point",
        conditions="conditions",
    ),
)  # fmt: skip

CLAIMS = CONVERGENCE + MIXTURE + _risk_claims() + _table_claims() + _sharp_claims() + LEMMAS + ACTIVATIONS

LEDGER = (
    Statement("(4.1), (4.3)", "network and loss", "", "network.predict_proba, network.loss_of", "test derivatives"),
    Statement("(4.6), Algorithm 1", "gradient descent with noise", "evaluated at W_t; noise drawn anew each step, or once",
              "trials.Descents", "claim linear-convergence, claim noise-linear"),
    Statement("(4.7), (C.92), (C.89)", "samples n_sc", "1e30 and more at the document's own settings, constants 1",
              "theory.sample_complexity, theory.sample_complexity_early", "claim samples-dimension"),
    Statement("(4.8), (C.232)", "linear convergence and noise floor", "exact floor beside the bound; noise drawn once moves the end instead",
              "theory.noise_floor, theory.noise_floor_bound, theory.fixed_noise_shift",
              "claim contraction-bound, claim contraction-exact, claim noise-bound, claim noise-exact, "
              "test test_noise_drawn_once_moves_the_end_by_the_inverse_curvature"),
    Statement("(4.9)", "v = 1 - q/K^2", "", "theory.contraction_bound", "claim rate-neurons"),
    Statement("(4.10), (C.84)", "error of the weights", "K^5/2 kept where (C.102) has K^2",
              "theory.weight_error_bound", "claim error-samples, claim error-constant"),
    Statement("(4.11), (4.12)", "average and group risk", "of the excess: the text takes f(W*) for 0",
              "theory.average_risk_factor, theory.group_risk_factor",
              "claim risk-samples, claim average-excess, claim group-excess"),
    Statement("Table 4.1", "exponents and directions", "beside the Fisher information's directions",
              "theory.table_4_1", "claim table-samples-mean, claim sharp-error-mean"),
    Statement("(C.5), Subroutine 1", "tensor initialisation", "eigenvalues by magnitude; signs fixed; magnitudes inverted; rank K needed",
              "trials.tensor_initialisation", "claim deviation-inverted, claim deviation-literal, claim tensor-basin"),
    Statement("Footnote 15", "other activations", "rescaled to (0, 1); with erf phi' / phi is unbounded, so that (C.150) is lost",
              "network.neuron", "claim activation-linear, claim activation-error, claim activation-excess"),
    Statement("(C.110)", "n_sc = O(|mu|^4) for small means", "the closed form stays above a constant",
              "theory.table_quantities", "claim table-samples-mean-small"),
    Statement("Definition C.1.1", "score functions of a mixture", "symmetrised product in S_3", "data.scores", "test tensor"),
    Statement("Definition C.2.2", "rho", "indices over the neurons", "theory.rho, theory.rho_exact", "test rho"),
    Statement("(C.7), (C.8), (C.81)", "Gamma, D_m, radius", "",
              "theory.gamma_fn, theory.d_moment, theory.convex_radius", "test bounds"),
    Statement("Property 3.3", "limit of rho(u/sigma, sigma)", "min u_j^2 phi''(u_i)^2; the printed values are wrong",
              "theory.concentrated_limit", "test rho"),
    Statement("Property 4.1", "rho = Theta(sigma^4)", "B is of order sigma^4, not sigma^2", "theory.small_std", "test rho"),
    Statement("Property 4.2", "rho >= Theta(sigma^-3-eps)", "exactly sigma^-1 and sigma^-3", "theory.large_std", "test rho"),
    Statement("Property 4.3", "decay in the mean", "e^-2 sigma u, not e^-u^2/2", "theory.far_mean", "test rho"),
    Statement("Property 10", "D_m D_2m <= D_3m, D_m^2 <= D_2m", "", "theory.d_moment", "test bounds"),
    Statement("(C.93), (C.96)-(C.99)", "B, q, E_w, E, E_l", "B also with the full Gamma; L_m and L_s in B and q by `enveloped`",
              "theory.sample_complexity_factor, theory.sample_complexity_factor_full, theory.rate_parameter, "
              "theory.rate_parameter_large, theory.enveloped", "test bounds, test envelopes"),
    Statement("(C.24)-(C.34)", "monotone envelopes L_m, L_s", "L_m also along the whole mean, as Table 4.1 moves it",
              "theory.mean_envelope, theory.coordinate_envelope, theory.std_envelope, theory.turning_std", "test envelopes"),
    Statement("Lemma C.3.1", "local strong convexity", "constants 1; for one neuron, where its samples can be had",
              "theory.convexity_samples, theory.convex_radius", "claim ball-low, claim ball-high"),
    Statement("Lemma C.3.2", "linear convergence", "", "theory.contraction_bound", "claim contraction-bound, claim contraction-exact"),
    Statement("Lemma C.3.3", "initialisation", "only with inverted magnitudes",
              "theory.initialisation_error", "claim deviation-inverted, claim deviation-literal"),
    Statement("Lemma C.4.1", "second moments bounded by rho", "false where two coordinates of the mean differ from 0; rho_exact",
              "theory.rho_exact", "claim lemma-c41"),
    Statement("Lemma C.4.2", "expected Lipschitz constant of sample Hessians", "|Sigma_l^1/2| in place of the printed |Sigma_l|",
              "theory.sample_lipschitz", "claim lipschitz-sample, claim lipschitz-sample-mended"),
    Statement("Lemma C.4.3", "population Hessian is Lipschitz", "", "theory.hessian_lipschitz", "claim lipschitz-population"),
    Statement("Lemma C.4.4", "curvature of the population risk at W*", "C_4 = 1/(4K); lower side needs rho_exact",
              "theory.curvature_bounds", "claim lemma-c44, claim lemma-c44-mended, claim lemma-c44-upper"),
    Statement("Lemma C.4.5", "Hessians concentrate", "", "theory.hessian_deviation", "claim deviation-hessian"),
    Statement("Lemma C.5.1", "gradients concentrate", "", "theory.gradient_deviation", "claim deviation-gradient"),
    Statement("Lemmas C.6.1-C.6.3", "moments concentrate", "", "theory.moment_errors",
              "claim deviation-first, claim deviation-second, claim deviation-third"),
    Statement("Lemma C.6.4", "subspace", "", "trials.leading_subspace", "claim deviation-subspace"),
    Statement("Lemma C.6.5", "magnitudes", "true of the inverted ones", "trials.inverted_magnitude", "claim deviation-inverted"),
)  # fmt: skip
