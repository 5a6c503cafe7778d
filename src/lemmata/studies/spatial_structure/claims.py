"""What the paper says, as statements that results can contradict, and the ledger of its numbered statements."""

from math import inf

from lemmata.study import Claim, Statement

MONTE_CARLO = "the gap is Monte Carlo noise of the sample, amplified by training: an upper bound of N^-1/2, a tenth for the grid"
HALF_LINEAR = "half the linear error cannot be had without the groups"
THETA = "Theta hides a constant: a factor 4 either way along the whole trajectory"
POLYLOG = "the polylogarithm hides powers of q D, which the grid keeps fixed: only a power of D can refute; a tenth for the grid"

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
        "gaussian-beats-vote", "and better than a linear vote of the filters, the best of the learners (asked of Fig. 2, not in the paper)",
        "fig2", "Section 2, Fig. 2", "bound", "error less the vote's below 0", (-inf, 0.0),
        "below the vote on the same images", "beats_vote",
    ),
    Claim(
        "gaussian-no-association", "and its attention does not show the groups (Fig. 2)",
        "fig2", "Section 2, Fig. 2", "bound", "AUC of the groups not above 1/2", (-inf, 0.65),
        "48 same-group pairs among 240 have a standard error of 0.05: three of them above chance", "average", {"of": "auc"},
        region="wide_learner",
    ),
    Claim(
        "gaussian-network", "nor does that of network (T), trained on the same images (Fig. 2, for the analysed network)",
        "fig2", "Section 2, Fig. 2", "bound", "AUC of the groups not above 1/2", (-inf, 0.65),
        "48 same-group pairs among 240 have a standard error of 0.05: three of them above chance", "average", {"of": "auc"},
        region="network_t",
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
        THETA + " from the first event on; with the factor E sg of display (178)", "same_growth",
        conditions="population",
    ),
    Claim(
        "rho-growth", "rho moves by at most the two terms of Lemma G.2 a step", "three-events", "Lemma G.2", "for-all",
        "ratio at most of order 1", (-inf, 4.0), "a constant is hidden: a factor 4", "cross_growth", {"version": "Lemma G.2"},
        conditions="population",
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
        "first-event-corrected", "The first event ends after a time alpha0^-(p-2) (Lemma D.2, corrected)",
        "first-event", "Lemma D.2 (corrected)", "law", "exponent -1 at p = 3", (-1.05, -0.95),
        "a noiseless recursion over more than a decade", "event1_exponent", value=-1.0, conditions="population",
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
        "rho-growth-main", "rho moves by at most polylog alpha^p (1 + Gamma G^(p-1)) / D a step (Lemma 4.3)", "patches",
        "Lemma 4.3", "bound", "largest ratio has exponent 0 in D", (-inf, 0.1), POLYLOG, "cross_growth_exponent",
        {"version": "Lemma 4.3"}, region="beyond_diagonal", conditions="population",
    ),
    Claim(
        "rho-growth-corollary", "rho moves by at most polylog alpha^p (1 + lambda0 Xi G^(p-1)) / D a step (Corollary G.2)",
        "patches", "Corollary G.2", "bound", "largest ratio has exponent 0 in D", (-inf, 0.1), POLYLOG,
        "cross_growth_exponent", {"version": "Corollary G.2"}, region="beyond_diagonal", conditions="population",
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


def _as_printed(number: str, says: str, function: str = "", held: str = "", finding: str = "") -> Statement:
    return Statement(number, says, "", function, held, finding)


LEDGER: tuple[Statement, ...] = (
    # Definitions and assumptions
    _as_printed("Definition 2.1", "a partition of the positions into groups of C, and a label that is a sum over groups", "data.from_labels, data.labeling_function", "claim partition-is-irrelevant"),
    _as_printed("Definition 2.2", "patch association: the C most similar positions of every position are its group", "network.association", "claim association, claim encodings-associate"),
    Statement("Assumption 1", "one random group carries y w*, others +-w* at rate q; noise covariance sigma^2 (I_D - w* w*^T)", "I_d for I_D", "data.Structured", "test_data"),
    Statement("Assumption 2", "d = poly(D), C = polylog(d), q = poly(C) / D, sigma^2 = 1/d", "q(D-C) >= 0.756 C^2 is where linear models err 1/8", "theory.spurious_margin", "test_theory"),
    Statement("Definition 3.1", "self-attention: scores from X + P, output d x D", "output D x d", "", "test_network"),
    _as_printed("Definition 3.2", "positional attention: scores from P alone, values from X alone", "", "test_network"),
    Statement("Simplification 3.1", "A = P^T P is trained itself, its diagonal frozen; d = D; temperature sqrt(d)", "d and D apart; the proofs have temperature 1", "network.PositionalNetwork", "figure fig4 (two readings)"),
    _as_printed("Parametrization 3.1", "alpha(0) = nu^(1/(p-1)) and logits 0, or all N(0, omega^2); diagonal polyloglog(d); one step size", "theory.population, theory.realistic", "claim one-step-size"),
    # Theorems and lemmas of the main text
    _as_printed("Theorem 3.1", "every generalised linear model errs at least 1/8", "theory.glm_error, theory.GLM_FLOOR", "claim linear-models-fail, claim linear-error-law"),
    Statement("Theorem 3.2", "a transformer errs d^-omega(1) although the top C of <p_i, p_j> avoid every group", "for trainable A: no Gram matrix can avoid every group (test)", "theory.label_noise", "claim generalises-without, test_network"),
    _as_printed("Theorem 4.1", "population descent associates every row and errs o(1)", "", "claim gamma-above-rho, claim population-generalises, claim one-step-size"),
    _as_printed("Theorem 4.2", "with N = poly(d) descent on a sample does the same, with high probability", "", "claim association, claim generalises"),
    _as_printed("Theorem 5.1", "with pre-trained attention polylog(D) samples of a new feature are enough", "theory.sign_error, theory.sign_samples, theory.one_step_cosine, theory.transfer_snr", "claim transfer-with, claim transfer-sign, claim transfer-learned, claim transfer-order"),
    _as_printed("Theorem 5.2", "without association D^Omega(1) samples are needed", "theory.coupon_error, theory.coupon_samples, theory.unassociated_error_floor, theory.planted_distance", "claim transfer-without, claim transfer-coupons, claim unseen-groups"),
    _as_printed("Lemma 4.1", "under (P) the logits have three values: beta, gamma, rho", "network.tied_logits", "test_trials (full population descent, spread as draws^-1/2)", "holds"),
    _as_printed("Lemma 4.2", "under (P) v = alpha w* at all times", "", "test_trials (full population descent)", "holds"),
    _as_printed("Lemma 4.3", "gamma grows by polylog alpha^p Gamma G^(p-1), |rho| by polylog alpha^p (1 + Gamma G^(p-1)) / D at most", "theory.same_growth_printed, theory.CROSS_GROWTH", "claim gamma-growth, claim rho-growth-main, claim rho-barely-moves"),
    Statement("Hypothesis B.1", "Lambda + (C-1) Gamma + (D-C) Xi = Theta(D), Xi = Theta(1/D), (C-1) Gamma <= lambda0 / D with lambda0 = D^0.01", "the sum is 1, its denominator is meant", "theory.tied_scores", "claim same-score-cap"),
    # Appendix D: the idealised process
    Statement("Lemma D.1", "the sigmoid moves at alpha = Theta(1) / (C^2 lambda0)", "leading scale C (alpha G)^p = 1", "theory.event1_alignment_scale", "test_trials"),
    Statement("Lemma D.2", "T0 = Theta(1 / (eta C alpha0^(p-1))); alpha grows by Theta(eta C) G^p alpha^(p-1)", "alpha0^-(p-2), with its constant", "theory.event1_time_printed, theory.event1_time", "claim first-event-exponent, claim first-event-corrected, claim first-event-constant"),
    _as_printed("Lemma D.3", "y F <= Theta(1) (C^(1+1/p) alpha lambda0)^p", "theory.output_bound", "claim output-bound"),
    _as_printed("Lemma D.4", "y <w*, O_i>^p = Theta(G^p) on the signal set, S = Theta(C G^p)", "theory.signal_drive", "claim signal-drive"),
    Statement("Lemma D.5", "the rest of the image adds at most o(lambda0)^p", "a sum of D terms: needs lambda0 >= D^(1/p)", "theory.bulk_ratio", "claim same-score-cap, claim signal-dominates"),
    Statement("Lemma D.6", "N = 0 until T0", "positive: every odd power of the shift Xi C adds to it", "theory.drive_moments", "claim noise-cancels, test_theory"),
    Statement("Lemma D.7", "act'(z) = Theta(1) z^(p-1) once alpha >= nu^(1/(p-1))", "where |z| >= (2 nu / p)^(1/(p-1)); not where z is near 0", "theory.linear_part_negligible_from", "test_theory", "holds where mended"),
    Statement("Lemma D.8", "T1 = T0 + Theta(lambda0^p / (eta e^polyloglog)), then S >= max N", "display (22) drops Gamma ~ 1/D; with alpha at its optimum the time is an integral, linear in D above e^beta", "theory.event2_duration_printed, theory.event2_duration, theory.event2_duration_leading", "claim event2-printed, claim event2-derived, claim signal-dominates, claim same-score-accelerates"),
    _as_printed("Lemma D.9", "alpha >= Omega(1) / (C^2 lambda0) from T0 on", "", "claim alignment-stays"),
    Statement("Lemma D.10", "risk Omega(1) implies E sg(-yF) = Omega(1)", "sg(-x) >= 0.72 log(1 + e^-x) for x > 0", "theory.sigmoid_over_loss", "test_theory", "holds"),
    _as_printed("Lemma D.11", "from T1 on alpha grows by Theta(eta C) G^p alpha^(p-1) and does not fall until the risk is o(1)", "", "claim alignment-grows"),
    _as_printed("Lemma D.12", "E sg = Omega(1) means alpha <= polylog / (C^2 lambda0)", "theory.event1_alignment_scale", "test_trials", "holds with the scale of Lemma D.1"),
    Statement("Lemma D.13", "the loss converges linearly: at most polylog / (eta lambda0^(2p) (t - T1 + 1))", "a 1/t rate", "", "claim loss-rate, claim margin-grows"),
    _as_printed("Lemma D.14", "loss <= Theta(1) log(1 + exp(-(alpha G)^p))", "theory.loss_from_margin", "claim loss-follows-margin"),
    Statement("Lemma D.15", "error <= loss = O(1/poly(d)) in the end", "error <= loss / log 2", "theory.error_from_loss", "claim population-generalises, test_theory"),
    Statement("Lemma D.16", "sum alpha^p = Theta(1 / (eta C alpha0^(p-1) lambda0^p e^beta) + D / (C eta e^beta))", "the first exponent is p - 2", "theory.alignment_power_sum", "claim alignment-sum"),
    # Appendix E: the realistic process
    Statement("Lemma E.1", "alpha grows by Theta(eta nu) e^beta until T-bar = Theta(1 / (eta nu^((p-2)/(p-1)) e^beta))", "by eta nu D C / 2 for every beta; the power part shortens the phase", "theory.linear_drift, theory.linear_phase_end, theory.linear_phase_end_full", "claim linear-drift, claim linear-drift-diagonal, claim linear-phase-time"),
    _as_printed("Lemma E.2", "eps_v' <= (1 + eta nu polyD / sqrt d) eps_v + eta polyD / sqrt N", "", "claim linear-phase-noise"),
    _as_printed("Lemma E.3", "eps_v <= omega sqrt(d log d) + nu^(1/(p-1)) polyD / sqrt N in that phase", "", "claim linear-phase-noise"),
    _as_printed("Lemma E.4", "|A_ab| <= omega sqrt(d log d) + Theta(nu^(2/(p-1))) / (D e^beta) in that phase", "theory.logit_bound", "claim linear-phase-logits"),
    Statement("Lemma E.5", "y <w*, O_j> = e^beta on the signal set, S = C e^beta", "the signal rows have C G of the whole D C", "theory.drive_moments", "test_theory", "holds to the constant"),
    Statement("Lemma E.6", "N <= 1/poly(d)", "D C - C G > 0", "theory.drive_moments", "claim linear-drift-diagonal, test_theory", "fails"),
    Statement("Lemma E.7", "sum alpha = t alpha0 + Theta(eta nu) e^beta t^2", "eta nu D C t^2 / 4", "theory.linear_phase_sum", "test_trials", "holds where mended"),
    _as_printed("Lemma E.8", "act' = Theta(nu) below alpha = nu^(1/(p-1)), a power above", "theory.linear_part_negligible_from", "claim linear-drift, test_theory"),
    _as_printed("Lemma E.9", "eps_v <= 1/poly(d) at all times", "", "claim coupling-value"),
    _as_printed("Lemma E.10", "eps_v' <= (1 + eta alpha^(p-1) polyD / sqrt d) eps_v + eta polyD / sqrt N", "", "claim coupling-value"),
    _as_printed("Lemma E.11", "eps_v <= O(poly(d) / sqrt N) at all times", "", "claim coupling-value"),
    _as_printed("Lemma E.12", "sg(-sum x_m^p) is p-Lipschitz in the 1-norm where x_m^p >= -1/D", "theory.sigmoid_lipschitz_sides", "test_theory", "holds"),
    _as_printed("Lemma E.13", "the logits stay within 1/poly(d) of the semi-idealised ones", "", "claim coupling-logits"),
    _as_printed("Lemma E.14", "Delta_A' <= (1 + eta R) Delta_A + eta polyD sigma eps_v + eta polyD / sqrt N", "", "claim coupling-logits"),
    _as_printed("Lemma E.15", "Delta_A <= 1/poly(d) at all times", "", "claim coupling-logits"),
    Statement("Lemma E.16", "pooled powers are Lipschitz in the logits, relative to themselves", "for <v, X_m> of one sign", "theory.pooled_lipschitz_sides", "test_theory", "fails as printed (counter-example), holds where mended"),
    _as_printed("Lemma E.17", "softmax is Lipschitz relative to itself", "theory.softmax_lipschitz_sides", "test_theory", "holds"),
    _as_printed("Lemma E.18", "alpha-hat follows the updates of Events I and III and ends at alpha(T)", "", "claim follows-population"),
    _as_printed("Lemma E.19", "gradients differ by at most polyD (1/sqrt N + eps_v + Delta_A)", "", "claim coupling-gradient"),
    Statement("Lemma E.20", "T0-check = Theta(1 / (eta C alpha^(p-1)))", "alpha^-(p-2)", "theory.event1_time", "claim follows-population, claim first-event-corrected"),
    Statement("Lemma E.21", "T1-check = T0-check + Theta(lambda0^p / (eta e^polyloglog))", "as Lemma D.8", "theory.event2_duration", "claim follows-population, claim event2-derived"),
    _as_printed("Lemma E.22", "from T1-check on alpha-hat grows by Theta(eta C) G^p alpha^(p-1)", "", "claim follows-population"),
    _as_printed("Lemma E.23", "alpha-hat stops growing Theta(lambda0^(p-2) / (eta polylog)) later", "", "claim follows-population"),
    _as_printed("Lemma E.24", "the realistic model fits the labelling function", "", "claim generalises"),
    _as_printed("Lemma E.25", "the semi-idealised risk is o(1) in the end", "", "claim coupling-output, claim population-generalises"),
    _as_printed("Lemma E.26", "outputs differ by at most 1/poly(d)", "", "claim coupling-output"),
    # Appendices G to I
    Statement("Lemma G.1", "gamma grows by eta Theta(C) alpha (alpha G)^(p-1) Gamma", "its proof leaves out the event that delta_i is not 0 but not all are", "theory.same_growth_printed, theory.same_growth, theory.same_pair_events, theory.same_pair_orders, theory.pull_by_event", "claim gamma-growth, test_trials, test_theory"),
    _as_printed("Corollary G.1", "gamma grows by Theta(C eta) alpha^p Gamma G^(p-1)", "theory.same_growth_printed", "claim gamma-growth"),
    Statement("Lemma G.2", "rho moves by at most C^2 alpha (alpha G)^(p-1) Xi lambda0 / D + alpha (alpha D k Xi)^(p-1) Xi k, k = q D log d", "its events h_k start at k = 1", "theory.cross_growth_bound, theory.cross_pair_events, theory.cross_pair_orders", "claim rho-growth, test_theory"),
    Statement("Corollary G.2", "|rho| grows by polylog alpha^p (1/D + lambda0 Xi G^(p-1) / D) at most", "its proof uses q D <= 1, against Assumption 2", "theory.cross_growth_corollary", "claim rho-growth-corollary"),
    Statement("Lemma G.3", "Lambda + (C-1) Gamma outweighs Xi sum delta", "needs e^beta >= 2 q D log d", "theory.diagonal_margin", "claim alignment-grows, condition of every claim on descent"),
    _as_printed("Lemma G.4", "Lambda + (C-1) Gamma + Xi sum |delta| <= Theta(1)", "theory.tied_scores", "test_theory", "holds: at most 2"),
    _as_printed("Lemma H.1", "the gradient in v", "network.risk_gradient", "test_network", "holds"),
    Statement("Lemma H.2", "the gradient in A_ij", "lacks the factor S_ij and the linear part of the activation", "network.risk_gradient", "test_network", "holds where mended"),
    _as_printed("Lemma I.1", "permuting groups and slots leaves the law of X, and F with tied logits, as they are", "", "test_data, test_network", "holds"),
    # Appendix K
    _as_printed("Lemma K.1", "z' between z + m z^k and z + M z^k reaches v within 3 / (m z0^(k-1)) + (2^(k+1) M / m) ceil(log2(v / z0))", "theory.tensor_power_bound", "test_theory", "holds"),
    Statement("Lemma K.2", "prod (1 + A z^(k-1+kappa)) <= (1 + v^(k-1))^(2^(kappa+1) M A v^kappa log(v / z0) / m)", "the proof drops a term Theta(A) / m of display (237), which is the larger one when m = M is small", "theory.tensor_power_product_printed, theory.tensor_power_product_bound", "test_theory", "fails as printed (counter-example), holds where mended"),
    _as_printed("Lemma K.3", "sum |delta| <= Theta(q (D-C)) log d with high probability", "theory.spurious_count_tail", "test_theory", "holds"),
    _as_printed("Lemma K.4", "at most O(1) of a group's coefficients are not 0, with high probability", "theory.group_count_tail", "test_theory", "holds"),
    Statement("Lemma K.5", "a^(p-1) / (1 + e^(a^p)) is within factors 0.1 / C+ and 10 / C- of log(1 + e^(-a^p))", "for a^p in [0.135, 10]", "theory.sigmoid_power_sides", "test_theory", "fails as printed outside that range"),
    _as_printed("Lemma K.6", "0.1 log(1 + e^-x) <= sg(-x) <= 10 log(1 + e^-x) for x > 0", "theory.sigmoid_over_loss", "test_theory", "holds, between 0.7213 and 1"),
    _as_printed("Lemma K.7", "log(1 + x y) <= (1 + y) log(1 + x) for 0 < y <= x", "theory.log_product_sides", "test_theory", "holds, for all positive x and y"),
)  # fmt: skip
