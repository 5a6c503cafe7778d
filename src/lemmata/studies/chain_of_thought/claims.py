"""What the document says of chains of thought, and what follows from it; and the ledger of its numbered statements."""

from math import inf

from lemmata.study import Claim, Statement

ZERO = (-inf, 0.01)
ZERO_WHY = "the statement is zero with high probability; a thousand prompts tell 1 % from more"
VOTE = (-inf, 0.06)
VOTE_WHY = (
    "a thousand prompts give a deviation of 0.015, the largest of 175 lengths and runs lies 2.8 of these out (0.042), and the law "
    "and attention below 1 leave a point or two"
)
RISE = "no rise would refute it"
SUFFICIENT = "the printed exponent of a sufficient length"
MATCH = {"variable": "cot_error", "over": "match_fraction"}
TAU = {"variable": "cot_error", "over": "trajectory"}
RHO = {"variable": "cot_error", "over": "primacy"}
ICL = {"variable": "icl_error"}
LEMMA = (-0.05, inf)
LEMMA_WHY = "a twentieth of alpha/K^3: terms of order 1/l with l = 20 examples are dropped in the proof"

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    # Figures 7.3 to 7.5
    Claim("attention-matches", "At every reasoning step the attention on context columns of the same step and pattern is at least "
          "1 - eps (here 0.9 after 600 steps of size 10)", "fig7-3a", "Proposition 3, (7.23)", "for-all", "at least 0.9, every step",
          (0.9, inf), "1 - p is sqrt(M/(2 eta t)) = 0.04 by the tail law, more where few examples match", "matched_mass",
          region="enough_examples", conditions="cot_conditions"),
    Claim("cot-to-zero", "With (alpha' tau rho)^-2 log M examples (constant 1) the chain-of-thought error is zero", "fig7-3a",
          "Theorem 4, (7.20)", "for-all", "0 at 60 examples", ZERO, ZERO_WHY, "at_longest", {"variable": "cot_error"},
          region="enough_examples", conditions="cot_conditions"),
    Claim("cot-match", "The smaller alpha', the larger the chain-of-thought error at a given length", "fig7-3a", "Figure 7.3 (a)",
          "order", "rises from each alpha' to the next smaller", (0.0, inf), RISE, "ordered", {**MATCH, "length": 12},
          conditions="cot_conditions"),
    Claim("cot-trajectory", "The smaller tau, the larger the chain-of-thought error at a given length", "fig7-3b",
          "Figure 7.3 (b)", "order", "rises from each tau to the next smaller", (0.0, inf), RISE, "ordered", {**TAU, "length": 8},
          conditions="cot_conditions"),
    Claim("cot-primacy", "The smaller rho, the larger the chain-of-thought error at a given length", "fig7-3c", "Figure 7.3 (c)",
          "order", "rises from each rho to the next smaller", (0.0, inf), RISE, "ordered", {**RHO, "length": 12},
          conditions="cot_conditions"),
    Claim("cot-length-match", "The length needed grows no faster than alpha'^-2", "fig7-3a", "Theorem 4, (7.20)", "bound",
          "exponent at least -2", (-2.0, inf), SUFFICIENT, "length_exponent", MATCH, conditions="cot_conditions"),
    Claim("cot-length-trajectory", "The length needed grows no faster than tau^-2", "fig7-3b", "Theorem 4, (7.20)", "bound",
          "exponent at least -2", (-2.0, inf), SUFFICIENT, "length_exponent", TAU, conditions="cot_conditions"),
    Claim("cot-length-primacy", "The length needed grows no faster than rho^-2", "fig7-3c", "Theorem 4, (7.20)", "bound",
          "exponent at least -2", (-2.0, inf), SUFFICIENT, "length_exponent", RHO, conditions="cot_conditions"),
    Claim("cot-vote", "The trained layer errs as a vote of the matching examples does (ours)", "fig7-3a", "README, the vote",
          "for-all", "within 0.06 of the law of the vote", VOTE, VOTE_WHY, "vote_gap", {"variable": "cot_error"},
          conditions="training_conditions"),
    Claim("icl-match", "The smaller alpha', the larger the in-context error at a given length", "fig7-4a", "Figure 7.4 (a)",
          "order", "rises from each alpha' to the next smaller", (0.0, inf), RISE, "ordered",
          {**ICL, "over": "match_fraction", "length": 12}, conditions="icl_conditions"),
    Claim("icl-trajectory", "The smaller tau, and with it tau_o, the larger the in-context error", "fig7-4b", "Figure 7.4 (b)",
          "order", "rises from each tau to the next smaller", (0.0, inf), RISE, "ordered",
          {**ICL, "over": "trajectory", "length": 12}, conditions="icl_conditions"),
    Claim("icl-primacy", "The smaller rho, and with it rho_o, the larger the in-context error", "fig7-4c", "Figure 7.4 (c)",
          "order", "rises from each rho to the next smaller", (0.0, inf), RISE, "ordered",
          {**ICL, "over": "primacy", "length": 12}, conditions="icl_conditions"),
    Claim("icl-length-match", "The length that in-context learning needs grows no faster than alpha'^-2", "fig7-4a",
          "Theorem 5 (b), (7.22)", "bound", "exponent at least -2", (-2.0, inf), SUFFICIENT, "length_exponent",
          {**ICL, "over": "match_fraction"}, conditions="icl_conditions"),
    Claim("icl-length-primacy", "The length that in-context learning needs grows no faster than rho_o^-2 (here rho_o = rho)",
          "fig7-4c", "Theorem 5 (b), (7.22)", "bound", "exponent at least -2", (-2.0, inf), SUFFICIENT, "length_exponent",
          {**ICL, "over": "primacy"}, conditions="icl_conditions"),
    Claim("icl-vote", "In-context answers err as a vote over the final labels does, which is exact (ours)", "fig7-4a",
          "README, the vote", "for-all", "within 0.06 of the law of the vote", VOTE, VOTE_WHY, "vote_gap", ICL, conditions="training_conditions"),
    Claim("icl-fails", "Where Condition 7.3.2 fails, the in-context error is at least of order one whatever the length", "fig7-5",
          "Theorem 5 (a)", "for-all", "at least 0.25 at every length", (0.25, inf), "half of the limit 1/2", "at_any_length", ICL,
          region="fails", conditions="icl_conditions"),
    Claim("icl-limit", "Where Condition 7.3.2 fails, the in-context error tends to the share of rows whose likeliest label is wrong, "
          "here 1/2 (ours)", "fig7-5", "Theorem 5, README", "law", "1/2", (0.4, 0.6), "a tenth: 1280 examples leave some of the rows "
          "undecided at rho_o = 0.1", "mean_at_longest", ICL, value=0.5, region="fails", conditions="icl_conditions"),
    Claim("icl-succeeds", "Where Condition 7.3.2 holds, the in-context error falls with the length", "fig7-5",
          "Theorem 5 (b), Figure 7.5", "bound", "at most half of what it was", (-inf, 0.5), "half, from 5 to 1280 examples", "fall",
          ICL, region="holds", conditions="icl_conditions"),
    Claim("cot-where-icl-fails", "Where in-context learning fails, the chain of thought still succeeds", "fig7-5",
          "Theorems 4 and 5, Figure 7.5", "bound", "at most half of what it was", (-inf, 0.5), "half, from 5 to 1280 examples",
          "fall", {"variable": "cot_error"}, region="fails", conditions="cot_conditions"),
    Claim("last-step-where-icl-fails", "That still holds when only the last step of the chain of thought is looked at", "fig7-5",
          "footnote 32", "bound", "at most half of what it was", (-inf, 0.5), "half, from 5 to 1280 examples", "fall",
          {"variable": "last_step_error"}, region="fails", conditions="cot_conditions"),
    # Training
    Claim("two-stages", "Attention leaves the other steps before it settles on the matching pattern", "fig7-6",
          "Lemmas F.3.6, F.3.7, Figure 7.6", "for-all", "stage one ends first", (0.0, inf), "the order itself", "stage_gap",
          conditions="training_conditions"),
    Claim("stage-one-exponent", "The first stage lasts at most of the order alpha^-2", "stage-one", "Lemma F.3.6, (F.11)", "bound",
          "exponent at least -2", (-2.0, inf), "an upper bound on a time", "stage_exponent", conditions="training_conditions"),
    Claim("growth-bound", "In the first stage the logit gap of the same over other steps is at least the sum of 2 eta alpha^2/K^3 "
          "(1 - p)^2 over the steps", "iterations", "(F.134), (F.135)", "for-all", "at least 1 times", (1.0, inf), "the bound itself",
          "growth_share", conditions="training_conditions"),
    Claim("gradient-same-same", "In the first stage the gradient between columns of the same pattern and step is at most (F.7)",
          "iterations", "Lemma F.3.5, (F.7)", "for-all", "inside", LEMMA, LEMMA_WHY, "gradient_margin", {"line": 0},
          conditions="training_conditions"),
    Claim("gradient-other-same", "The gradient between columns of other patterns and the same step lies between the two sides of "
          "(F.9)", "iterations", "Lemma F.3.5, (F.9)", "for-all", "inside", LEMMA, LEMMA_WHY, "gradient_margin", {"line": 1},
          conditions="training_conditions"),
    Claim("gradient-same-other", "The gradient between columns of the same pattern and other steps lies between the two sides of "
          "(F.8)", "iterations", "Lemma F.3.5, (F.8)", "for-all", "inside", LEMMA, LEMMA_WHY, "gradient_margin", {"line": 2},
          conditions="training_conditions"),
    Claim("gradient-other-other", "The gradient between columns of other patterns and other steps lies between the two sides of "
          "(F.10)", "iterations", "Lemma F.3.5, (F.10)", "for-all", "inside", LEMMA, LEMMA_WHY, "gradient_margin", {"line": 3},
          conditions="training_conditions"),
    Claim("late-same-same", "In the second stage the gradient between columns of the same pattern and step is at most "
          "-4 p (1 - p)^2/(2M)", "iterations", "Lemma F.3.7, (F.13)", "for-all", "at most -4 units", (-inf, -4.0), "the bound itself",
          "late_rate", {"line": 0}, conditions="training_conditions"),
    Claim("late-other-same", "In the second stage the gradient between columns of other patterns and the same step is at most "
          "p (1 - p)^2/(2M) in size", "iterations", "Lemma F.3.7, (F.15)", "for-all", "between -1 and 1 units", (-1.0, 1.0),
          "the bound itself", "late_rate", {"line": 1}, conditions="training_conditions"),
    Claim("late-same-other", "In the second stage the gradient between columns of the same pattern and other steps is at most eps in "
          "size (eps = 5 %, from T_1 on)", "iterations", "Lemma F.3.7, (F.14)", "for-all", "at most 1 eps", (-inf, 1.0),
          "the bound itself", "late_size", {"line": 2}, conditions="training_conditions"),
    Claim("late-other-other", "In the second stage the gradient between columns of other patterns and other steps is at most eps in size "
          "(eps = 5 %, from T_1 on)", "iterations", "Lemma F.3.7, (F.16)", "for-all", "at most 1 eps", (-inf, 1.0),
          "the bound itself", "late_size", {"line": 3}, conditions="training_conditions"),
    Claim("iterations-loss", "The steps to a loss eps grow no faster than 1/eps", "iterations", "Theorem 3, (7.15)", "bound",
          "exponent at least -1", (-1.0, inf), "the printed exponent of a sufficient number", "time_exponent_in_loss",
          conditions="training_conditions"),
    Claim("iterations-patterns", "The steps to a small loss are linear in M", "iterations", "Theorem 3, (7.15)", "law", "1",
          (0.8, 1.2), "corrections of order 1/M with M = 10 and the first stage", "time_exponent_in", {"over": "patterns"}, value=1.0,
          conditions="training_conditions"),
    Claim("iterations-steps", "The steps to a small loss do not grow with K (the print has K)", "iterations",
          "Theorem 3, (7.15), mended", "rival", "exponent 0 in K", (-0.3, 0.3), "a third of the printed exponent either way",
          "time_exponent_in", {"over": "reasoning_steps"}, value=0.0, rivals={"the print, M K/(eta eps)": 1.0},
          conditions="training_conditions"),
    Claim("tail-steps", "Late in training (1 - p)^2 goes as M/(2 eta t), without the K of the print", "iterations",
          "Lemma F.3.7, (F.26)", "rival", "exponent 0 in K", (-0.3, 0.3), "a third of the printed exponent either way",
          "tail_exponent", value=0.0, rivals={"the print, K M/(eta t)": 1.0}, conditions="training_conditions"),
    Claim("tail-constant", "Late in training (1 - p)^2 2 eta t / M is 1 (mended law; ours)", "iterations", "README, the tail", "law",
          "1", (0.8, 1.25), "corrections of order 1/M with M = 10 to 40, and p not yet 1", "mean_tail_constant", value=1.0,
          conditions="training_conditions"),
    # Test patterns and noise
    Claim("span-printed", "Test patterns in the span of the training patterns, whatever they are, are reasoned on without error",
          "span", "Theorem 4 as printed, (7.19)", "for-all", "0 at 40 examples", ZERO, ZERO_WHY, "at_longest",
          {"variable": "cot_error"}, region="in_span", conditions="cot_conditions"),
    Claim("span-mended", "Test patterns in the span whose coefficient sums stay away from sqrt(M) are reasoned on without error",
          "span", "Theorem 4, mended", "for-all", "0 at 40 examples", ZERO, ZERO_WHY, "at_longest", {"variable": "cot_error"},
          region="in_span_off_the_mean", conditions="cot_conditions"),
    Claim("outside-errs", "Test patterns outside the span are not reasoned on (ours: the negative control)", "span",
          "README, the span", "bound", "above 1/2", (0.5, inf), "guessing among ten patterns errs in nine of ten", "mean_at_longest",
          {"variable": "cot_error"}, region="outside"),
    Claim("vote-straight", "On test patterns with equal coefficient sums the layer errs as the vote does (ours)", "span",
          "README, the vote", "for-all", "within 0.06 of the law of the vote", VOTE, VOTE_WHY, "vote_gap", {"variable": "cot_error"},
          region="straight"),
    Claim("vote-rotated", "On random rotations of the training patterns the layer errs as the vote does (ours)", "span",
          "README, the vote", "for-all", "within 0.06 of the law of the vote", VOTE, VOTE_WHY, "vote_gap", {"variable": "cot_error"},
          region="rotated"),
    Claim("noise-harmless", "With (alpha' tau rho)^-2 log M examples the chain-of-thought error is zero whatever the noise on the test "
          "tokens, up to norm sqrt(2)/2 and orthogonal to the test patterns", "noise", "(7.11), Theorem 4", "for-all",
          "0 at 60 examples", ZERO, ZERO_WHY, "at_longest", {"variable": "cot_error"}, region="enough_examples",
          conditions="cot_conditions"),
    Claim("noise-unchanged", "With fewer examples such noise leaves the error as it is too (ours)", "noise", "README, noise", "for-all",
          "within 0.03 of none", (-inf, 0.03), "three times the error of a thousand paired prompts", "noise_change",
          conditions="cot_conditions"),
    Claim("training-noise-harmless", "The same noise on the training tokens does not raise the error (ours)", "training-noise",
          "README, noise", "for-all", "at most 0.03 above none", (-inf, 0.03), "as for the test", "noise_rise",
          conditions="cot_conditions"),
    # Several layers
    Claim("layers-concentrate", "In a network of three layers and two heads, every layer has a head that pays most attention to columns "
          "of the same pattern and step", "fig7-7", "Figure 7.7", "for-all", "leads in every layer", (0.0, inf), "the order itself",
          "lead_of_matching"),
    Claim("sinusoids-concentrate", "With sinusoidal positions, three layers and one head, every layer pays most attention to columns "
          "of the same pattern and step", "figF-1", "Figure F.1", "for-all", "leads in every layer", (0.0, inf), "the order itself",
          "lead_of_matching"),
    Claim("sinusoids-lower", "With sinusoidal positions that attention is lower than the almost 1 of Figure 7.6", "figF-1",
          "Section F.1.3", "bound", "below 0.95", (-inf, 0.95), "one layer reaches 0.96 on training prompts", "largest_matching"),
    # Ways to the same result
    Claim("classes-follow", "One number for every class of entries of W, on expected counts, follows the attention of drawn prompts "
          "(ours)", "classes", "README, three ways", "for-all", "within 0.03 along all of p(t)", (-inf, 0.03),
          "corrections of order 1/l with l = 20 examples; 120 prompts are watched", "classes_gap"),
    Claim("sums-conserved", "The sums of W over patterns and over steps are conserved", "agreement", "README, invariants (exact)",
          "identity", "0", (-inf, 1e-10), "rounding over the steps of a run", "drift"),
    Claim("two-ways", "W in the basis of patterns follows the weights themselves", "agreement", "README, three ways", "identity", "0",
          (-inf, 1e-9), "rounding over the steps of a run", "disagreement"),
)

LEDGER: tuple[Statement, ...] = (
    Statement("Theorem 3", "l_tr >= 1/alpha examples and T >= alpha^-2 K^3 log(K/eps)/eta + M K (1/alpha + 1/eps)/eta iterations give "
              "a loss of order eps", "the tail is M/(2 eta t), without K", "theory.iterations, theory.loss_time, theory.tail_gap",
              "claim iterations-loss, claim iterations-patterns, claim iterations-steps"),
    Statement("Theorem 4", "zero chain-of-thought error for test patterns in the span with l >= (alpha' tau rho)^-2 log M",
              "coefficient sums must stay away from sqrt(M)", "theory.cot_examples, theory.span_logit",
              "claim cot-to-zero, claim span-printed, claim span-mended, claim cot-length-match, claim cot-length-trajectory, "
              "claim cot-length-primacy, claim noise-harmless, claim noise-unchanged"),
    Statement("Theorem 5", "in-context error at least of order one where Condition 7.3.2 fails; zero with "
              "l >= (alpha' tau_o rho_o)^-2 log M where it holds", "the limit is the share of rows whose likeliest label is wrong",
              "theory.icl_examples, theory.icl_limit, theory.icl_error",
              "claim icl-fails, claim icl-limit, claim icl-succeeds, claim icl-length-match, claim icl-length-primacy"),
    Statement("Proposition 3", "attention of at least 1 - eps on the columns of the same step and pattern", "",
              "theory.match_share", "claim attention-matches"),
    Statement("footnote 32", "the comparison with in-context learning holds for the last step alone too", "", "",
              "claim last-step-where-icl-fails"),
    Statement("Lemma F.3.5", "signs and bounds of the gradient between columns in the first stage", "(F.8)'s upper bound fails for "
              "some K and M", "theory.gradient_bounds, theory.first_gradient",
              "claim gradient-same-same, claim gradient-same-other, claim gradient-other-same, claim gradient-other-other"),
    Statement("Lemma F.3.6", "other steps lose their attention within alpha^-2 K^3 log(K/eps)/eta steps", "an upper bound",
              "theory.stage1_time, measures.growth_share",
              "claim stage-one-exponent, claim growth-bound, claim two-stages"),
    Statement("Lemma F.3.7", "matching patterns gain at a rate of order eta p (1-p)^2/(2M)", "du/dt = eta p (1-p)^2/M",
              "measures.late_rate, measures.late_size, theory.stage2_curve, theory.tail_gap_printed, theory.stage2_time, theory.tail_time",
              "claim late-same-same, claim late-other-same, claim late-same-other, claim late-other-other, claim tail-constant, claim tail-steps"),
    Statement("(F.71) to (F.73)", "products of columns count what they share", "c_k = (u_k; 0)", "network.tokens_of",
              "test test_products_of_tokens_count_what_they_share"),
    Statement("Example 1", "a chain of thought succeeds where in-context learning errs on half of the inputs", "", "theory.icl_error",
              "test test_example_1_of_the_document"),
    Statement("proof of Theorem 4", "right trajectories are fewer than (1 - rho/2) alpha' tau l with probability at most "
              "exp(-c l rho^2 alpha' tau)", "c = 1/8", "theory.wrong_count_bound, theory.chernoff_exact",
              "test test_the_tail_of_right_trajectories"),
    Statement("(F.46) to (F.48)", "a test pattern in the span gets the logit of the training patterns on itself",
              "diag (M - S^2)/(M - 1), S its coefficient sum", "theory.span_logit", "claim span-printed, claim vote-rotated"),
)
