"""What the paper says, as statements that results can contradict, and the ledger of its numbered statements."""

from math import inf

from lemmata.study import Claim, Statement

MONTE_CARLO = "the gap is Monte Carlo noise of the sample, amplified by training: an upper bound of N^-1/2, a tenth for the grid"
HALF_LINEAR = "half the linear error cannot be had without the groups"
THETA = "Theta hides a constant: a factor 4 either way along the whole trajectory"
HIDDEN = "a constant and a polylogarithm are hidden: a factor 10"

CLAIMS = (
    # Section 3: linear models, and solutions without association
    Claim(
        "linear-models-fail", "Every generalised linear model errs at least 1/8 where spurious patches dominate (Theorem 3.1)",
        "glm-floor", "Theorem 3.1", "for-all", "at least 1/8", (0.125, inf),
        "the bound itself, where q(D-C) >= C^2; test sets of 10 000 leave 0.004", "every", {"of": "test_error"},
        region="spurious_dominate", conditions="dominated",
    ),
    Claim(
        "linear-error-law", "Their error is that of the equal-weight vote, Phi(-C / sqrt(q (D - C)))",
        "glm-floor", "Theorem 3.1 (derived)", "law", "measured / vote = 1", (0.9, 1.1),
        "logistic regression on thousands of samples errs a few per cent more than the vote", "linear_law", value=1.0,
        conditions="dominated",
    ),
    Claim(
        "generalises-without", "There is attention whose largest logits avoid every group and that errs no more than f* itself (Theorem 3.2)",
        "without-association", "Theorem 3.2", "bound", "excess 0", (-inf, 0.003),
        "the labelling function errs that often itself; 0.003 for ties at finite strength", "shifted_excess",
        region="strongly_shifted", conditions="dominated",
    ),
    # Section 2: Gaussian patches
    Claim(
        "gaussian-low-error", "On Gaussian patches with convolutional labels a one-layer transformer reaches small test error (Fig. 2)",
        "fig2", "Section 2, Fig. 2", "bound", "small", (-inf, 0.1), "a vote of the filters, which needs no groups, errs 0.095",
        "average", {"of": "test_error"}, region="wide_learner",
    ),
    Claim(
        "gaussian-beats-vote", "and it does better than a linear vote of the filters (asked of Fig. 2, not in the paper)",
        "fig2", "Section 2, Fig. 2", "bound", "error less the vote's below 0", (-inf, 0.0),
        "below the vote on the same images", "beats_vote", region="wide_learner",
    ),
    Claim(
        "gaussian-no-association", "and its attention does not show the groups (Fig. 2)",
        "fig2", "Section 2, Fig. 2", "bound", "AUC of the groups not above 1/2", (-inf, 0.65),
        "48 same-group pairs among 240 have a standard error of 0.05: three of them above chance", "average", {"of": "auc"},
        region="wide_learner",
    ),
    Claim(
        "gaussian-overlap", "No row has more of its group among its largest logits than by chance (Fig. 2)",
        "fig2", "Section 2, Fig. 2", "bound", "not above chance (difference 0)", (-inf, 0.15),
        "half a slot of the four that a row's group has", "overlap_above_chance", region="wide_learner",
    ),
    Claim(
        "gaussian-looks-random", "The learned P^T P looks random (caption of Fig. 2): nothing orders its pairs, slots included",
        "fig2", "Fig. 2 (caption)", "law", "AUC of the slots 1/2", (0.35, 0.65),
        "48 same-slot pairs among 240 have a standard error of 0.05: three of them off chance", "average", {"of": "slot_auc"},
        value=0.5, region="wide_learner",
    ),
    Claim(
        "gaussian-slots", "It orders pairs by slot, which share a filter; the AUC of the groups is then (1 - (L-1)/(D-C)) / 2 (derived)",
        "fig2", "Fig. 2 (derived)", "law", "AUC of the groups 0.375", (0.3, 0.45),
        "the ties of the other pairs leave a standard error of 0.05 a run", "average", {"of": "auc"}, value=0.375,
        region="wide_learner",
    ),
    # Section 4.2: descent on a sample
    Claim(
        "association", "With high probability descent on a sample ends with every row's top C equal to its group (Theorem 4.2)",
        "fig4", "Theorem 4.2", "probability", "with high probability", (0.75, inf),
        "1 - 1/poly(d) has no number; three in four can be told from less with the seeds there are", "all_rows",
        conditions="realistic",
    ),
    Claim(
        "generalises", "and with an error of o(1), read as a quarter of the linear models' (Theorem 4.2)",
        "fig4", "Theorem 4.2", "bound", "error o(1)", (-inf, 0.25),
        "a quarter of the linear models' error cannot be had without the groups", "over_glm", conditions="realistic",
    ),
    Claim(
        "points-at-feature", "and with a value vector along the feature (Fig. 4)",
        "fig4", "Fig. 4", "bound", "cosine near 1", (0.9, inf),
        "a finite sample leaves a part off the feature of order sqrt(d / N)", "average", {"of": "cosine"},
        conditions="realistic",
    ),
    Claim(
        "association-first", "Association is learned before generalisation (Section 4.1)",
        "fig4", "Section 4.1", "order", "AUC 0.95 before half the linear error (steps)", (1.0, inf),
        "at least a step earlier in the mean, the interval included", "association_first", conditions="realistic",
    ),
    Claim(
        "partition-is-irrelevant", "Scattered groups are learned as well as contiguous ones (Definition 2.1)",
        "fig4", "Definition 2.1", "law", "error difference 0", (-0.01, 0.01),
        "three standard errors of a test set of 3000 at an error of 0.02 are 0.008", "partition", value=0.0,
        conditions="realistic",
    ),
    Claim(
        "column-sums", "The learned attention gives every patch the same total weight up to 1/poly(d) (Appendix F, display 155)",
        "fig4", "Appendix F, (155)", "for-all", "distance from 1 is 0", (-inf, 0.1),
        "a tenth would still leave the step's direction alone; the worst patch of every run", "column_sums",
        conditions="realistic",
    ),
    Claim(
        "encodings-associate", "Trained positional encodings are most similar within the groups (Definition 2.2)",
        "encodings", "Definition 2.2", "bound", "every row", (0.95, inf),
        "one row in twenty may be unlucky with this sample", "average", {"of": "exact"}, region="encodings",
        conditions="realistic",
    ),
    Claim(
        "encodings-generalise", "and the network that has them errs less than half of what linear models do",
        "encodings", "Theorem 4.2 for encodings", "bound", "error o(1)", (-inf, 0.5), HALF_LINEAR, "over_glm",
        region="encodings", conditions="realistic",
    ),
    # Section 4.1: the three events
    Claim(
        "events-in-order", "The three events come in order in every run, T1 being when gamma exceeds every |rho| (Section 4.1)",
        "three-events", "Section 4.1", "for-all", "log T0 < log T1 < log T2", (0.0, inf),
        "the smaller gap between consecutive events, in logarithms of steps", "events", conditions="population",
    ),
    Claim(
        "gamma-above-rho", "Same-group logits exceed cross-group ones at every step (Theorem 4.1, Lemma 4.3)",
        "three-events", "Theorem 4.1", "for-all", "rho - gamma < 0 at every step", (-inf, 0.0),
        "an exact statement under the population risk", "every", {"of": "cross_lead"}, conditions="population",
    ),
    Claim(
        "rho-barely-moves", "Cross-group logits move by less than a tenth of what same-group ones do (Lemma 4.3)",
        "three-events", "Lemma 4.3", "bound", "|rho| << gamma", (-inf, 0.1),
        "orders only: a tenth is far above 1/D times constants", "rho_over_gamma", conditions="population",
    ),
    Claim(
        "plateau", "Between the first two events the model is a generalised linear one (Section 4.1)",
        "three-events", "Section 4.1", "law", "error of a linear model (ratio 1)", (0.75, 1.25),
        "ties of the vote may be broken either way, which is 0.80 to 1.20 here", "plateau", value=1.0,
        conditions="population",
    ),
    Claim(
        "noise-cancels", "In the first event the rest of the image does not move the value vector (Lemma D.6, as printed)",
        "three-events", "Lemma D.6 (printed)", "law", "noise drive / signal drive = 0", (-0.1, 0.1),
        "a tenth of the signal's pull would still be negligible", "noise_share", value=0.0, conditions="population",
    ),
    Claim(
        "signal-drive", "The signal part of the pull on alpha is of order C G^p alpha^(p-1) until the risk is o(1) (Lemma D.4)",
        "three-events", "Lemma D.4", "for-all", "ratio of order 1", (0.25, 4.0), THETA, "signal_drive",
        conditions="population",
    ),
    Claim(
        "output-bound", "No output exceeds (C^(1+1/p) alpha lambda0)^p by more than a constant (Lemma D.3)",
        "three-events", "Lemma D.3", "for-all", "ratio of order 1", (-inf, 4.0),
        "a constant is hidden; lambda0 is the largest D (C-1) Gamma of the run, not the paper's D^0.01", "output_over_bound",
        conditions="population",
    ),
    Claim(
        "gamma-growth", "gamma grows by Theta(C) alpha^p Gamma G^(p-1) a step until the risk is o(1) (Lemma G.1, Corollary G.1)",
        "three-events", "Lemma G.1", "for-all", "ratio of order 1", (0.25, 4.0),
        THETA + "; the form with its leading event's constant, after the first event", "same_growth",
        conditions="population",
    ),
    Claim(
        "rho-growth", "rho moves by at most the two terms of Lemma G.2 a step", "three-events", "Lemma G.2", "for-all",
        "ratio at most of order 1", (-inf, 10.0), HIDDEN, "cross_growth", {"version": "Lemma G.2"}, conditions="population",
    ),
    Claim(
        "rho-growth-main", "rho moves by at most polylog alpha^p (1 + Gamma G^(p-1)) / D a step (Lemma 4.3)", "three-events",
        "Lemma 4.3", "for-all", "ratio at most of order 1", (-inf, 10.0), HIDDEN, "cross_growth", {"version": "Lemma 4.3"},
        conditions="population",
    ),
    Claim(
        "rho-growth-corollary", "rho moves by at most polylog alpha^p (1 + lambda0 Xi G^(p-1)) / D a step (Corollary G.2)",
        "three-events", "Corollary G.2", "for-all", "ratio at most of order 1", (-inf, 10.0), HIDDEN, "cross_growth",
        {"version": "Corollary G.2"}, conditions="population",
    ),
    Claim(
        "alignment-stays", "After the first event alpha never falls below a constant times its value there (Lemma D.9)",
        "three-events", "Lemma D.9", "for-all", "alpha / alpha(T0) of order 1", (0.3, inf),
        "orders only: a third of the value at the end of the first event", "alignment_stays", conditions="population",
    ),
    Claim(
        "same-score-accelerates", "Between the first two events log Gamma curves upwards (proof of Lemma D.8)",
        "three-events", "Lemma D.8", "order", "log Gamma is convex", (0.0, inf),
        "the rise of the second half exceeds that of the first, from T0 until gamma is 1", "acceleration",
        conditions="population",
    ),
    Claim(
        "signal-dominates", "From the second event on the signal's pull exceeds what the rest's ever is (Lemma D.8, as printed)",
        "three-events", "Lemma D.8 (printed)", "for-all", "S(T1) / max N above 1", (1.0, inf),
        "the statement itself, at T1, where the slack that both share is largest", "signal_dominates",
        conditions="population",
    ),
    Claim(
        "alignment-grows", "After the second event alpha does not fall until the risk is o(1) (Lemma D.11)",
        "three-events", "Lemma D.11", "for-all", "alpha never falls", (-0.01, inf),
        "a hundredth for the last digits of the draws; where the diagonal dominates, until the loss is 0.01",
        "worst_fall", {"margin": False}, region="diagonal_dominates", conditions="population",
    ),
    Claim(
        "margin-grows", "After the second event alpha G does not fall, whatever the diagonal (used in the proof of Lemma D.13)",
        "three-events", "Lemma D.13 (proof)", "for-all", "alpha G never falls", (-0.01, inf),
        "a hundredth for the last digits of the draws; until the loss is 0.01", "worst_fall", {"margin": True},
        conditions="population",
    ),
    Claim(
        "population-generalises", "Population descent ends with an error of o(1), read as half of the linear models' (Theorem 4.1)",
        "three-events", "Theorem 4.1", "bound", "error o(1)", (-inf, 0.5), HALF_LINEAR, "over_glm", conditions="population",
    ),
    Claim(
        "first-event-exponent", "The first event ends after a time alpha0^-(p-1) (Lemma D.2 as printed); the proof gives alpha0^-(p-2)",
        "first-event", "Lemma D.2", "rival", "exponent -2 at p = 3", (-2.05, -1.95),
        "a noiseless recursion over more than a decade", "event1_exponent", value=-2.0, rivals={"corrected": -1.0},
        conditions="population",
    ),
    Claim(
        "first-event-constant", "and its constant is 1 / ((p-2) c eta), c the exact mean of the first pull (corrected)",
        "first-event", "Lemma D.2 (corrected)", "law", "measured / predicted = 1", (0.9, 1.1),
        "the time to leave a power-law start is insensitive to its end; draws leave a few per cent", "event1_constant",
        value=1.0, conditions="population",
    ),
    Claim(
        "loss-rate", "The loss is at most of order 1/t in the end (Lemma D.13, which calls it linear convergence)",
        "loss-rate", "Lemma D.13", "bound", "exponent at most -1", (-inf, -0.85),
        "the margin's slow growth bends the log-log curve a little", "loss_slope", conditions="population",
    ),
    Claim(
        "loss-follows-margin", "The loss is at most a constant times log(1 + exp(-(alpha G)^p)) then (Lemma D.14)",
        "loss-rate", "Lemma D.14", "for-all", "ratio of order 1", (-inf, 3.0),
        "orders only: the largest ratio while the loss falls from 0.1 to 1e-3", "loss_over_margin", conditions="population",
    ),
    Claim(
        "events-in-order-one-rate", "With one step size for value and attention the three events come in order (Section 4.1)",
        "common-rate", "Section 4.1", "for-all", "log T0 < log T1 < log T2", (0.0, inf),
        "the smaller gap between consecutive events, in logarithms of steps", "events", conditions="population",
    ),
    Claim(
        "one-step-size", "and the groups are learned (Theorem 4.1)",
        "common-rate", "Theorem 4.1", "bound", "error o(1)", (-inf, 0.5), HALF_LINEAR, "over_glm", conditions="population",
    ),
    Claim(
        "frozen-is-linear", "With attention frozen at its start the model is no better than a linear one (Section 4.1)",
        "frozen-attention", "Section 4.1", "bound", "error at least the linear models' (ratio 1)", (0.8, inf),
        "ties of the vote may all be broken towards the signal, which is 0.80 here", "over_glm", region="frozen",
        conditions="realistic",
    ),
    Claim(
        "event2-printed", "The second event lasts lambda0^p / (eta e^beta), which does not grow with D (Lemma D.8, as printed)",
        "patches", "Lemma D.8 (printed)", "law", "exponent 0 in D", (-0.1, 0.1),
        "lambda0 = D^0.01 would add 0.03 at p = 3", "event2_exponent", value=0.0, conditions="population",
    ),
    Claim(
        "event2-derived", "The second event lasts as long as gamma takes to 1 with alpha at its optimum (derived)",
        "patches", "Lemma D.8 (derived)", "law", "measured / predicted = 1", (0.85, 1.15),
        "exact while logits are slow beside the value vector; draws leave a few per cent", "event2_over_predicted",
        value=1.0, conditions="population",
    ),
    Claim(
        "alignment-sum", "The sum of alpha^p is of the order of its two terms, the second growing as D (Lemma D.16)",
        "patches", "Lemma D.16", "law", "measured / printed has exponent 0 in D", (-0.2, 0.2),
        "a fifth of a power of D over the grid; where e^beta <= D, as the proof has it", "alignment_sum", value=0.0,
        region="beyond_diagonal", conditions="population",
    ),
    Claim(
        "same-score-cap", "D (C-1) Gamma stays below lambda0 = D^0.01 times constants while the loss vanishes (Hypothesis B.1)",
        "patches", "Hypothesis B.1", "bound", "exponent 0.01 in D", (-inf, 0.1),
        "a tenth of a power of D is far above 0.01", "same_mass", region="beyond_diagonal", conditions="population",
    ),
    # Appendix E: the linear phase and the coupling
    Claim(
        "linear-drift", "In the linear phase alpha grows by eta nu D C / 2 a step (Lemma E.1, corrected)",
        "linear-phase", "Lemma E.1 (corrected)", "law", "measured / predicted = 1", (0.9, 1.1),
        "a sample of 2000 leaves 2 %; the cubic part adds a few per cent early on", "drift", value=1.0,
        region="reference_diagonal", conditions="linear_phase",
    ),
    Claim(
        "linear-drift-diagonal", "This drift is proportional to e^beta (Lemma E.1 as printed); corrected, it does not depend on beta",
        "linear-phase", "Lemma E.1", "rival", "exponent 1 in e^beta", (0.9, 1.1),
        "a mean over samples of the same data at every beta", "drift_by_diagonal", value=1.0, rivals={"corrected": 0.0},
        conditions="linear_phase",
    ),
    Claim(
        "linear-phase-time", "The linear phase lasts as nu^-(p-2)/(p-1) (Lemma E.1)",
        "linear-phase", "Lemma E.1", "law", "exponent -1/2 at p = 3", (-0.6, -0.4), "exact in the scaling limit",
        "phase_exponent", value=-0.5, region="reference_diagonal", conditions="linear_phase",
    ),
    Claim(
        "linear-phase-noise", "What the value vector gains off the feature there is at most of order N^-1/2 (Lemma E.3)",
        "linear-phase", "Lemma E.3", "bound", "exponent at most -1/2", (-inf, -0.35),
        "a mean of independent noise, three sizes and few seeds", "phase_noise", region="reference_diagonal",
        conditions="linear_phase",
    ),
    Claim(
        "linear-phase-logits", "No logit exceeds omega sqrt(d log d) + Theta(nu^(2/(p-1))) / (D e^beta) there (Lemma E.4)",
        "linear-phase", "Lemma E.4", "for-all", "ratio of order 1", (-inf, 4.0),
        "a constant is hidden: a factor 4", "phase_logits", conditions="linear_phase",
    ),
    Claim(
        "coupling-value", "The part of the value vector off the feature is at most of order N^-1/2 at all times (Lemmas E.9, E.11)",
        "coupling", "Lemma E.11", "bound", "exponent at most -1/2", (-inf, -0.4), MONTE_CARLO, "falls",
        {"of": "worst_orthogonal"}, conditions="realistic",
    ),
    Claim(
        "coupling-logits", "The largest distance of a logit to its semi-idealised value is at most of order N^-1/2 (Lemma E.13)",
        "coupling", "Lemma E.13", "bound", "exponent at most -1/2", (-inf, -0.4), MONTE_CARLO, "falls",
        {"of": "worst_logit_gap"}, conditions="realistic",
    ),
    Claim(
        "coupling-gradient", "The distance of the gradients is at most of order N^-1/2 (Lemma E.19)",
        "coupling", "Lemma E.19", "bound", "exponent at most -1/2", (-inf, -0.4), MONTE_CARLO, "falls",
        {"of": "worst_gradient_gap"}, conditions="realistic",
    ),
    Claim(
        "coupling-output", "The distance of the outputs is at most of order N^-1/2 (Lemma E.26)",
        "coupling", "Lemma E.26", "bound", "exponent at most -1/2", (-inf, -0.4), MONTE_CARLO, "falls",
        {"of": "output_gap"}, conditions="realistic",
    ),
    Claim(
        "follows-population", "Realistic descent follows the three numbers from the end of its linear phase (Lemmas E.18, E.20-E.23)",
        "coupling", "Lemmas E.18-E.23", "bound", "relative distance 0", (-inf, 0.15), "what a sample of about 10^4 leaves",
        "follows", conditions="realistic",
    ),
    # Section 5: transfer
    Claim(
        "transfer-order", "With 16 samples of a new task, association generalises and its absence does not (Theorems 5.1, 5.2)",
        "transfer", "Theorems 5.1, 5.2", "bound", "gap of about the linear error (ratio 1)", (0.5, inf),
        "association must win at least half of what linear models lose", "transfer_gap", conditions="transfers",
    ),
    Claim(
        "transfer-with", "The samples needed with association are polylogarithmic in D (Theorem 5.1)",
        "transfer", "Theorem 5.1", "bound", "exponent about 0", (-inf, 0.2),
        "over this range of D a logarithm has exponent 0.2 or less", "needed", region="one_step", conditions="transfers",
    ),
    Claim(
        "transfer-sign", "and they are those at which one scalar has its sign right, exactly (derived)",
        "transfer", "Theorem 5.1 (derived)", "law", "measured / predicted error = 1", (0.9, 1.1),
        "an exact law; repeats of one to four samples leave a few per cent", "sign_law", value=1.0, region="one_step",
        conditions="transfers",
    ),
    Claim(
        "transfer-learned", "The same for attention learned from a sample, with gradient descent on the value vector (Theorem 5.1)",
        "transfer", "Theorem 5.1", "bound", "exponent about 0", (-inf, 0.2),
        "over this range of D a logarithm has exponent 0.2 or less", "needed", region="learned_descent",
        conditions="transfers",
    ),
    Claim(
        "transfer-as-population", "Attention learned from a sample needs no more samples than the population's (Theorem 5.1)",
        "transfer", "Theorem 5.1", "bound", "ratio 1", (-inf, 1.5), "polylog leaves a constant: half as many again",
        "needed_learned", conditions="transfers",
    ),
    Claim(
        "transfer-without", "The samples needed without association grow as a power of D, for the best learner tried (Theorem 5.2)",
        "transfer", "Theorem 5.2", "bound", "a power of D: exponent above 0", (0.2, inf),
        "over this range of D a logarithm has exponent 0.2 or less", "needed", region="label_counting",
        conditions="hidden",
    ),
    Claim(
        "transfer-coupons", "They are those at which every group has been seen twice often enough: coupon collecting (derived)",
        "transfer", "Theorem 5.2 (derived)", "law", "measured / predicted = 1", (0.8, 1.2),
        "a limit law, with chance pairs left out: a fifth at D of 784 and more", "coupon_law", value=1.0,
        region="counting_among_many", conditions="hidden",
    ),
    Claim(
        "one-step-cosine", "One normalised gradient step aligns as C / sqrt(C^2 + D / N) (Appendix F, derived)",
        "transfer", "Appendix F (derived)", "law", "measured / predicted = 1", (0.9, 1.05),
        "the law replaces a random sum by its mean", "cosine", value=1.0, region="one_step", conditions="transfers",
    ),
    Claim(
        "learners-order", "With 16 samples every learner with association beats every one without, in every run (Theorems 5.1, 5.2)",
        "transfer-learners", "Theorems 5.1, 5.2", "for-all", "gap of about the linear error (ratio 1)", (0.0, inf),
        "the best of those without must not reach the worst of those with", "learners_order", conditions="transfers",
    ),
    Claim(
        "descent-transfers", "Descent on the value vector transfers as one step does (Theorem 5.1)",
        "transfer-learners", "Theorem 5.1", "law", "error difference 0 at 64 samples", (-0.02, 0.02),
        "a fifth of the linear models' error", "as_one_step", {"learner": "descent, learned"}, value=0.0,
        conditions="transfers",
    ),
    Claim(
        "sample-transfers", "Attention learned from a sample transfers as the population's does (Theorem 5.1)",
        "transfer-learners", "Theorem 5.1", "law", "error difference 0 at 64 samples", (-0.02, 0.02),
        "a fifth of the linear models' error", "as_one_step", {"learner": "one-step, learned"}, value=0.0,
        conditions="transfers",
    ),
    Claim(
        "unseen-groups", "Without association the error is at least that on groups never seen (Theorem 5.2, heuristic)",
        "transfer-learners", "Theorem 5.2", "bound", "error / floor at least 1", (0.9, inf),
        "the floor is exact for learners that know nothing of unseen groups; a tenth for the test sets", "unseen_groups",
        conditions="hidden",
    ),
    # One setting at a time
    Claim(
        "degree-helps", "A higher degree leaves less error (Theorem 4.1, orders)",
        "sizes", "Theorem 4.1", "order", "error falls from p = 3 to p = 5", (0.0, inf),
        "a higher power favours full groups over scattered patches", "degree_helps", conditions="population",
    ),
    Claim(
        "error-floor", "At a high degree the error is half the label noise, the best that can be had (Theorem 4.1, limit)",
        "sizes", "Theorem 4.1", "law", "error / label noise = 1/2 at p = 7", (0.25, 1.0),
        "a factor 2: ten errors a test set", "error_floor", value=0.5, conditions="population",
    ),
)  # fmt: skip

LEDGER: tuple[Statement, ...] = ()
