"""The ledger: the numbered statements of the paper, as printed and as mended, and what each is held against."""

from lemmata.study import Statement

# fmt: off
LEDGER: tuple[Statement, ...] = (
    Statement("Assumption 3.4.2", "all but a share eps_0 of the nodes have a positive margin at the core distance",
              "fails for 40 % of the nodes of the printed graph", "data.inconsistent_share",
              "test test_flipped_labels_are_the_inconsistent_ones, test "
              "test_without_inner_edges_discriminative_nodes_do_not_vote_for_themselves"),
    Statement("Assumption B.2.1", "initial images of the patterns are orthonormal up to sigma and delta",
              "sigma for values, delta for keys and queries; the printed scales of section 3.5.1 break it", "network.Network",
              "test test_initial_images_have_the_errors_asked_for"),
    Statement("Definition 3.4.1", "winning margins and the core distance", "the last distance pools all larger ones",
              "data.winning_margin, data.average_margin, data.core_distance",
              "test test_the_example_of_figure_3_2, claim bias-core"),
    Statement("Definition 3.4.3", "the confusion ratio of the sampled core neighbourhood", "", "data.confusion_ratio",
              "test test_the_documents_graph_is_what_it_says"),
    Statement("Theorem 3.4.4", "loss 2 eps_0 + eps after T = eta^-1/2 (1 - 2 eps_0)^-1/2 (1 - delta)^-1/2 steps with |L| "
              "labels, (3.8) to (3.10)", "eta T of order one gives eta^-1",
              "theory.transformer_steps, theory.transformer_steps_mended, theory.transformer_labels, theory.loss_bound",
              "claim flips-bound, claim step-size, claim step-size-mended, claim start-delta"),
    Statement("Remark 1", "labels go as gamma_d^-2 and (1 - eps_S)^-2", "the formula (3.9) is flatter in gamma_d",
              "theory.remark_labels, theory.vote_labels, theory.vote_term_dominates",
              "test test_the_footnote_says_which_term_of_3_9_is_the_larger, claim labels-share, claim labels-share-once, "
              "claim labels-share-confused, claim labels-share-blocks, claim labels-confusion"),
    Statement("Remark 2", "sampling more class-relevant nodes of the core improves learning", "", "data.masks",
              "claim sampling-steps, claim sampling-labels, claim sampling-errors, claim sampling-core"),
    Statement("Lemma 3.4.5", "attention on class-relevant nodes goes to 1, or 1 - eps_S, as 1/t",
              "the hinge must not vanish first", "theory.attention_limit, theory.mean_attention_limit",
              "test test_grown_queries_and_a_bias_at_the_core_bring_attention_to_its_limits, claim attention-rises, claim "
              "attention-one, claim attention-one-margin, claim attention-rate"),
    Statement("Theorem 3.4.6", "a convolution on the core needs gamma_d^-2 times more of both, (3.12), (3.13)",
              "(B.59) and (B.69) give gamma_d^-1", "theory.convolution_steps, theory.convolution_steps_mended, "
              "theory.convolution_labels, theory.uniform_attention",
              "claim convolution-labels, claim convolution-steps, claim even-convolution-steps, claim "
              "even-convolution-mended, claim even-slower"),
    Statement("Lemma 3.4.7", "b_zm - b_z at least gamma_d (Dbar(z_m) - Dbar(z)), (3.14)", "", "theory.bias_gap",
              "claim bias-core, claim bias-margin"),
    Statement("Theorem 3.4.8", "positions do as well as knowing the core neighbourhood", "", "theory.transformer_steps",
              "claim positions-as-core, claim positions-help"),
    Statement("Definition B.2.3", "p_n(t), the predicted attention on class-relevant nodes",
              "2 delta in place of sigma, for discriminative nodes", "theory.relevant_attention",
              "test test_the_predicted_attention_is_a_lower_bound"),
    Statement("Lemma B.3.1", "lucky neurons grow along their feature, (B.9) to (B.19)", "one factor eta restored",
              "theory.lucky_growth_printed, theory.lucky_growth",
              "claim lucky-grow, claim lucky-growth, claim lucky-direction, claim unlucky-small"),
    Statement("Lemma B.3.2", "keys and queries of discriminative patterns grow, (B.42), (B.45)", "",
              "theory.key_growth, theory.key_growth_floor, theory.key_size_range",
              "claim keys-grow, claim key-size, claim other-keys-stay, test "
              "test_keys_that_grow_by_their_floor_have_the_size_of_b_45, test "
              "test_keys_do_not_grow_where_all_sampled_nodes_are_class_relevant"),
    Statement("Lemma B.3.3", "the trajectory of b, (B.24), (B.25)", "",
              "theory.bias_bound, theory.first_bias_direction, theory.sampling_error",
              "test test_b_starts_along_the_margins, claim bias-start, claim bias-growth"),
    Statement("Lemma B.3.4", "values move along the sum of their lucky rows", "", "theory.value_coefficient",
              "claim values-follow, test test_values_of_a_pattern_take_at_least_b_31_of_every_lucky_row"),
    Statement("Lemma B.3.5", "a share Omega(1) of the neurons is lucky", "", "theory.lucky_share", "claim lucky-share"),
    Statement("Lemma B.3.6", "lucky neurons stay so", "", "", "claim lucky-stay"),
    Statement("(B.46), (B.47)", "the output grows as a_0 eta^3 t^5 + a_1 eta t^2", "", "theory.time_to_margin",
              "test test_limits_of_the_characteristic_time"),
    Statement("(B.49) to (B.58), (B.83)", "concentration over labelled nodes and batches",
              "(B.54): E[1 - p'] = (1 - gamma_d) eps_S", "theory.label_deviation, theory.vote_bias, theory.moment_bound, "
              "theory.batch_imbalance", "test test_the_mean_vote_over_labels_concentrates, test "
              "test_sums_over_labels_have_the_moments_of_b_49, test test_batches_are_seldom_less_balanced_than_b_83"),
    Statement("(B.63)", "the gradient of a batch lies within eps of its mean but with probability exp(-B eps^2)", "",
              "network.slope", "test test_the_noise_of_a_batchs_gradient_falls_as_the_root_of_its_size"),
    Statement("(B.66) to (B.70)", "the attention of a convolution, and its condition",
              "(B.70) with sqrt(log N / N) needs gamma_d > 0.43 at N = 1000",
              "theory.start_attention, theory.uniform_attention, theory.convolution_conditions",
              "test test_attention_at_the_start_is_b_66, test "
              "test_the_condition_of_the_convolution_is_missed_at_the_default_share"),
    Statement("(B.76), (B.117), (B.150), (B.166), (B.202)", "the gradients",
              "one output a node; transposes; the softmax's own derivative", "network.slope",
              "test test_the_gradient_by_hand_is_that_of_automatic_differentiation"),
    Statement("(B.182)", "shares among sampled nodes lie within sqrt(log|S|/|S|) of the graph's", "", "theory.sampling_error",
              "test test_sampled_shares_are_seldom_farther_off_than_b_182"),
    Statement("(B.199)", "an identity of margins", "", "data.margin_identity", "test test_identity_b_199_is_exact"),
    Statement("Appendix B.5.2", "absolute positions as columns beside the features", "", "data.positions",
              "claim laplacian-best, claim positions-attend"),
    Statement("Appendix B.5.3", "a single attention layer at distance 1 does as well where the core is there", "", "",
              "claim nearest-near, claim nearest-far"),
    Statement("Appendix B.5.4", "labels of whole graphs, (B.224)", "", "data.graph_label, network.graph_output",
              "claim graph-labels, claim graph-labels-structure"),
    Statement("Appendix B.5.5", "four classes by two networks, (B.225) to (B.232)", "", "network.pair_hinge",
              "claim four-classes, claim four-classes-told, claim four-classes-cores"),
    Statement("Tables B.1 to B.5, B.8", "discriminative nodes, margins and balance of real graphs", "uncentred second moments",
              "data.survey", "figure tables", "README"),
)
