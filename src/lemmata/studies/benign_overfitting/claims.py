"""What the paper says, and what follows from it, as statements that results can contradict; and the ledger of all its
numbered statements."""

from math import exp, inf, log

from lemmata.study import Claim, Statement

MOST = (0.9, inf)
MOST_WHY = "the paper has probability 1 - 1/d: at least 9 runs in 10, the interval included"
FEW = (0.7, inf)
FEW_WHY = "in all runs; with 16 seeds, 7 runs in 10 with the interval included is what can be told"
SLOPE_WHY = "constant within 15 % over the grid"
FLOOR = 0.5 * log(1 + exp(-0.5))
"""The floor of the test loss in Lemma E.6: 0.237."""
ENDED = ("capped", "diverged")
"""Where reaching the loss is part of the statement, runs that do not count against it."""

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    # Figure 1: the phase diagram
    Claim("benign-generalises", "Where N SNR^2 is large, with probability 1 - 1/d the training loss reaches eps and "
          "the test loss is o(1) (here: below 0.2, in cells with N SNR^2 >= 2000)", "fig1", "Theorem 4.1",
          "probability", "test loss < 0.2 in every run", MOST, MOST_WHY, "share",
          {"variable": "test_loss", "at_most": 0.2}, region="benign_cells", conditions="benign_conditions", uses=ENDED),
    Claim("harmful-fits-but-fails", "Where N SNR^2 is small, with probability 1 - 1/d the training loss reaches eps "
          "and the test loss is at least 0.1 (cells with N SNR^2 <= 400)", "fig1", "Theorem 4.2, Lemma E.6",
          "probability", "test loss >= 0.1 in every run", MOST, MOST_WHY, "share",
          {"variable": "test_loss", "at_least": 0.1}, region="harmful_cells", conditions="harmful_conditions",
          uses=ENDED),
    Claim("harmful-loss-floor", "In the harmful regime the test loss stays above log(1 + e^-1/2)/2 = 0.237, the "
          "number in the proof", "fig1", "proof of Lemma E.6", "probability", "test loss >= 0.237 in every run", MOST,
          MOST_WHY, "share", {"variable": "test_loss", "at_least": FLOOR}, region="harmful_cells",
          conditions="harmful_conditions", uses=ENDED),
    Claim("boundary-exponent", "N SNR^2 decides: where the test loss passes 0.2, SNR falls as N^-1/2", "fig1",
          "Theorems 4.1 and 4.2, Section 6", "law", "-1/2", (-0.62, -0.38), "N SNR^3 (convolutional networks) would "
          "give -1/3, N SNR -1: both outside", "cut_exponent", value=-0.5, conditions="conditions"),
    Claim("winner-exponent", "N SNR^2 decides: where the signal's value overtakes the strong noise's, SNR falls as "
          "N^-1/2", "fig1", "Theorems 4.1 and 4.2", "law", "-1/2", (-0.62, -0.38), "as boundary-exponent",
          "winner_exponent", value=-0.5, conditions="conditions"),
    Claim("boundary-constant", "The test loss passes 0.2 at N SNR^2 = 2 C_p^2 (mean field; ours), up to a factor 2",
          "fig1", "README, the constant of the boundary", "law", "1 (times 2 C_p^2)", (0.5, 2.0),
          "mean field leaves out noise, finite steps and where exactly the loss passes 0.2: a factor 2", "cut_constant",
          value=1.0, conditions="conditions"),
    Claim("paper-curve", "The curve N SNR^2 = 1000 almost follows the line between test losses above and below 0.2 "
          "(cells at a factor 2 and more from it)", "fig1", "Figure 1", "probability", "all runs on their side", MOST,
          "at least 9 runs in 10, the interval included", "told_apart", {"curve": "paper"},
          region="off_the_paper_curve", conditions="conditions"),
    Claim("mean-field-curve", "The curve N SNR^2 = 2 C_p^2 does so too (mean field; ours)", "fig1",
          "README, the constant of the boundary", "probability", "all runs on their side", MOST,
          "at least 9 runs in 10, the interval included", "told_apart", {"curve": "mean field"},
          region="off_the_mean_field", conditions="conditions"),
    Claim("feedback-curve", "With attention feedback the winner flips at N SNR^2 = 2 C_p^2 c*(N, M) (ours), within "
          "15 %", "fig1", "README, the constant of the boundary", "law", "1", (0.85, 1.15), "the grid's steps of "
          "signal norm are 10 to 50 % apart where the boundary lies", "flip", {"curve": "feedback"}, value=1.0,
          conditions="conditions"),
    Claim("lead-in-fig1", "Stage I ends: at some step the signal's value is 3M times that of any noise token, in "
          "every sample, and stays so (cells with N SNR^2 >= 2000)", "fig1", "Lemmas 5.2 and 5.3", "probability",
          "in every run", MOST, MOST_WHY, "lead_lasts", region="benign_cells", conditions="benign_conditions"),
    Claim("norms-in-fig1", "Squared norms of queries and keys keep their order at all steps (cells with N SNR^2 >= "
          "2000)", "fig1", "C(t), G(t)", "for-all", "at most a factor 3", (-inf, 3.0), "Theta(1) with the constants "
          "that Lemma C.3 has at the start, 1/2 and 3/2", "norm_change", region="benign_cells",
          conditions="benign_conditions"),
    Claim("fresh-noise-in-fig1", "On fresh data no noise token has a value above 1 (cells with N SNR^2 >= 2000)",
          "fig1", "Lemma D.9", "probability", "in every run, for all 100 points", MOST, MOST_WHY, "share",
          {"variable": "fresh_noise_value", "at_most": 1.0}, region="benign_cells", conditions="benign_conditions"),
    Claim("quiet-noise-in-fig1", "With probability 1/2 every noise token of a fresh point has a value within 1/2 "
          "(cells with N SNR^2 <= 400)", "fig1", "proof of Lemma E.6", "probability",
          "for half of the points, in every run", MOST, MOST_WHY, "share",
          {"variable": "quiet_fraction", "at_least": 0.5}, region="harmful_cells", conditions="harmful_conditions"),
    Claim("small-margin-in-fig1", "With probability 1/2 a fresh point has a margin of at most 1/2 (cells with N "
          "SNR^2 <= 400)", "fig1", "proof of Lemma E.6", "probability", "for half of the points, in every run", MOST,
          MOST_WHY, "share", {"variable": "small_margin_fraction", "at_least": 0.5}, region="harmful_cells",
          conditions="harmful_conditions"),
    # Figures 3 and 4: the dynamics
    Claim("benign-attention", "In the benign regime the attention of the signal query on the signal is nearly 1 at "
          "the end (here: above 0.95)", "fig3", "Eq. 64, Appendix A", "for-all", "above 0.95 in every run", (0.95, inf),
          "nearly 1, as the figure shows it", "end_attention", {"queries": ("signal",), "key": "signal"},
          conditions="benign_conditions"),
    Claim("harmful-attention", "In the harmful regime signal and strong-noise queries end with nearly all attention "
          "on the strong noise (here: above 0.9)", "fig4", "Eqs 165-170, Appendix A", "for-all",
          "above 0.9 in every run", (0.9, inf), "nearly 1, as the figure shows it", "end_attention",
          {"queries": ("signal", "strong"), "key": "strong"}, conditions="harmful_conditions"),
    Claim("benign-values", "In the benign regime the signal's value ends above the strong noise's in every sample",
          "fig3", "Lemma 5.4, Appendix A", "for-all", "every sample of every run", (1 - 1e-6, inf),
          "exact: a share of samples", "recorded", {"variable": "signal_wins"}, conditions="benign_conditions"),
    Claim("harmful-values", "In the harmful regime the strong noise's value ends above the signal's in every sample",
          "fig4", "N(t), Appendix A", "for-all", "every sample of every run", (-inf, 1e-6), "exact: a share of samples",
          "recorded", {"variable": "signal_wins"}, conditions="harmful_conditions"),
    Claim("benign-linear", "In stage II the signal's value grows at a linear rate, rather than exponentially or "
          "logarithmically", "fig3", "Lemma 5.3, Section 5.3", "probability", "all runs", FEW, FEW_WHY,
          "shape_of_signal_value", {"shape": "linear", "late": False}, conditions="benign_conditions"),
    Claim("benign-logarithmic", "In stage III, once the loss derivative decays, the signal's value grows "
          "logarithmically", "fig3", "Lemma 5.4", "probability", "all runs", FEW, FEW_WHY, "shape_of_signal_value",
          {"shape": "logarithmic", "late": True}, conditions="benign_conditions"),
    Claim("stage-order-in-fig3", "The stages come in order in the paper's own figure: the signal leads 3M times "
          "(T1), then the loss derivative leaves 1/2 (T2), then the loss is reached (T3)", "fig3", "Section 5.3",
          "probability", "all runs", FEW, FEW_WHY, "stages_in_order", conditions="benign_conditions"),
    Claim("norms-in-fig3", "Squared norms of queries and keys keep their order at all steps, in the paper's own figure",
          "fig3", "C(t), G(t)", "for-all", "at most a factor 3", (-inf, 3.0), "as norms-in-fig1", "norm_change",
          conditions="benign_conditions"),
    # Convergence times
    Claim("time-signal", "Benign convergence time is Theta(1/(eta eps |mu|^2 |w_O|^2)): it goes as |mu|^-2",
          "time-benign", "Theorem 4.1", "law", "-2", (-2.3, -1.7), SLOPE_WHY, "time_exponent", {"over": "signal_norm"},
          value=-2.0, conditions="benign_conditions", uses=("capped",)),
    Claim("time-eps-benign", "Benign convergence time goes as 1/eps", "time-benign", "Theorem 4.1", "law", "-1",
          (-1.15, -0.85), SLOPE_WHY, "loss_time_exponent", value=-1.0, conditions="benign_conditions",
          uses=("capped",)),
    Claim("time-constant-benign", "Benign convergence time is 2/(eta eps |mu|^2 |w_O|^2) (mean field; ours), within "
          "30 %", "time-benign", "README, times", "law", "1", (0.7, 1.3), "mean field starts at saturated attention; "
          "what comes before is a fraction of the whole time", "time_constant", {"regime": "benign"}, value=1.0,
          conditions="benign_conditions"),
    Claim("time-samples", "Harmful convergence time is Theta(N/(eta eps sigma_p^2 d |w_O|^2)): it goes as N",
          "time-harmful", "Theorem 4.2", "law", "1", (0.85, 1.15), SLOPE_WHY, "time_exponent", {"over": "samples"},
          value=1.0, conditions="harmful_conditions", uses=("capped",)),
    Claim("time-eps-harmful", "Harmful convergence time goes as 1/eps", "time-harmful", "Theorem 4.2", "law", "-1",
          (-1.15, -0.85), SLOPE_WHY, "loss_time_exponent", value=-1.0, conditions="harmful_conditions",
          uses=("capped",)),
    Claim("time-constant-harmful", "Harmful convergence time is N/(eta eps C_p^2 sigma_p^2 d |w_O|^2) (mean field; "
          "ours), within 30 %", "time-harmful", "README, times", "law", "1", (0.7, 1.3), "as time-constant-benign",
          "time_constant", {"regime": "harmful"}, value=1.0, conditions="harmful_conditions"),
    # The theorems inside their own conditions
    Claim("theorem-benign-loss", "Inside Condition 4.1 the test loss is o(1) as eps goes to 0: at most eps^(1/(2 "
          "M^2)) with the constants of the proof", "theorem-benign", "Theorem 4.1, Lemma D.10", "bound",
          "at least 1/8 (M = 2)", (0.125, inf), "the printed power of eps; any power above 0 is o(1)",
          "loss_over_target", region="whole_steps", conditions="benign_conditions"),
    Claim("theorem-benign-power", "Inside Condition 4.1 the test loss goes as eps^((2M-1)/M^2), because fresh noise "
          "queries attend to all tokens alike (mean field; ours)", "theorem-benign", "README, the test loss", "law",
          "3/4 (M = 2)", (0.7, 0.8), "attention of every query on the signal would give 1, of none 1/2",
          "loss_over_target", value=0.75, region="whole_steps", conditions="benign_conditions"),
    Claim("theorem-benign-time", "Inside Condition 4.1 the benign convergence time goes as 1/eps", "theorem-benign",
          "Theorem 4.1", "law", "-1", (-1.1, -0.9), "Theta with one constant for all eps: 10 % over three decades",
          "time_over_target", value=-1.0, region="whole_steps", conditions="benign_conditions"),
    Claim("step-schedule", "Steps that are a fixed fraction of the time gone by follow gradient flow, as Condition "
          "(6)'s would: halving them leaves the test loss as it is (ours)", "theorem-benign", "Condition 4.1 (6)",
          "law", "1", (0.97, 1.03), "a step is half a per cent of the time: several times its effect on a loss that "
          "goes as 1/t", "halved_steps", value=1.0, conditions="conditions"),
    Claim("theorem-fresh-attention", "On fresh data the signal query keeps at least 1/(2M) of its attention on the "
          "signal", "theorem-benign", "Lemma D.8", "for-all", "at least 1/(2M), all points of all runs", (1.0, inf),
          "the printed bound", "signal_attention_kept", conditions="benign_conditions"),
    Claim("theorem-fresh-noise", "Inside Condition 4.1 no noise token of a fresh point has a value above 1",
          "theorem-benign", "Lemma D.9", "for-all", "at most 1, all points of all runs", (-inf, 1.0),
          "the printed bound", "recorded", {"variable": "fresh_noise_value"}, conditions="benign_conditions"),
    Claim("theorem-norms", "Inside Condition 4.1 squared norms of queries and keys keep their order at all steps",
          "theorem-benign", "C(t), G(t)", "for-all", "at most a factor 3", (-inf, 3.0), "as norms-in-fig1",
          "norm_change", conditions="benign_conditions"),
    Claim("theorem-harmful-loss", "Inside Condition 4.1 with N SNR^2 <= 4 the test loss stays above log(1 + "
          "e^-1/2)/2 = 0.237", "theorem-harmful", "Theorem 4.2, Lemma E.6", "for-all", "at least 0.237 in every run",
          (FLOOR, inf), "the number in the proof, above the 0.1 of the lemma", "recorded", {"variable": "test_loss"},
          conditions="harmful_conditions"),
    Claim("theorem-harmful-time", "Inside Condition 4.1 the harmful convergence time goes as 1/eps", "theorem-harmful",
          "Theorem 4.2", "law", "-1", (-1.1, -0.9), "as theorem-benign-time", "time_over_target", value=-1.0,
          conditions="harmful_conditions"),
    Claim("theorem-harmful-stage1", "The strong noise's value leads 3M times no later than the explicit T1 of Lemma "
          "E.3", "theorem-harmful", "Lemma E.3", "for-all", "measured over T1 at most 1", (-inf, 1.0),
          "the printed bound", "stage1_over_bound", {"regime": "harmful"}, conditions="harmful_conditions"),
    Claim("theorem-quiet-noise", "With probability 1/2 every noise token of a fresh point has a value within 1/2",
          "theorem-harmful", "proof of Lemma E.6", "for-all", "half of the points, in every run", (0.5, inf),
          "the printed probability", "recorded", {"variable": "quiet_fraction"}, conditions="harmful_conditions"),
    Claim("theorem-small-margin", "With probability 1/2 a fresh point has a margin of at most 1/2", "theorem-harmful",
          "proof of Lemma E.6", "for-all", "half of the points, in every run", (0.5, inf), "the printed probability",
          "recorded", {"variable": "small_margin_fraction"}, conditions="harmful_conditions"),
    Claim("harmful-leak-signal", "Attention of the signal query off the strong noise is O(SNR^-2 LOG^3 / (|w_O|^2 "
          "d_h^1/2))", "theorem-harmful", "Eqs 165, 166, 169", "for-all", "at most 1 (constant 1)", (-inf, 1.0),
          "the printed order with its constant at 1", "leak_over_bound", {"query": "signal"},
          conditions="harmful_conditions"),
    Claim("harmful-leak-noise", "Attention of the strong-noise query off the strong noise is O(LOG^3 / (|w_O|^2 "
          "d_h^1/2))", "theorem-harmful", "Eqs 167, 168, 170", "for-all", "at most 1 (constant 1)", (-inf, 1.0),
          "the printed order with its constant at 1", "leak_over_bound", {"query": "strong"},
          conditions="harmful_conditions"),
    # Key dimension 1e12
    Claim("stage-order", "The stages come in order: the signal leads 3M times (T1), then the loss derivative leaves "
          "1/2 (T2), then the loss is reached (T3)", "literal-constants", "Section 5.3", "probability", "all runs",
          MOST, MOST_WHY, "stages_in_order", conditions="benign_conditions"),
    Claim("stage1-bound", "Stage I ends no later than the explicit T1 of Lemma D.5", "literal-constants", "Lemma D.5",
          "for-all", "measured over T1 at most 1", (-inf, 1.0), "the printed bound", "stage1_over_bound",
          {"regime": "benign"}, region="literal_benign", conditions="benign_conditions"),
    Claim("benign-linear-bounds", "From T1 to T2 the signal's value is at least eta |mu|^2 |w_O|^2 (t - T1) / (10 M)",
          "literal-constants", "B(t), Claim 1", "for-all", "measured over that line at least 1", (1.0, inf),
          "the constant of the proof", "linear_floor", conditions="benign_conditions"),
    Claim("lead-lasts", "From T1 on the signal's value stays 3M times that of any noise token", "literal-constants",
          "B(t), F(t)", "probability", "all runs", MOST, MOST_WHY, "lead_lasts", conditions="benign_conditions"),
    Claim("asymptotic-constant", "At key dimension 1e12 the signal wins from N SNR^2 = 2 C_p^2 on (mean field; "
          "ours), within 25 %", "asymptotic-boundary", "README, the constant of the boundary", "law", "1", (0.8, 1.25),
          "mean field without attention; 25 % for what attention adds", "flip", {"curve": "mean field"}, value=1.0,
          conditions="conditions"),
    Claim("feedback-constant", "At key dimension 1e12 the signal wins from N SNR^2 = 2 C_p^2 c*(N, M) on, c* by mean "
          "field with attention (ours), within 5 %", "asymptotic-boundary", "README, the constant of the boundary",
          "law", "1", (0.95, 1.05), "the grid around the flip is 4 to 8 % fine", "flip", {"curve": "feedback"},
          value=1.0, conditions="conditions"),
    Claim("feedback-scale", "With smaller initial queries and keys the flip comes down to 2 C_p^2 as c*(N, M, H) "
          "says (ours), within 5 %", "feedback", "README, the constant of the boundary", "law", "1", (0.95, 1.05),
          "as feedback-constant", "flip", {"curve": "feedback", "over": "start_scale"}, value=1.0,
          conditions="conditions"),
    Claim("leak-signal", "Attention of the signal query on noise is O(N LOG^3 / d_h^1/2): it falls as d_h^-1/2",
          "attention-leak", "Eq. 64", "bound", "at most -1/2", (-inf, -0.4), "logarithms are hidden in the order",
          "leak_exponent", {"query": "signal"}, conditions="benign_conditions"),
    Claim("leak-noise", "Attention of the strong-noise query on noise is O(N SNR^2 LOG^3 / d_h^1/2): it falls as "
          "d_h^-1/2", "attention-leak", "Eq. 65", "bound", "at most -1/2", (-inf, -0.4),
          "logarithms are hidden in the order", "leak_exponent", {"query": "strong"}, conditions="benign_conditions"),
    # The mechanism
    Claim("attention-speeds-values", "Queries and keys promote the signal's value: with them frozen, the training "
          "loss comes down later", "arms", "Section 5.2", "order", "above 1 (ratio of steps)", (1.0, inf), "a sign",
          "frozen_attention_time", region="benign_arms", conditions="benign_conditions", uses=("capped",)),
    Claim("attention-speeds-noise", "In the harmful regime too: with queries and keys frozen, the training loss "
          "comes down later", "arms", "Section 5.2", "order", "above 1 (ratio of steps)", (1.0, inf), "a sign",
          "frozen_attention_time", region="harmful_arms", conditions="harmful_conditions", uses=("capped",)),
    Claim("values-drive-attention", "Values promote attention on the signal: with them frozen, the signal query pays "
          "it less", "arms", "Section 5.2", "order", "above 0 (difference of attention)", (0.0, inf), "a sign",
          "frozen_values_attention", {"key": "signal"}, region="benign_arms", conditions="benign_conditions",
          uses=("capped",)),
    Claim("values-drive-noise", "In the harmful regime values promote attention on the strong noise", "arms",
          "Section 5.2", "order", "above 0 (difference of attention)", (0.0, inf), "a sign", "frozen_values_attention",
          {"key": "strong"}, region="harmful_arms", conditions="harmful_conditions", uses=("capped",)),
    Claim("ratio-exponent", "The N SNR^2 at which the test loss passes 0.2 grows as C_p^2 (mean field; ours)",
          "noise-ratio", "README, the constant of the boundary", "law", "2", (1.7, 2.3), "an exponent of 1 or 3 "
          "would be another mechanism; 15 % for where exactly the loss passes 0.2", "ratio_exponent", {"winner": False},
          value=2.0, conditions="conditions"),
    Claim("ratio-exponent-winner", "The N SNR^2 at which the signal's value wins over the strong noise's grows as "
          "C_p^2 (mean field; ours)", "noise-ratio", "README, the constant of the boundary", "law", "2", (1.7, 2.3),
          "an exponent of 1 or 3 would be another mechanism; the grid's steps of a factor 1.5 allow 15 %",
          "ratio_exponent", {"winner": True}, value=2.0, conditions="conditions"),
    Claim("needs-strong-token", "Without a strong noise token no single noise token gets most of the attention in "
          "runs that do not generalise: that it does rests on the strong token", "no-strong-token",
          "Section 7, stated limitation", "bound", "largest share below 1/2", (-inf, 0.5), "with a strong token this "
          "share is above 0.9 (harmful-attention)", "noise_share", region="high_losses", uses=("capped",)),
    # The rival
    Claim("rival-exponent", "When SNR is below 1 the transformer needs fewer samples than a ReLU^q network: N SNR^2, "
          "not N SNR^q (q = 3)", "rival-transformer", "Section 4, comparison", "rival", "-1/2", (-0.6, -0.4),
          "half way to the rival's -1/3 is -0.417", "cut_exponent", value=-0.5,
          rivals={"ReLU^3 convolutional network (Cao et al. 2022)": -1 / 3}, conditions="conditions"),
    Claim("rival-network", "A ReLU^q convolutional network on the same data generalises from N SNR^q = const on (q = "
          "3)", "rival-convolution", "Section 4, comparison; Cao et al. 2022", "rival", "-1/3", (-0.4, -0.26),
          "half way to the transformer's -1/2 is -0.417", "cut_exponent", value=-1 / 3,
          rivals={"transformer": -0.5}),
    # Two ways to every result
    Claim("exact-reductions", "Vectorised Q and K and scalarised V (row form), and their inner products (Gram form), "
          "give the weights' own trajectory", "agreement", "Lemmas 5.1, B.2, B.3", "identity", "0", (-inf, 1e-9),
          "rounding in float64, grown over hundreds of steps", "exact_reductions", uses=("capped",)),
)
# fmt: on

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
              "theorem-benign-time, claim benign-generalises, claim time-signal"),
    Statement("Theorem 4.2", "1/(N SNR^2) = Omega(1): T = Theta(N/(eta eps sigma_p^2 d |w_O|^2)), L_S <= eps, L_D = "
              "Theta(1)", "", "theory.harmful_conditions, theory.harmful_stage3_end", "claim theorem-harmful-loss, "
              "claim theorem-harmful-time, claim harmful-fits-but-fails, claim time-samples"),
    Statement("Section 4, comparison", "below SNR 1 N SNR^2 needs fewer samples than N SNR^q", "", "network.Filters",
              "claim rival-exponent, claim rival-network"),
    Statement("Definitions 5.1, 5.2, B.1-B.3", "vectorised Q and K, scalarised V, alpha and beta", "", "trials.Rows",
              "claim exact-reductions"),
    Statement("Lemmas 5.1, B.2", "increments of gamma and rho", "", "trials.Rows", "claim exact-reductions"),
    Statement("Section 5.2", "W_Q, W_K and W_V promote each other", "", "figures.ARMS", "claim "
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
              "squared norms of queries and keys keep their order", "", "measures.norm_change",
              "claim theorem-norms, claim norms-in-fig1, claim norms-in-fig3"),
    Statement("B(t), Claim 1", "V_+ between two lines in stage II; 3M lead", "", "theory.linear_value_bounds",
              "claim benign-linear-bounds, claim lead-lasts"),
    Statement("H(t), Claims 2, 6", "logits on the signal rise, on noise fall", "", "", LEMMAS),
    Statement("E(t), I(t), M(t), Q(t), Claims 4, 8, 12, 16", "logits below log(d_h^1/2), then log(d_h^1/2/eps)", "",
              "theory.stage2_logit_bound, theory.stage3_logit_bound", LEMMAS),
    Statement("Eqs 64, 65, 108-111", "attention left on noise", "", "theory.benign_leak",
              "claim leak-signal, claim leak-noise"),
    Statement("Lemma D.7", "T = C/(eta eps |mu|^2 |w_O|^2) gives L_S <= eps", "", "theory.convergence_time",
              "claim time-eps-benign, claim time-constant-benign"),
    Statement("Lemma D.8", "a fresh signal query keeps 1/(2M) on the signal", "", "theory.least_signal_attention",
              "claim theorem-fresh-attention"),
    Statement("Eqs 119, 125, 129, 130", "movement of W_K", "", "theory.weight_movement", LEMMAS),
    Statement("Lemma D.9", "fresh noise values are at most 1", "sigma_p stands where the strong token has C_p sigma_p",
              "measures.recorded", "claim theorem-fresh-noise, claim fresh-noise-in-fig1"),
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
