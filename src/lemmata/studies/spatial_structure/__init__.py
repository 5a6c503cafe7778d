"""Spatial structure: attention that sees only positions finds out which patches belong together."""

from lemmata.study import Study

STUDY = Study(
    id="spatial-structure",
    title="Vision transformers learn spatial structure",
    summary=(
        "A one-layer transformer whose attention sees only positions is trained by gradient descent on images whose label "
        "is carried by one hidden group of patches among spurious ones. Linear models fail; solutions exist that "
        "generalise with attention unrelated to the groups; descent nevertheless finds the groups (patch association), "
        "in three events, and the attention it learns can be reused: on a new feature few samples are enough."
    ),
    citation="""
@inproceedings{jelassi2022vision,
  title     = {Vision Transformers provably learn spatial structure},
  author    = {Jelassi, Samy and Sander, Michael E. and Li, Yuanzhi},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2022}
}
""",
    figures={
        "fig1b": "Contiguous and scattered groups of patches on a grid",
        "fig2": "Gaussian patches with convolutional labels: low error, no association",
        "fig3": "An image whose spurious patches outvote its signal",
        "fig4": "Descent on a sample: the learned attention, error and alignment over training",
        "glm-floor": "Error of linear models against the dominance of spurious patches",
        "without-association": "Attention built to avoid the groups generalises",
        "three-events": "Population descent as three numbers: value, attention, margin",
        "first-event": "End of the first event against the starting alignment",
        "loss-rate": "The loss at the end of population descent",
        "common-rate": "One step size for value and attention, as the paper has it: millions of steps",
        "frozen-attention": "Descent with attention frozen at its start",
        "linear-phase": "The first phase of descent on a sample",
        "coupling": "Distance between realistic and population descent against the sample size",
        "transfer": "Samples needed for a new feature, with and without association, against the number of patches",
        "transfer-learners": "Error of seven downstream learners against their samples",
        "sizes": "What group size, spurious rate, patches, degree and diagonal do to the second event and the error",
    },
    claims={
        "linear-models-fail": "Generalised linear models err at least 1/8 where spurious patches dominate (Theorem 3.1)",
        "linear-error-law": "Their error is that of the equal-weight vote, Phi(-C / sqrt(q (D - C)))",
        "generalises-without": "Attention whose largest logits avoid every group still generalises (Theorem 3.2)",
        "avoids-every-group": "In that construction no row's top C overlaps its group (Theorem 3.2)",
        "gaussian-low-error": "On Gaussian patches with convolutional labels a one-layer transformer reaches low error (Fig. 2)",
        "gaussian-no-association": "and its attention does not show the groups (Fig. 2)",
        "association": "Descent on a sample ends with every row's top C equal to its group (Theorem 4.2)",
        "generalises": "and with an error below a quarter of the linear models' (Theorem 4.2)",
        "points-at-feature": "and with a value vector along the feature (Fig. 4)",
        "association-first": "Association is learned before generalisation (Section 4)",
        "partition-is-irrelevant": "Scattered groups are learned as well as contiguous ones (Definition 2.1)",
        "events-in-order": "The three events of population descent come in order (Section 4.1)",
        "gamma-above-rho": "Same-group logits exceed cross-group ones at every step (Theorem 4.1)",
        "rho-barely-moves": "Cross-group logits move by less than a tenth of what same-group ones do (Lemma 4.3)",
        "plateau": "Between the first two events the error is that of a linear model (Section 4.1)",
        "noise-cancels": "In the first event the rest of the image does not move the value vector (Lemma D.6, as printed)",
        "first-event-printed": "The first event ends after a time alpha0^-(p-1) (Lemma D.2, as printed)",
        "first-event-corrected": "The first event ends after a time alpha0^-(p-2) (corrected)",
        "first-event-constant": "with the constant 1 / ((p-2) c eta) (corrected)",
        "loss-rate": "The loss falls as 1/t in the end (Lemma D.13)",
        "one-step-size": "With one step size for value and attention the groups are learned too (Theorem 4.1)",
        "frozen-is-linear": "With attention frozen the error stays that of a linear model (Section 4.1)",
        "linear-drift": "In the linear phase alpha grows by eta nu D C / 2 a step (Lemma E.1, corrected)",
        "linear-phase-time": "The linear phase lasts as nu^-(p-2)/(p-1) (Lemma E.1)",
        "linear-phase-noise": "What the value vector gains off the feature there falls as N^-1/2 (Lemma E.3)",
        "coupling-value": "The part of the value vector off the feature falls as N^-1/2 (Lemma E.9)",
        "coupling-logits": "The distance of the logits to the semi-idealised ones falls as N^-1/2 (Lemma E.13)",
        "coupling-gradient": "The distance of the gradients falls as N^-1/2 (Lemma E.19)",
        "coupling-output": "The distance of the outputs falls as N^-1/2 (Lemma E.26)",
        "follows-population": "Realistic descent follows the three numbers from the end of its linear phase (Lemmas E.20-E.23)",
        "transfer-order": "With 16 samples of a new task, association generalises and its absence does not (Theorems 5.1, 5.2)",
        "transfer-with": "Samples needed with association do not grow faster than log D (Theorem 5.1)",
        "transfer-without": "Samples needed without association grow as a power of D (Theorem 5.2)",
        "one-step-cosine": "One normalised gradient step aligns as C / sqrt(C^2 + D / N) (Appendix F)",
        "event2-grows": "The second event takes longer with more patches (Lemma D.8, corrected)",
        "degree-helps": "A higher degree leaves less error",
    },
    package=__name__,
)
