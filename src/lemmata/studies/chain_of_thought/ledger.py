"""The ledger: the numbered statements of the paper, as printed and as mended, and what each is held against."""

from lemmata.study import Statement

# fmt: off
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
              "theory.stage1_time, figures.growth_share",
              "claim stage-one-exponent, claim growth-bound, claim two-stages"),
    Statement("Lemma F.3.7", "matching patterns gain at a rate of order eta p (1-p)^2/(2M)", "du/dt = eta p (1-p)^2/M",
              "figures.late_rate, figures.late_size, theory.stage2_curve, theory.tail_gap_printed, theory.stage2_time, theory.tail_time",
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
