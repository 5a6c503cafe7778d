"""What the document says of chains of thought, and what follows from it; and the ledger of its numbered statements."""

from math import inf

from lemmata.study import Claim, Statement

ZERO = (-inf, 0.05)
ZERO_WHY = "zero error with high probability; a test of a thousand prompts tells 5 % from more with certainty"
VOTE = (-inf, 0.04)
VOTE_WHY = "a thousand prompts give an error of 1.6 points at most; steps are taken as independent"

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    Claim("attention-matches", "At every reasoning step the attention on context columns of the same step and pattern is at least "
          "1 - eps (here 0.9 after 600 steps of size 10)", "fig7-3a", "Proposition 3", "for-all", "at least 0.9, every step",
          (0.9, inf), "1 - p is sqrt(M/(2 eta t)) = 0.04 by the tail law, more on test prompts with few matches", "matched_mass",
          conditions="training_conditions"),
    Claim("cot-to-zero", "With enough examples the chain-of-thought error is zero", "fig7-3a", "Theorem 4", "for-all",
          "0 at 40 examples", ZERO, ZERO_WHY, "at_longest", {"variable": "cot_error"}, region="", conditions="cot_conditions"),
    Claim("cot-match", "The smaller alpha', the larger the chain-of-thought error at a given length", "fig7-3a", "Figure 7.3 (a)",
          "order", "rises from each alpha' to the next smaller", (0.0, inf), "no rise would refute it", "ordered",
          {"variable": "cot_error", "over": "match_fraction", "length": 8}, conditions="cot_conditions"),
    Claim("cot-trajectory", "The smaller tau, the larger the chain-of-thought error at a given length", "fig7-3b",
          "Figure 7.3 (b)", "order", "rises from each tau to the next smaller", (0.0, inf), "no rise would refute it", "ordered",
          {"variable": "cot_error", "over": "trajectory", "length": 8}, conditions="cot_conditions"),
    Claim("cot-primacy", "The smaller rho, the larger the chain-of-thought error at a given length", "fig7-3c", "Figure 7.3 (c)",
          "order", "rises from each rho to the next smaller", (0.0, inf), "no rise would refute it", "ordered",
          {"variable": "cot_error", "over": "primacy", "length": 12}, conditions="cot_conditions"),
    Claim("cot-length-match", "The length needed grows no faster than alpha'^-2", "fig7-3a", "Theorem 4, (7.20)", "bound",
          "exponent at least -2", (-2.0, inf), "the printed exponent of a sufficient length", "length_exponent",
          {"variable": "cot_error", "over": "match_fraction"}, conditions="cot_conditions"),
    Claim("cot-length-trajectory", "The length needed grows no faster than tau^-2", "fig7-3b", "Theorem 4, (7.20)", "bound",
          "exponent at least -2", (-2.0, inf), "the printed exponent of a sufficient length", "length_exponent",
          {"variable": "cot_error", "over": "trajectory"}, conditions="cot_conditions"),
    Claim("cot-vote", "The trained layer errs as a vote of the matching examples does (ours)", "fig7-3a", "README, the vote",
          "for-all", "within 0.04 of the law of the vote", VOTE, VOTE_WHY, "vote_gap", {"variable": "cot_error"},
          conditions="training_conditions"),
    Claim("icl-match", "The smaller alpha', the larger the in-context error at a given length", "fig7-4a", "Figure 7.4 (a)",
          "order", "rises from each alpha' to the next smaller", (0.0, inf), "no rise would refute it", "ordered",
          {"variable": "icl_error", "over": "match_fraction", "length": 12}, conditions="icl_conditions"),
    Claim("icl-trajectory", "The smaller tau, and with it tau_o, the larger the in-context error", "fig7-4b", "Figure 7.4 (b)",
          "order", "rises from each tau to the next smaller", (0.0, inf), "no rise would refute it", "ordered",
          {"variable": "icl_error", "over": "trajectory", "length": 12}, conditions="icl_conditions"),
    Claim("icl-vote", "In-context answers err as a vote over the final labels does, which is exact (ours)", "fig7-4a",
          "README, the vote", "for-all", "within 0.04 of the law of the vote", VOTE, VOTE_WHY, "vote_gap",
          {"variable": "icl_error"}, conditions="training_conditions"),
    Claim("icl-fails", "Where Condition 7.3.2 fails, in-context learning errs whatever the length; the limit is the share of rows "
          "whose likeliest label is wrong, here 1/2", "fig7-5", "Theorem 5", "law", "1/2", (0.4, 0.6), "a tenth: 320 examples "
          "leave some of the rows undecided at rho_o = 0.1", "mean_at_longest", {"variable": "icl_error"}, value=0.5,
          region="fails", conditions="icl_conditions"),
    Claim("icl-succeeds", "Where Condition 7.3.2 holds, the in-context error falls with the length", "fig7-5", "Theorem 5",
          "bound", "at most half of what it was", (-inf, 0.5), "half, from 5 to 320 examples", "fall", {"variable": "icl_error"},
          region="holds", conditions="icl_conditions"),
    Claim("cot-where-icl-fails", "Where in-context learning fails, the chain of thought still succeeds", "fig7-5",
          "Theorems 4 and 5, Figure 7.5", "bound", "at most half of what it was", (-inf, 0.5), "half, from 5 to 320 examples",
          "fall", {"variable": "cot_error"}, region="fails", conditions="cot_conditions"),
    Claim("two-stages", "Attention leaves the other steps before it settles on the matching pattern", "fig7-6",
          "Lemmas F.3.6, F.3.7, Figure 7.6", "for-all", "stage one ends first", (0.0, inf), "the order itself", "stage_gap",
          conditions="training_conditions"),
    Claim("stage-one-length", "The first stage lasts at most of the order alpha^-2", "stage-one", "Lemma F.3.6, (F.11)", "bound",
          "exponent at least -2", (-2.0, inf), "an upper bound on a time", "stage_exponent", conditions="training_conditions"),
    Claim("span-printed", "Test patterns in the span of the training patterns, whatever they are, are reasoned on without error",
          "span", "Theorem 4 as printed, (7.19)", "for-all", "0 at 40 examples", ZERO, ZERO_WHY, "at_longest",
          {"variable": "cot_error"}, region="in_span", conditions="cot_conditions"),
    Claim("span-mended", "Test patterns in the span whose coefficient sums stay away from sqrt(M) are reasoned on without error",
          "span", "Theorem 4, mended", "for-all", "0 at 40 examples", ZERO, ZERO_WHY, "at_longest", {"variable": "cot_error"},
          region="in_span_off_the_mean", conditions="cot_conditions"),
    Claim("outside-errs", "Test patterns outside the span are not reasoned on (ours: the negative control)", "span",
          "README, the span", "bound", "above 1/2", (0.5, inf), "guessing among ten patterns errs in nine of ten", "mean_at_longest",
          {"variable": "cot_error"}, region="outside", conditions=""),
    Claim("tail-steps", "Late in training (1 - p)^2 goes as M/(2 eta t), without the K of the print", "tail",
          "Lemma F.3.7, (F.26)", "rival", "exponent 0 in K", (-0.3, 0.3), "a third of the printed exponent either way",
          "tail_exponent", value=0.0, rivals={"the print, K M/(eta t)": 1.0}, conditions="training_conditions"),
    Claim("tail-constant", "Late in training (1 - p)^2 2 eta t / M is 1 (mended law; ours)", "tail", "README, the tail", "law", "1",
          (0.8, 1.25), "corrections of order 1/M with M = 10 and 20, and p not yet 1", "mean_tail_constant", value=1.0,
          conditions="training_conditions"),
    Claim("sums-conserved", "The sums of W over patterns and over steps are conserved", "agreement", "README, invariants (exact)",
          "identity", "0", (-inf, 1e-10), "rounding over the steps of a run", "drift"),
    Claim("two-ways", "W in the basis of patterns follows the weights themselves", "agreement", "README, two ways", "identity", "0",
          (-inf, 1e-9), "rounding over the steps of a run", "disagreement"),
)

LEDGER: tuple[Statement, ...] = (
    Statement("Theorem 3", "l_tr >= 1/alpha examples and T >= alpha^-2 K^3 log(K/eps)/eta + M K (1/alpha + 1/eps)/eta iterations give "
              "a loss of order eps", "the tail is M/(2 eta t), without K", "theory.iterations, theory.tail_gap",
              "claim tail-constant, claim tail-steps"),
    Statement("Theorem 4", "zero chain-of-thought error for test patterns in the span with l >= (alpha' tau rho)^-2 log M",
              "coefficient sums must stay away from sqrt(M)", "theory.cot_examples, theory.span_logit",
              "claim span-printed, claim span-mended, claim cot-length-match, claim cot-length-trajectory"),
    Statement("Theorem 5", "in-context error at least of order one where Condition 7.3.2 fails; zero with "
              "l >= (alpha' tau_o rho_o)^-2 log M where it holds", "", "theory.icl_examples, theory.icl_limit",
              "claim icl-fails, claim icl-succeeds"),
    Statement("Proposition 3", "attention of at least 1 - eps on the columns of the same step and pattern", "",
              "theory.match_share", "claim attention-matches"),
    Statement("Lemma F.3.5", "signs and bounds of the gradient between columns in the first stage", "the upper bound for same "
              "pattern and other step fails for other K and M", "theory.gradient_bounds, theory.first_gradient",
              "test test_gradient_at_the_start"),
    Statement("Lemma F.3.6", "other steps lose their attention within alpha^-2 K^3 log(K/eps)/eta steps", "an upper bound",
              "theory.stage1_time, theory.gap_growth_bound", "claim stage-one-length, claim two-stages"),
    Statement("Lemma F.3.7", "matching patterns gain at a rate of order eta p (1-p)^2/(2M)", "eta p (1-p)^2/M",
              "theory.stage2_curve, theory.tail_gap_printed, theory.stage2_time, theory.tail_time", "claim tail-constant"),
    Statement("Example 1", "a chain of thought succeeds where in-context learning errs on half of the inputs", "", "theory.icl_error",
              "test test_example_1_of_the_document"),
    Statement("proof of Theorem 4", "right trajectories are fewer than (1 - rho/2) alpha' tau l with probability at most "
              "exp(-c l rho^2 alpha' tau)", "c = 1/8", "theory.wrong_count_bound, theory.chernoff_exact",
              "test test_the_tail_of_right_trajectories"),
)
