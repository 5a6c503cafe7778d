"""The ledger: the numbered statements of the paper, as printed and as mended, and what each is held against."""

from lemmata.study import Statement

# fmt: off
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
