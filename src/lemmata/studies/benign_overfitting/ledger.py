"""The ledger: the numbered statements of the paper, as printed and as mended, and what each is held against."""

from lemmata.study import Statement

LEMMAS = "test_theory.py"
FORMS = "test_simulators.py"
"""The study's tests that hold statements against runs step by step, and the simulators against each other."""

# fmt: off
LEDGER: tuple[Statement, ...] = (
    Statement("Definition 3.1", "data model; noise projected off the signals",
              "experiments use isotropic noise: a flag", "data.draw", FORMS),
    Statement("Eq. 1", "the network", "", "network.output", "claim exact-reductions"),
    Statement("Condition 4.1", "ten items; C_p = 5 sqrt(M)", "(6) is about constant steps; a schedule stands for it",
              "theory.conditions", "claim step-schedule"),
    Statement("Theorem 4.1", "N SNR^2 = Omega(1): T = Theta(1/(eta eps |mu|^2 |w_O|^2)), L_S <= eps, L_D = o(1)", "",
              "theory.benign_conditions, theory.benign_stage3_end", "claim theorem-benign-loss, claim "
              "theorem-benign-time, claim theorem-benign-signal, claim benign-generalises, claim time-signal"),
    Statement("Theorem 4.2", "1/(N SNR^2) = Omega(1): T = Theta(N/(eta eps sigma_p^2 d |w_O|^2)), L_S <= eps, L_D = "
              "Theta(1)", "", "theory.harmful_conditions, theory.harmful_stage3_end", "claim theorem-harmful-loss, "
              "claim theorem-harmful-time, claim harmful-fits-but-fails, claim time-samples"),
    Statement("Section 4, comparison", "below SNR 1 N SNR^2 needs fewer samples than N SNR^q", "", "network.Filters",
              "claim rival-exponent, claim rival-network"),
    Statement("Definitions 5.1, 5.2, B.1-B.3", "vectorised Q and K, scalarised V, alpha and beta", "", "trials.Rows",
              "claim exact-reductions"),
    Statement("Lemmas 5.1, B.2", "increments of gamma and rho", "", "trials.Rows", "claim exact-reductions"),
    Statement("Section 5.2", "W_Q, W_K and W_V promote each other", "", "trials.BenignOverfitting", "claim "
              "attention-speeds-values, claim values-drive-attention, claim attention-speeds-noise, claim "
              "values-drive-noise"),
    Statement("Lemmas 5.2, D.5", "explicit T1; 3M lead at T1", "", "theory.benign_stage1_end, "
              "theory.benign_values_at_stage1_end", "claim stage1-bound, claim lead-in-fig1"),
    Statement("Lemma 5.3, D(t)", "gap >= log(e^gap(T1) + c (t-T1)(t-T1-1)); logits monotone; V_+ linear in t",
              "B(t) is two straight lines, which does not make V_+ linear", "theory.benign_gap_bound",
              f"claim benign-linear, {LEMMAS}"),
    Statement("Lemma 5.4, F(t), Claim 5", "log(e^V(T2) + c (t-T2)) <= V_+ <= 2 log(O(1/eps)); T3 with 1/LOG",
              "T3 without 1/LOG, as in D.7 and Theorem 4.1", "theory.value_growth, theory.stage3_value_upper, "
              "theory.stage3_slope_range", f"claim benign-logarithmic, {LEMMAS}"),
    Statement("Lemma 5.5, (136)", "y f >= log(C/eps)/(2 M^2) - 1 on fresh data", "", "theory.benign_margin", LEMMAS),
    Statement("Figure 1", "the test loss passes 0.2 along N SNR^2 = 1000", "two readings of 'divided by 16'",
              "theory.PAPER_CONTROL", "claim paper-curve, claim boundary-exponent"),
    Statement("Figure 2", "MNIST with a two-layer vision transformer", "not part of this study"),
    Statement("Figures 3, 4", "values, logits and attention move to the winner", "", "figures.dynamics",
              "claim benign-attention, claim benign-values, claim harmful-attention, claim harmful-values"),
    Statement("Eqs 3, 4", "derivative of the softmax", "off the diagonal the minus sign is missing", "trials.drive",
              FORMS),
    Statement("Lemma B.1", "gradients", "", "trials.drive", FORMS),
    Statement("Lemma B.3, Eqs 196-214", "updates of all inner products", "", "trials.Grams", "claim exact-reductions"),
    Statement("Remark after B.3, Eq. 298", "leading order of the logits", "", "trials.Leading", FORMS),
    Statement("Lemma C.1", "each label has N/4 to 3N/4 of the samples", "", "theory.label_counts_hold", LEMMAS),
    Statement("Lemma C.2", "|V(0)| <= d_h^-1/4; for signals by sigma_V |w_O| |mu| sqrt(log(2NM/delta))",
              "the normal tail asks for sqrt(2) more; |mu|^-2 in its proof is |mu|^-1", "theory.initial_value_bound",
              LEMMAS),
    Statement("Lemma C.3", "norms and products of queries and keys at the start", "",
              "theory.row_norm_range, theory.row_product_bound", LEMMAS),
    Statement("Lemma C.4", "norms and products of noise tokens", "",
              "theory.noise_norm_range, theory.noise_product_bound", LEMMAS),
    Statement("Lemma D.1", "the loss derivative is near 1/2 while values are o(1)", "exact form", "theory.slope_range",
              LEMMAS),
    Statement("Lemma D.2", "attention is near 1/M while logits are o(1)", "exact form", "theory.attention_range",
              LEMMAS),
    Statement("Lemmas D.3, D.6, E.1, E.4", "values move by at most 3/4 eta |mu|^2 and 2 eta C_p^2 sigma_p^2 d / N a "
              "step", "", "theory.signal_value_step_bound, theory.noise_value_step_bound", LEMMAS),
    Statement("Eq. 17", "d >= 16 N^2 log(4 N^2 M^2 / delta) makes cross terms small", "",
              "theory.dimension_for_small_cross_terms", LEMMAS),
    Statement("Lemmas D.4, E.2; C(t), G(t), K(t), O(t), Claims 3, 7, 11, 15",
              "squared norms of queries and keys keep their order", "", "trials.BenignOverfitting",
              "claim theorem-norms, claim norms-in-fig1, claim norms-in-fig3"),
    Statement("B(t), Claim 1", "V_+ between two lines in stage II; 3M lead", "", "theory.linear_value_bounds",
              "claim benign-linear-bounds, claim lead-lasts"),
    Statement("H(t), Claims 2, 6", "logits on the signal rise, on noise fall", "", "", LEMMAS),
    Statement("E(t), I(t), Claims 4, 8", "logits below log(d_h^1/2), then log(d_h^1/2/eps)", "",
              "theory.stage2_logit_bound, theory.stage3_logit_bound", f"claim benign-logits-logarithmic, {LEMMAS}"),
    Statement("M(t), Q(t), Claims 12, 16", "gaps Psi below log(d_h^1/2), then log(d_h^1/2/eps); logits below twice that",
              "", "theory.stage2_logit_bound, theory.stage3_logit_bound", LEMMAS),
    Statement("Eqs 64, 65, 108-111", "attention left on noise", "", "theory.benign_leak",
              "claim leak-signal, claim leak-noise, claim benign-attention-noise"),
    Statement("Lemma D.7", "T = C/(eta eps |mu|^2 |w_O|^2) gives L_S <= eps", "", "theory.convergence_time",
              "claim time-eps-benign, claim time-constant-benign"),
    Statement("Lemma D.8", "a fresh signal query keeps 1/(2M) on the signal", "", "theory.least_signal_attention",
              "claim theorem-fresh-attention"),
    Statement("Eqs 119, 125, 129, 130", "movement of W_K", "", "theory.weight_movement", LEMMAS),
    Statement("Lemma D.9", "fresh noise values are at most 1", "sigma_p stands where the strong token has C_p sigma_p",
              "theory.FRESH_NOISE_VALUE", "claim theorem-fresh-noise, claim fresh-noise-in-fig1"),
    Statement("Eqs 134, 176", "movement of W_V w_O", "", "theory.value_movement", LEMMAS),
    Statement("Lemma D.10", "L_D <= 3 exp(-log(C/eps)/(2 M^2)) + C delta^1/2 / N", "",
              "theory.benign_test_loss_bound, theory.fresh_loss_exponent",
              "claim theorem-benign-loss, claim theorem-benign-power"),
    Statement("Lemma E.3", "explicit T1; the strong noise leads 3M times", "its title says signals",
              "theory.harmful_stage1_end, theory.harmful_values_at_stage1_end",
              f"claim theorem-harmful-stage1, {LEMMAS}"),
    Statement("J(t), N(t), Claims 9, 13", "y V_n,2 grows linearly, then logarithmically", "",
              "theory.early_strong_value_step", f"claim harmful-values, {LEMMAS}"),
    Statement("L(t), P(t), Claims 10, 14", "the gap to token 2 grows as log t^2", "", "theory.harmful_gap_bound",
              LEMMAS),
    Statement("Lemma E.5, Eqs 165-170", "L_S = 0.1; attention off the strong noise", "L_S <= eps, as its proof has it",
              "theory.harmful_leak", "claim harmful-leak-signal, claim harmful-leak-noise"),
    Statement("Lemma E.6", "with probability 1/2 fresh noise values and margin are at most 1/2; L_D >= 0.1", "",
              "theory.HARMFUL_LOSS_FLOOR_PROOF", "claim theorem-quiet-noise, claim theorem-small-margin, claim "
              "theorem-harmful-loss, claim quiet-noise-in-fig1, claim small-margin-in-fig1"),
    Statement("Eqs 181-195", "alpha and beta", "beta_++ is missing: it equals alpha_++", "trials.Grams", FORMS),
    Statement("F.4", "signs and explicit bounds of alpha and beta", "1/6 for 1/5 in two of them",
              "theory.coefficient_bounds, theory.signs_as_predicted", LEMMAS),
    Statement("F.12", "why lower orders are small; rows of alpha sum to 0", "", "theory.lower_order_ratios",
              f"{LEMMAS}, {FORMS}"),
    Statement("Appendix G", "augmentation: copies against noise", "", "theory.control_after_augmentation", LEMMAS),
)
# fmt: on
