"""What the document says of graph sampling, and what follows from it; and the ledger of its numbered statements."""

from math import inf
from typing import Any

from lemmata.study import Claim, Statement

FALLS, RISES = (-inf, 0.0), (0.0, inf)
SIGN = "only the sign is claimed"
NEED = "an exponent above 0 is a need that grows; each seed is asked for its own error, since targets differ"


def _best(figure: str, dataset: int, sampler: str, graph: str, where: str, variable: str) -> Claim:
    raw = variable == "error"
    return Claim(
        f"{figure}-{'raw' if raw else 'normalised'}",
        f"On {graph} graphs {sampler} predicts best on dataset {dataset} "
        + ("(test error as it is)" if raw else "(test error over the labels' second moment; ours)"),
        figure, where, "order", f"least error on dataset {dataset}", RISES, SIGN, "best", {"dataset": dataset, "variable": variable},
        conditions="theorem_conditions",
    )  # fmt: skip


def _need(id: str, statement: str, figure: str, where: str, variable: str, along: str, **more: Any) -> Claim:
    given: dict[str, Any] = {
        "kind": "order",
        "predicted": "exponent above 0",
        "tolerance": RISES,
        "reason": NEED,
        **more,
    }
    options = {"variable": variable, "along": along, "over": "high_degree", "coordinate": "norm_of_profile"}
    return Claim(
        id,
        statement,
        figure,
        where,
        measure="need_exponent",
        options=options,
        conditions="theorem_conditions",
        **given,
    )


# fmt: off
CLAIMS: tuple[Claim, ...] = (
    Claim("deviation-worst", "|A^s - A*|_inf is at most of the order 1 - S/N, so that it vanishes as all nodes are sampled",
          "sampled", "Lemma D.1.2, (D.12)", "law", "exponent 1 in 1 - S/N", (0.8, 1.2), "a fifth tells the order from its root",
          "deviation_exponent", value=1.0),
    Claim("labels-help", "The test error falls as labelled nodes increase, for every |A*|_inf", "fig5-1", "Figure 5.1", "order",
          "below 0", FALLS, SIGN, "fall", {"over": "labels"}, conditions="theorem_conditions"),
    _need("labels-norm", "The larger |A*|_inf, the more labelled nodes are needed for the same test error", "fig5-1",
          "Figure 5.1, (5.18)", "error", "labels"),
    _need("labels-norm-normalised", "The same of the test error over the labels' second moment (ours)", "fig5-1",
          "Figure 5.1, (5.18)", "normalised_error", "labels"),
    _need("labels-degree", "The labelled nodes needed grow no faster than |A*|_inf^8", "fig5-1", "Theorem 5.3.1, (5.18)",
          "error", "labels", kind="bound", predicted="exponent at most 8", tolerance=(-inf, 8.0),
          reason="the printed power of a sufficient number; the factor (|A*| + 1)^4 and delta would allow more"),
    Claim("width-helps", "The test error falls as the number of neurons increases, for every |A*|_inf", "fig5-2", "Figure 5.2",
          "order", "below 0", FALLS, SIGN, "fall", {"over": "width"}, conditions="theorem_conditions"),
    _need("width-norm", "The larger |A*|_inf, the more neurons are needed for the same test error", "fig5-2",
          "Figure 5.2, (5.17)", "error", "width"),
    _need("width-norm-normalised", "The same of the test error over the labels' second moment (ours)", "fig5-2",
          "Figure 5.2, (5.17)", "normalised_error", "width"),
    Claim("labels-log-width", "The labelled nodes needed grow with the number of neurons no faster than its logarithm", "labels-width",
          "Theorem 5.3.1, (5.18)", "bound", "exponent at most 1/4", (-inf, 0.25),
          "log m grows as m^0.22 from 25 to 400 neurons; a power 1/2 or 1 lies far above", "need_exponent",
          {"variable": "error", "along": "labels", "over": "width", "coordinate": "width", "arm": 1}, conditions="theorem_conditions"),
    _best("fig5-3a", 1, "training with the document's sampling", "unbalanced", "Figure 5.3 (a)", "error"),
    _best("fig5-3a", 1, "training with the document's sampling", "unbalanced", "Figure 5.3 (a)", "normalised_error"),
    _best("fig5-3b", 1, "training with FastGCN", "unbalanced", "Figure 5.3 (b)", "error"),
    _best("fig5-3b", 1, "training with FastGCN", "unbalanced", "Figure 5.3 (b)", "normalised_error"),
    _best("fig5-4a", 3, "training with the document's sampling", "balanced", "Figure 5.4 (a)", "error"),
    _best("fig5-4a", 3, "training with the document's sampling", "balanced", "Figure 5.4 (a)", "normalised_error"),
    _best("fig5-4b", 3, "training with FastGCN", "balanced", "Figure 5.4 (b)", "error"),
    _best("fig5-4b", 3, "training with FastGCN", "balanced", "Figure 5.4 (b)", "normalised_error"),
    Claim("twin-vanishes", "Weights trained with A^s come to those trained with A* as the rate goes to 1", "twin",
          "Lemma D.2.14, claim 2 of section 5.3.1", "bound", "exponent in N/S - 1 at least 1/4", (0.25, inf),
          "a gap that stays has the exponent 0; independent errors of the steps give 1/2, a shifted mean 1", "gap_exponent",
          conditions="sampling_conditions"),
    Claim("twin-error", "Training with A^s predicts as well as training with A* (at S = 0.9 N)", "twin", "section 5.3.1, claim 2",
          "bound", "at most 0.02 of the labels' second moment worse", (-inf, 0.02), "a fiftieth of what guessing 0 costs",
          "gap_of_errors", {"rate": 0.9}, conditions="sampling_conditions"),
    Claim("high-degree-first", "With p* = 1 and groups of equal size, leaving out half of the high-degree group takes training further "
          "from A* than leaving out half of the low-degree group", "rates", "under (5.10)", "order", "above 0", RISES, SIGN,
          "high_over_low", conditions="sampling_conditions"),
    Claim("realisable-rate", "Where labels are made with A* in the concept class, the test error rises as fewer nodes are sampled (ours)",
          "realisable", "Theorem 5.3.1 with OPT = 0; README", "order", "rises from each rate to the next smaller", RISES, SIGN,
          "rise", {"variable": "normalised_error"}, conditions="theorem_conditions"),
    Claim("smoothing-square", "After Gaussian smoothing, the network leaves the one with frozen signs by the square of the move",
          "near-start", "Lemma D.2.11", "law", "exponent 2", (1.7, 2.3), "without smoothing it is 1 where signs turn at once",
          "smoothing_slope", value=2.0),
    Claim("coupling-bound", "Near the start the network is its start plus the bilinear pseudo-network, up to the bound", "near-start",
          "Lemma D.2.9", "for-all", "at most 1 of the bound with constant 1", (-inf, 1.0), "logarithms of the bound are left out",
          "residual_share"),
    Claim("flips-bound", "Weights of the size tau_w turn at most tau_w^(4/5) m^(6/5) signs of the first layer at a node", "near-start",
          "Lemma D.2.10", "for-all", "at most 1 of the bound with constant 1", (-inf, 1.0), "logarithms of the bound are left out",
          "flip_share"),
    Claim("two-ways", "Training in the receptive field of the batch is training on the whole graph", "agreement",
          "README, two ways", "identity", "0", (-inf, 1e-9), "rounding over the steps of a run", "disagreement"),
)

LEDGER: tuple[Statement, ...] = (
    Statement("(5.2), (5.3)", "complexity of a smooth function, C_eps and C_s", "C_s of tanh diverges beyond pi/2",
              "theory.model_complexity, theory.sample_complexity_norm, theory.sample_complexity_by_quadrature",
              "test test_sample_complexity_by_quadrature_is_the_series"),
    Statement("(5.4)", "the three-layer network; A and cA are equivalent up to W/c and V/c",
              "F_{cA}(W/c, V/c^2; B_1, B_2/c) = F_A(W, V; B_1, B_2)", "network.outputs, network.rescaled",
              "test test_scaling_the_matrix_is_scaling_the_weights"),
    Statement("(5.6), (5.7)", "effective adjacency A* = A P*", "", "theory.effective",
              "test test_sampled_matrices_have_the_exact_mean_variance_and_deviation"),
    Statement("(5.8), (5.9)", "p*_l <= c_1/(L psi_l) keeps |A*|_inf of order 1", "d_L is the largest degree, whatever the order",
              "theory.dominance, theory.max_scaling, theory.implied_scale_constant, theory.row_sum, theory.row_sum_printed",
              "test test_row_sums_with_self_loops_are_those_of_large_graphs"),
    Statement("(5.10)", "S_l/N_l >= (1 + c_1 poly(eps)/(L p*_l psi_l))^-1: higher degrees are sampled more", "",
              "theory.min_rate, theory.implied_rate_constant", "claim high-degree-first"),
    Statement("(5.11), Algorithm 2", "noise, random signs, decay and regularisers", "exponent 3 - 0.02 in lambda_w; lambda_t inside",
              "theory.parameters, theory.reach_margin", "test test_algorithm_2_is_its_own_objective",
              "tau_v >> tau'_v is reversed below m_1 = eps_0^-125"),
    Statement("Theorem 5.3.1", "risk at most (1 + eps_0) OPT + eps_0 with the labels of (5.18)", "",
              "theory.label_complexity, theory.accuracy_needed, theory.theorem_conditions, theory.norm_degree",
              "claim labels-degree, claim labels-log-width, claim realisable-rate"),
    Statement("remark", "a vanishing share of labels is enough when delta = O(N^1/5)", "", "theory.vanishing_share",
              "test test_label_complexity_goes_with_the_logarithm_of_the_width_and_the_eighth_power_of_the_norm"),
    Statement("Lemma D.1.1", "a row of A times unit features is at most |A|_inf", "", "theory.max_row_sum",
              "test test_a_row_times_unit_features_is_no_longer_than_the_norm"),
    Statement("Lemma D.1.2", "|A^t - A*|_inf <= poly(eps)", "true of the mean row deviation, 2 sum_l p*_l (1 - S_l/N_l) sum A_nj",
              "theory.row_deviation, theory.entry_variance, theory.loop_deviation", "claim deviation-worst"),
    Statement("Lemma D.1.3", "the same for symmetric sampling", "as printed it is biased off the diagonal",
              "theory.symmetric_mean, theory.symmetric_max_scaling, theory.symmetric_min_rate",
              "test test_the_symmetric_sampler_is_biased_as_its_exact_mean_says"),
    Statement("Lemmas D.2.1 to D.2.3", "smooth functions are means over random ReLU features", "2 c_0 in place of c_0",
              "theory.indicator_feature, theory.hermite_gain, theory.gain_bound, theory.clipped_tail, theory.feature_moment",
              "test test_a_mean_over_random_features_is_the_sine"),
    Statement("Lemma D.2.9", "near the start: start plus bilinear pseudo-network", "", "theory.coupling_bound", "claim coupling-bound"),
    Statement("Lemma D.2.10", "few signs turn; (2/pi) arctan(sigma_w sqrt(m)) are overtaken by noise", "half of these turn",
              "theory.flip_bounds, theory.overtaken_chance, theory.flip_chance", "claim flips-bound"),
    Statement("Lemma D.2.11", "smoothing makes the cost of frozen signs quadratic", "", "", "claim smoothing-square"),
    Statement("Lemma D.2.13", "random signs add squares of norms", "", "theory.column_norm",
              "test test_random_signs_leave_the_norms_as_the_lemmas_say"),
    Statement("Lemma D.2.14", "training with A^s follows training with A*", "", "", "claim twin-vanishes, claim twin-error"),
    Statement("(D.134) to (D.138)", "each label depends on at most (1 + delta)^4 others", "(5.12) looks three hops far: (1 + delta)^6",
              "theory.dependency_degree, theory.deviation_of_loss", "test test_labels_that_share_a_feature_are_counted_along_the_graph"),
)
