"""What the document says of in-context learning, and what follows from it; and the ledger of its numbered statements."""

from math import inf, log

from lemmata.study import Claim, Statement

ZERO = (-inf, 0.05)
ZERO_WHY = "of order eps; two thousand prompts tell a loss of 0.05 from more with certainty"
ABOVE = (0.0, inf)
ONE = (-inf, 1.0)
ONE_WHY = "the printed order with its constant set to 1"
TWO_THIRDS = (-2 / 3 - 0.2, -2 / 3 + 0.2)
TENTHS = "two tenths keep -2/3 apart from -1 and from -1/3"

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    Claim("in-domain", "Trained on M_1 tasks that cover every pattern and label, the layer has a hinge loss of order eps on unseen "
          "tasks", "fig6-2", "Theorem 6.3.3", "for-all", "0", ZERO, ZERO_WHY, "hinge_at_end", region="one_shift",
          conditions="in_domain"),
    Claim("out-of-domain", "It has one of order eps on patterns that mix training patterns with coefficient sums of at least 1; here "
          "those of the experiments, which mix patterns that meet in training", "fig6-2", "Theorem 6.3.4", "for-all", "0", ZERO,
          ZERO_WHY, "hinge_at_end", {"kind": "partners"}, region="one_shift", conditions="out_of_domain"),
    Claim("out-of-domain-apart", "The same for mixtures of patterns that do not meet in training", "fig6-2",
          "Theorem 6.3.4, mended", "for-all", "0", ZERO, ZERO_WHY, "hinge_at_end", {"kind": "apart"}, region="one_shift",
          conditions="out_of_domain"),
    Claim("out-of-domain-shifts", "The same for the mixtures of the experiments with tasks of four shifts", "fig6-2",
          "Theorem 6.3.4, mended", "for-all", "0", ZERO, ZERO_WHY, "hinge_at_end", {"kind": "partners"}, region="four_shifts",
          conditions="out_of_domain"),
    Claim("out-of-domain-sums", "The same for any orthonormal mixtures with sums of at least 1, here 2, 1 and 1", "fig6-2",
          "Theorem 6.3.4 as printed", "for-all", "0", ZERO, ZERO_WHY, "hinge_at_end", {"kind": "sums"}, region="one_shift",
          conditions="out_of_domain"),
    Claim("out-of-domain-sums-shifts", "The same with tasks of four shifts", "fig6-2", "Theorem 6.3.4 as printed", "for-all", "0",
          ZERO, ZERO_WHY, "hinge_at_end", {"kind": "sums"}, region="four_shifts", conditions="out_of_domain"),
    Claim("attention", "In domain all attention but (2 - alpha')/(alpha' M_1) lies on contexts of the query's pattern", "fig6-2",
          "Corollary 6.4.3, (E.55)", "for-all", "at most 1", ONE, ONE_WHY, "mass_missing", region="one_shift",
          conditions="in_domain"),
    Claim("attention-partners", "The same out of domain, for the mixtures of the experiments", "fig6-2",
          "Corollary 6.4.3, (E.71), figure 6.2 B", "for-all", "at most 1", ONE, ONE_WHY, "mass_missing", {"kind": "partners"},
          region="one_shift", conditions="out_of_domain"),
    Claim("attention-apart", "The same out of domain, for mixtures of patterns that do not meet", "fig6-2",
          "Corollary 6.4.3, (E.71)", "for-all", "at most 1", ONE, ONE_WHY, "mass_missing", {"kind": "apart"},
          region="one_shift", conditions="out_of_domain"),
    Claim("projection-grows", "Queries grow along their own pattern during training, out of domain", "fig6-2",
          "(6.17), figure 6.2 A", "for-all", "at least 1.5 times", (1.5, inf), "half as much again tells growth from noise",
          "own_growth", {"norm": "query along its pattern"}, region="one_shift", conditions="out_of_domain"),
    Claim("projection-close", "The length of queries along their own pattern is close to their whole length, out of domain",
          "fig6-2", "figure 6.2 A", "bound", "at least 0.9", (0.9, inf), "close: nine tenths", "own_ratio",
          {"matrix": "query", "kind": "partners"}, region="one_shift", conditions="out_of_domain"),
    Claim("own-component", "A pattern's own component under W_K grows to at least sqrt(log M_1)", "fig6-2", "(6.17)", "for-all",
          "at least 1", (1.0, inf), ONE_WHY, "own_size", {"matrix": "key"}, region="one_shift", conditions="in_domain"),
    Claim("partner-component", "Components under W_K along a pattern that forms a training task with it are at most 1/M_1 of that",
          "fig6-2", "(6.18), (E.84)", "for-all", "at most 1", ONE, ONE_WHY, "stray", {"matrix": "key", "direction": "partner"},
          region="one_shift", conditions="in_domain"),
    Claim("other-component", "Components along other relevant patterns are at most 1/M_1 of that", "fig6-2", "(6.18), (E.83)",
          "for-all", "at most 1", ONE, ONE_WHY, "stray", {"matrix": "key", "direction": "other"}, region="one_shift",
          conditions="in_domain"),
    Claim("irrelevant-component", "Components along irrelevant patterns are at most 1/M_2 of that", "fig6-2", "(6.19), (E.85)",
          "for-all", "at most 1", ONE, ONE_WHY, "stray", {"matrix": "key", "direction": "irrelevant"}, region="one_shift",
          conditions="in_domain"),
    Claim("partner-balance", "Each of the two partners loses half of what the pattern itself gains (ours: W_K sum_j mu_j is "
          "conserved)", "fig6-2", "README, the conserved sum", "law", "1", (0.85, 1.15), "what other patterns gain or lose is a "
          "few per cent", "partner_balance", value=1.0, region="one_shift", conditions="in_domain"),
    Claim("feature-alignment", "Every large neuron's feature part has a cosine of at least 1 - 1/M_2 with the mean pattern",
          "fig6-2", "Proposition 6.4.5, (6.21)", "for-all", "at least 0.958", (1 - 1 / 24, inf), ONE_WHY, "lowest_cosine",
          {"part": "feature"}, region="one_shift", conditions="in_domain"),
    Claim("label-alignment", "Every large neuron's label part has a cosine of at least 1 - 1/M_1 with q or -q, as its vote",
          "fig6-2", "Proposition 6.4.5, (6.22)", "for-all", "at least 0.833", (1 - 1 / 6, inf), ONE_WHY, "lowest_cosine",
          {"part": "label"}, region="one_shift", conditions="in_domain"),
    Claim("feature-angle", "Except for some neurons the feature part is close to the mean pattern: the median angle is below 15 "
          "degrees", "fig6-2", "figure 6.2 C", "for-all", "cosine at least 0.966", (0.966, inf), "close: 15 degrees",
          "middle_cosine", {"part": "feature"}, region="one_shift", conditions="in_domain"),
    Claim("label-angle", "The label part is close to q or -q, as the neuron votes: the median cosine is above 0.95", "fig6-2",
          "figure 6.2 D", "for-all", "at least 0.95", (0.95, inf), "close: 18 degrees", "middle_cosine", {"part": "label"},
          region="one_shift", conditions="in_domain"),
    Claim("lucky-active", "Neurons that are lucky for some prompt become active on every prompt of their label", "fig6-2",
          "Lemma E.4.10", "for-all", "none idle", (-inf, 0.02), "two per cent allow for prompts without a match", "idle_lucky",
          region="one_shift", conditions="in_domain"),
    Claim("lucky-own-active", "Neurons that are lucky for a prompt are active on it after training", "fig6-2",
          "Lemma E.4.10, (E.38) and (E.39)", "for-all", "none idle", (-inf, 0.02), "two per cent allow for prompts without a match",
          "idle_on_own", region="one_shift", conditions="in_domain"),
    Claim("output-superlinear", "The output grows faster than linearly", "fig6-2", "(E.61)", "bound", "exponent above 1",
          (1.0, inf), "the linear term alone would refute it", "margin_exponent", region="one_shift", conditions="in_domain"),
    Claim("output-cubic", "It grows no faster than with the third power of the steps", "fig6-2", "(E.61)", "bound",
          "exponent at most 3", (-inf, 3.0), "the largest printed power", "margin_exponent", region="one_shift",
          conditions="in_domain"),

    Claim("gpt2-beyond-one", "The GPT-2 style model errs in less than 1 % of out-of-domain prompts for S_1 >= 1", "fig6-3",
          "figure 6.3 A", "for-all", "below 0.01", (-inf, 0.02), "0.01, and as much again for a test of two thousand prompts",
          "beyond_one", {"variable": "sum_error", "kind": "partners"}, region="gpt2", conditions="out_of_domain"),
    Claim("gpt2-below-one", "and deviates from that for S_1 < 1: at S_1 <= 0.3 it errs at least five times as often", "fig6-3",
          "figure 6.3 A", "bound", "above 0", ABOVE, "five times the largest error at S_1 >= 1", "below_over_above",
          {"kind": "partners"}, region="gpt2", conditions=""),
    Claim("layer-beyond-one", "The one layer errs in less than 1 % of out-of-domain prompts for S_1 >= 1", "fig6-3",
          "Theorem 6.3.4, figure 6.3 A", "for-all", "below 0.01", (-inf, 0.02), "0.01, and as much again for a test of two "
          "thousand prompts", "beyond_one", {"variable": "sum_error", "kind": "partners"}, region="layer",
          conditions="out_of_domain"),
    Claim("layer-below-one", "and at S_1 <= 0.3 at least five times as often", "fig6-3", "figure 6.3 A", "bound", "above 0", ABOVE,
          "five times the largest error at S_1 >= 1", "below_over_above", {"kind": "partners"}, region="layer", conditions=""),
    Claim("sum-matters", "The one layer's out-of-domain hinge loss falls as S_1 rises to 0.6", "fig6-3",
          "Theorem 6.3.4, (E.72)", "bound", "above 0", ABOVE, "no fall would refute it", "fall_with_sum",
          {"variable": "sum_hinge", "kind": "partners", "low": -1.2, "high": 0.6}, region="layer", conditions=""),
    Claim("sum-enough", "For S_1 >= 1 its hinge loss is that in domain", "fig6-3", "Theorem 6.3.4", "for-all", "at most 0.05 more",
          ZERO, ZERO_WHY, "excess_beyond_one", {"kind": "partners"}, region="layer", conditions="out_of_domain"),
    Claim("sum-enough-apart", "For S_1 >= 1 its hinge loss is that in domain, for mixtures of patterns that do not meet", "fig6-3",
          "Theorem 6.3.4, mended", "for-all", "at most 0.05 more", ZERO, ZERO_WHY, "excess_beyond_one", {"kind": "apart"},
          region="layer", conditions="out_of_domain"),
    Claim("effective-output", "F on a clean token is that of two groups of equal neurons, for every S_1 (ours)", "fig6-3",
          "README, the effective output", "for-all", "within 0.15", (-inf, 0.15), "large neurons differ by about a tenth, and "
          "small ones are left out", "effective_gap", region="layer", conditions="in_domain"),
    Claim("gpt2-fraction", "The smaller alpha', the longer the prompt that the GPT-2 style model needs in domain: the larger its "
          "error at a given length", "fig6-3", "figure 6.3 B", "order", "rises from each alpha' to the next smaller", ABOVE,
          "no rise would refute it", "length_order", {"variable": "error"}, region="gpt2", conditions="in_domain"),
    Claim("gpt2-fraction-out", "The same out of domain", "fig6-3", "figure 6.3 B", "order",
          "rises from each alpha' to the next smaller", ABOVE, "no rise would refute it", "length_order",
          {"variable": "ood_error", "kind": "partners"}, region="gpt2", conditions="out_of_domain"),
    Claim("test-length", "The test prompt length needed by one layer goes as 1/alpha'", "fig6-3", "(6.9)", "law", "-1",
          (-1.4, -0.6), "keeps -1 apart from -1/2 and -3/2; lengths are whole numbers between 2 and 20", "asked_length_exponent",
          {"variable": "error"}, value=-1.0, region="layer", conditions="in_domain"),
    Claim("vote", "In domain the layer errs as sharp attention does: where no context matches it votes over all (ours)", "fig6-3",
          "README, the vote", "for-all", "within 0.02 of the law", (-inf, 0.02), "a share of 8000 prompts has a standard error of at "
          "most 0.0056; of 21 fractions and lengths in three runs all stay within 3.53 of them, 0.0197, with probability 97.5 %",
          "vote_gap", region="layer", conditions="in_domain"),

    Claim("icl-robust", "At alpha' = 0.6 in-context learning needs fewer contexts for a small error than any classic learner",
          "fig6-4", "figure 6.4 B", "bound", "above 0 (logarithm of the ratio)", ABOVE, "no lead would refute it", "icl_lead",
          {"variable": "error", "fraction": 0.6}, conditions="in_domain"),
    Claim("icl-even", "At alpha' = 0.8 its advantage is not significant: less than a factor 2 in contexts", "fig6-4",
          "figure 6.4 A", "bound", "at most log 2", (-inf, log(2)), "a factor 2 in contexts is two steps of the grid", "icl_lead",
          {"variable": "error", "fraction": 0.8}, conditions="in_domain"),
    Claim("icl-robust-out", "The first of these out of domain", "fig6-4", "figure 6.4 B", "bound",
          "above 0 (logarithm of the ratio)", ABOVE, "no lead would refute it", "icl_lead",
          {"variable": "ood_error", "fraction": 0.6, "kind": "partners"}, conditions="out_of_domain"),

    Claim("small-share", "About 15 % of the neurons are small", "fig6-5", "figure 6.5 A", "law", "0.15", (0.05, 0.25),
          "a third of the lucky share either way", "mean_small_share", value=0.15, conditions="in_domain"),
    Claim("small-size", "Small neurons have rows of W_O W_V of length at most 1/sqrt(M_2)", "fig6-5", "Theorem 6.3.7, (6.14)",
          "for-all", "at most 1", ONE, "as printed, without a constant", "small_longest", conditions="in_domain"),
    Claim("large-size", "Large ones of at least 1/beta", "fig6-5", "Theorem 6.3.7, (6.14) and its proof", "for-all", "at least 1",
          (1.0, inf), ONE_WHY, "large_shortest", conditions="in_domain"),
    Claim("prune-small", "Pruning the small neurons does not change the out-of-domain loss", "fig6-5",
          "Theorem 6.3.7, (6.15), figure 6.5 A", "for-all", "at most 0.02", (-inf, 0.02), "a fiftieth of the margin",
          "pruned_small", conditions="out_of_domain"),
    Claim("prune-order", "Pruning by size from below hurts no more than pruning at random, at any rate", "fig6-5",
          "figure 6.5 A", "for-all", "at least 0", (-0.005, inf), "the error of a test of two thousand prompts on one model",
          "random_over_small", conditions="out_of_domain"),
    Claim("prune-large", "Pruning a share R of the neurons, large ones, costs at least of the order R", "fig6-5",
          "Theorem 6.3.7, (6.16)", "bound", "slope at least 0.5", (0.5, inf), "half of the slope 1 of (E.109)", "large_slope",
          conditions="out_of_domain"),
    Claim("prune-large-printed", "and at least 1 - (1 - 2/(alpha' M_1))(1 - R)/(1 - 2/(alpha M_1)), here at alpha' = 0.4", "fig6-5",
          "(E.109)", "for-all", "at least 0 above it", ABOVE, "as printed", "large_bound", {"fraction": 0.4},
          conditions="out_of_domain"),
    Claim("prune-fraction", "A larger alpha' improves the pruned model", "fig6-5", "Theorem 6.3.7, figure 6.5 B", "order",
          "loss rises from each alpha' to the next smaller", ABOVE, "no rise would refute it", "pruned_order", {"rate": 0.3},
          conditions="out_of_domain"),

    Claim("length-alpha", "The training prompt length needed goes as 1/alpha", "figE-1-length", "(6.9), figure E.1", "law", "-1",
          (-1.3, -0.7), "three tenths keep -1 apart from -2/3 at one end and from -3/2 at the other", "length_exponent",
          value=-1.0, conditions="in_domain"),
    Claim("steps-alpha", "The iterations needed go as alpha^(-2/3)", "figE-1-steps", "(6.10), figure E.1", "law", "-2/3",
          TWO_THIRDS, TENTHS, "steps_exponent", {"over": "relevant_fraction"}, value=-2 / 3, conditions="in_domain"),
    Claim("steps-beta", "The iterations needed go as beta^(-2/3)", "beta", "(6.10)", "law", "-2/3", TWO_THIRDS, TENTHS,
          "steps_exponent", {"over": "pattern_norm"}, value=-2 / 3, conditions="in_domain"),
    Claim("steps-patterns", "The iterations needed go as M_1 sqrt(log M_1), with m of the order of M_1^2 log M_1 and M_2 of M_1",
          "patterns", "(6.10)", "law", "0 beyond M_1 sqrt(log M_1)", (-0.3, 0.3), "three tenths keep M_1 apart from its root and from "
          "its power 3/2", "steps_over_patterns", value=0.0, conditions="in_domain"),

    Claim("query-update", "While it learns, W_Q has moved along a query's own pattern by at least eta/M_1 sum_b zeta_b delta gamma_b "
          "beta^4", "lemmas", "Lemma E.4.5, (E.6)", "for-all", "at least 1", (1.0, inf), ONE_WHY, "update_over_bound",
          {"matrix": "query"}, conditions="in_domain"),
    Claim("key-update", "and W_K by as much along a context's own pattern", "lemmas", "Lemma E.4.5, (E.10)", "for-all", "at least 1",
          (1.0, inf), ONE_WHY, "update_over_bound", {"matrix": "key"}, conditions="in_domain"),
    Claim("query-update-partner", "W_Q has moved along a pattern that forms a training task with the query's by at most "
          "exp(-Theta((eta t/M_1)^2)) of that: by 1/M_1 when the tasks are learnt", "lemmas", "Lemma E.4.5, (E.7)", "for-all",
          "at most 1", ONE, ONE_WHY, "update_share", {"matrix": "query", "direction": "partner"}, conditions="in_domain"),
    Claim("key-update-partner", "The same of W_K", "lemmas", "Lemma E.4.5, (E.11)", "for-all", "at most 1", ONE, ONE_WHY,
          "update_share", {"matrix": "key", "direction": "partner"}, conditions="in_domain"),
    Claim("query-update-other", "W_Q has at all times moved along other relevant patterns by at most 1/M_1 of that", "lemmas",
          "Lemma E.4.5, (E.8)", "for-all", "at most 1", ONE, ONE_WHY, "update_share", {"matrix": "query", "direction": "other"},
          conditions="in_domain"),
    Claim("key-update-other", "The same of W_K", "lemmas", "Lemma E.4.5, (E.12)", "for-all", "at most 1", ONE, ONE_WHY,
          "update_share", {"matrix": "key", "direction": "other"}, conditions="in_domain"),
    Claim("query-update-irrelevant", "W_Q has at all times moved along irrelevant patterns by at most 1/M_2 of that", "lemmas",
          "Lemma E.4.5, (E.9)", "for-all", "at most 1", ONE, ONE_WHY, "update_share",
          {"matrix": "query", "direction": "irrelevant"}, conditions="in_domain"),
    Claim("key-update-irrelevant", "The same of W_K", "lemmas", "Lemma E.4.5, (E.13)", "for-all", "at most 1", ONE, ONE_WHY,
          "update_share", {"matrix": "key", "direction": "irrelevant"}, conditions="in_domain"),
    Claim("value-lucky", "In every step rows of W_O of neurons that are lucky for a label enter W_V p, p of that label, with a "
          "coefficient of at least beta^2 (1 - gamma)/a", "lemmas", "Lemma E.4.6, (E.15) and (E.18)", "for-all", "at least 1",
          (1.0, inf), ONE_WHY, "value_lucky", conditions="in_domain"),
    Claim("value-opposite", "Those of neurons that are lucky for the other label with at most 1/(beta^2 + 1) of that", "lemmas",
          "Lemma E.4.6, (E.16) and (E.19), as its proof has it", "for-all", "at most 1", ONE, "as printed; means over neurons, which "
          "is what (E.175) sums", "value_opposite", conditions="in_domain"),
    Claim("value-rest", "Prompts that a neuron is not lucky for add at most sqrt(log B/B)/a", "lemmas",
          "Lemma E.4.6, (E.17) and (E.20)", "for-all", "at most 1", ONE, ONE_WHY, "value_rest", conditions="in_domain"),
    Claim("value-irrelevant", "Along irrelevant patterns coefficients are at most 1/M_2 of those along tokens", "lemmas",
          "Lemma E.4.6, (E.22)", "for-all", "at most 1", ONE, "as printed, without a constant", "value_irrelevant",
          conditions="in_domain"),
    Claim("neuron-growth", "After t steps rows of W_O of lucky neurons have gained at least delta (beta^2 + 1) alpha eta t/(2a) along "
          "(mu_a; q), or (mu_a; -q), as they vote", "lemmas", "Lemma E.4.7, (E.24) and (E.26)", "for-all", "at least 1", (1.0, inf),
          ONE_WHY, "neuron_growth", conditions="in_domain"),
    Claim("neuron-norm", "and are at least sqrt(M_1) delta (beta^2 + 1)^(1/2) alpha eta t/(2a) long", "lemmas", "Lemma E.4.7, (E.27)",
          "for-all", "at least 1", (1.0, inf), ONE_WHY, "neuron_norm", conditions="in_domain"),
    Claim("neuron-irrelevant", "and have gained at most 1/M_2 of that along irrelevant patterns", "lemmas",
          "Lemma E.4.7, (E.28) without its label part, (E.196)", "for-all", "at most 1", ONE, "as printed, without a constant",
          "neuron_irrelevant", conditions="in_domain"),
    Claim("tasks-suffice", "M_1 or more training tasks that cover every pattern and label give an error of about 0 on all tasks",
          "figE-2", "Theorem 6.3.3, figure E.2", "for-all", "0", (-inf, 0.02), "about 0: one in fifty", "at_end",
          {"variable": "error"}, region="enough_tasks", conditions="in_domain"),
    Claim("tasks-needed", "With M_1/2 training tasks the error is significant", "figE-2", "figure E.2", "bound", "above 0.05",
          (0.05, inf), "one in twenty", "mean_at_end", {"variable": "error"}, region="half_the_tasks", conditions=""),

    Claim("heads", "Each of several heads attends to contexts of the query's pattern", "variants", "(E.1)", "for-all",
          "at least 0.75", (0.75, inf), "what (E.55) leaves at alpha' = 0.8", "head_mass", conditions="in_domain"),
    Claim("variants-learn", "Several heads, several patterns per class, the logistic loss, a softmax over the query and a noise n "
          "of beta/10 in every coordinate of the inputs change nothing: unseen tasks are solved", "variants",
          "Appendix E.2, Definition E.4.8", "for-all", "0", (-inf, 0.02), "one in fifty", "at_end",
          {"variable": "error"}, conditions="in_domain"),

    Claim("sum-conserved", "W_K sum_j mu_j never changes (ours)", "agreement", "README, the conserved sum", "identity", "0",
          (-inf, 1e-10), "rounding over the steps of a run", "key_drift"),
    Claim("two-ways", "Weights in the basis of patterns follow the weights themselves", "agreement", "README, two ways", "identity",
          "0", (-inf, 1e-9), "rounding over the steps of a run", "disagreement"),
)

LEDGER: tuple[Statement, ...] = (
    Statement("Condition 6.3.2", "each pattern is mapped to either label by |T_tr|/M_1 training tasks", "", "theory.covers",
              "claim tasks-suffice, claim tasks-needed"),
    Statement("Theorem 6.3.3", "m >= M_1^2 log M_1 neurons, prompts of l_tr >= log M_1/alpha and l_ts >= 1/alpha' and T = eta^-1 M_1 "
              "alpha^(-2/3) beta^(-2/3) sqrt(log M_1) steps give a loss of order eps on all tasks",
              "one match is certain from l_ts = 2/alpha' on; the step count holds for m of the order of M_1^2",
              "theory.neurons_needed, theory.batch_needed, theory.train_length, theory.test_length_printed, theory.test_length, "
              "theory.iterations, theory.iterations_proof, theory.iterations_any_width",
              "claim in-domain, claim steps-alpha, claim steps-beta, claim steps-patterns, claim length-alpha, claim test-length"),
    Statement("Theorem 6.3.4", "the same out of domain where every coefficient sum is at least 1", "attention depends on which "
              "patterns are mixed: keys are not amplified along the mean of all, nor along the mean of a pair that meets in every "
              "training task", "theory.mixed_logit, theory.effective_output, theory.critical_sum, theory.answers",
              "claim out-of-domain, claim out-of-domain-apart, claim out-of-domain-shifts, claim out-of-domain-sums, claim out-of-domain-sums-shifts, "
              "claim sum-matters, claim sum-enough, claim sum-enough-apart, claim effective-output"),
    Statement("Theorem 6.3.7", "neurons outside a set L of constant share have rows of W_O W_V of at most 1/sqrt(M_2) and may go; "
              "pruning a share R inside L costs at least of order R + 1/(alpha' M_1)", "of the explicit form only the slope in R",
              "theory.small_size, theory.large_size, theory.pruned_small, theory.pruned_large, theory.largest_gap",
              "claim small-share, claim small-size, claim large-size, claim prune-small, claim prune-order, claim prune-large, "
              "claim prune-large-printed, claim prune-fraction"),
    Statement("Proposition 6.4.1", "W_Q and W_K send a token mainly along its own pattern: sqrt(log M_1) there, 1/M_1 + 1/M_2 of it "
              "elsewhere", "partners hold -1/2 of what the pattern gains each: W_K sum_j mu_j is conserved",
              "theory.main_projection, theory.other_share, theory.irrelevant_share, theory.partner_share",
              "claim projection-grows, claim projection-close, claim own-component, claim partner-component, "
              "claim other-component, claim irrelevant-component, claim partner-balance, claim sum-conserved"),
    Statement("Corollary 6.4.3", "all attention but M_1^-C lies on contexts of the query's pattern", "(2 - alpha)/(alpha M_1), as the "
              "proof has it", "theory.trained_mass, theory.first_mass",
              "claim attention, claim attention-partners, claim attention-apart"),
    Statement("Proposition 6.4.5", "rows of large neurons align with the mean pattern and with q or -q", "",
              "theory.feature_alignment, theory.label_alignment",
              "claim feature-alignment, claim label-alignment, claim feature-angle, claim label-angle"),
    Statement("Lemmas E.4.1, E.4.3, (E.42)", "Chernoff and Hoeffding bounds; few matches have probability exp(-l c^2 alpha/2)",
              "half that exponent", "theory.chernoff_above, theory.chernoff_below, theory.few_matches, theory.few_matches_printed",
              "test test_chernoff_bounds_hold_and_the_printed_exponent_is_too_sure"),
    Statement("Lemma E.4.5", "growth of W_Q and W_K along patterns", "gradients of W_K sum to zero over patterns",
              "theory.update_growth, theory.partner_share", "claim query-update, claim key-update, claim query-update-partner, "
              "claim key-update-partner, claim query-update-other, claim key-update-other, claim query-update-irrelevant, "
              "claim key-update-irrelevant, claim partner-balance, test test_keys_of_the_sum_of_patterns_never_move"),
    Statement("Lemma E.4.6", "W_V moves by sums of rows of W_O, (E.14), with coefficients that are large for lucky neurons alone",
              "(E.14) holds exactly; each prompt counts for the neurons that are lucky for it", "theory.batch_noise",
              "test test_updates_of_values_lie_in_the_span_of_neurons, claim value-lucky, claim value-opposite, claim value-rest, "
              "claim value-irrelevant"),
    Statement("Lemma E.4.7", "rows of W_O of lucky neurons grow linearly along (mu_a; +-q), little along irrelevant patterns",
              "(E.28) without the label part of its direction; (E.29) is about neurons that are lucky for no prompt",
              "theory.neuron_growth, theory.neuron_norm", "claim neuron-growth, claim neuron-norm, claim neuron-irrelevant"),
    Statement("(E.192) to (E.196)", "first steps of W_O along (mu_a; +-q) and (mu_b; +-q)", "contexts of the other label "
              "count too", "theory.first_step, theory.first_step_printed",
              "test test_the_first_step_of_lucky_neurons_is_the_mended_one"),
    Statement("Definition E.4.8", "lucky neurons; inputs with a further noise n_i, of which no more is said", "", "",
              "claim variants-learn, test test_noise_on_inputs_has_the_spread_that_was_asked_for"),
    Statement("Lemma E.4.9", "a constant share of neurons is lucky for a prompt", "1/8", "theory.lucky_share, theory.lucky_cap",
              "test test_a_neuron_is_lucky_with_probability_one_eighth", "holds: 1/8"),
    Statement("Lemma E.4.10", "lucky neurons become active on all prompts of their label", "", "", "claim lucky-active, claim lucky-own-active"),
    Statement("(E.50) to (E.61)", "the output grows as a linear and a cubic term, attention sharpens by a recursion", "",
              "theory.growth, theory.attention_recursion", "claim output-superlinear, claim output-cubic"),
    Statement("Lemma E.4.11", "at least M_1 tasks, a share (M_1 - 1)^(-1/2) of all", "a share 1/(M_1 - 1)",
              "theory.least_tasks, theory.task_share, theory.task_share_printed",
              "test test_fewer_tasks_than_patterns_cannot_cover"),
    Statement("Section 6.5", "longer prompts for smaller alpha'; in-context learning against classic learners",
              "the law of the vote", "theory.vote_error, theory.oracle_error, theory.vote_length",
              "claim vote, claim gpt2-fraction, claim gpt2-fraction-out, claim icl-robust, claim icl-even, claim icl-robust-out"),
    Statement("Section 6.5.1", "out-of-domain error below 0.01 for S_1 >= 1, away from 0 below", "", "",
              "claim gpt2-beyond-one, claim gpt2-below-one, claim layer-beyond-one, claim layer-below-one"),
    Statement("Appendix E.2", "several heads and several patterns per class change nothing", "", "",
              "claim heads, claim variants-learn"),
)
