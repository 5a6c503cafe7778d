"""Shallow vision transformers: how many samples and steps, and what removing tokens saves."""

from lemmata.study import Study

STUDY = Study(
    id="shallow-vit",
    title="Shallow vision transformers: sample complexity and token sparsification",
    summary=(
        "A single-head attention layer with a two-layer ReLU perceptron learns a majority vote over tokens. "
        "The theory "
        "gives the samples and steps needed as functions of the fraction of label-relevant tokens, the "
        "token noise and "
        "the error of the initial model, says that attention concentrates on relevant tokens, and that "
        "removing "
        "irrelevant or noisy tokens helps."
    ),
    citation="""
@inproceedings{li2023shallowvit,
  title     = {A Theoretical Understanding of Shallow Vision Transformers: Learning, Generalization, and
  Sample Complexity}, author    = {Li, Hongkang and Wang, Meng and Liu, Sijia and Chen, Pin-Yu}, booktitle =
  {International Conference on Learning Representations}, year      = {2023}
}
""",
    figures={
        "fig1a": "Success over the relevant fraction and the number of samples",
        "fig1b": "Success over the initial error of the values and the number of samples",
        "fig1b-noise": "Success over the token noise and the number of samples",
        "fig2": "Steps to zero training loss against the relevant fraction",
        "fig2-rate": "Steps to zero training loss against the step size",
        "fig3": "Trained against frozen attention: success over the relevant fraction and the number of "
        "samples",
        "fig4": "Attention on the relevant tokens during training",
        "fig5": "Test loss when tokens are removed at random, by irrelevance, by noise",
        "fig7": "Attention during training with 10, 15 and 20 patterns",
        "fig8": "Token removal with 10, 15 and 20 patterns",
        "initial-attention": "E1: the initial error of keys and queries",
        "ablation": "E2: rounding, token order, shared or per-token output weights",
        "single-pass": "E3: every sample seen once",
        "uniform-attention": "E4: trained, frozen and uniform attention",
        "neurons": "E5: lucky neurons, keys, queries and values pattern by pattern",
        "spurious": "E6: a background that tells the label only in training, and its removal",
        "pruning": "E7: keep only the tokens that receive most attention",
        "confusion": "E8: how many confusion tokens the vote stands",
        "variants": "Heads, skip connection, set-valued patterns, four classes",
    },
    claims={
        "zero-loss": "With enough samples the population hinge loss is zero with probability at least 0.99 "
        "(Theorem 1).",
        "sample-exponent": "The number of samples needed goes as the relevant fraction to the power -2.",
        "sample-linear": "The number of samples needed is a straight line in the relevant fraction to the "
        "power -2.",
        "frozen-exponent": "With frozen attention it goes as the relevant fraction to the power -4.",
        "attention-exponent-gain": "Training the attention improves that exponent by 2.",
        "attention-saves-samples": "Frozen attention needs more samples, by a factor that grows as "
        "relevance falls.",
        "initial-error-samples": "A larger initial error of the values needs more samples: 1/sqrt(N) falls "
        "with it.",
        "noise-samples": "More token noise needs more samples: 1/sqrt(N) falls with it.",
        "steps-fraction": "The number of steps goes as one over the relevant fraction.",
        "steps-margin": "With the background fixed, the number of steps goes as one over the majority of "
        "the vote.",
        "steps-rate-paper": "The number of steps goes as the step size to the power -1 (paper).",
        "steps-rate-thesis": "The number of steps goes as the step size to the power -3/5 (thesis).",
        "attention-rises": "Attention on the relevant tokens rises during training.",
        "attention-steady": "It never falls on the way.",
        "attention-near-one": "It ends close to one.",
        "attention-rate": "What is missing to one falls as 1/t.",
        "attention-bound": "Relevant tokens attend to relevant tokens at least as much as the rigorous "
        "bound says.",
        "logits-grow": "The logit of a discriminative pattern with itself grows, that of the others does "
        "not.",
        "random-removal": "Removing tokens at random does not help.",
        "irrelevant-removal": "Removing label-irrelevant tokens lowers the test loss.",
        "noisy-removal": "Removing noisy tokens lowers the test loss.",
        "attention-many-patterns": "Attention concentrates with 10, 15 and 20 patterns too.",
        "removal-many-patterns": "Removing irrelevant or noisy tokens helps with 10, 15 and 20 patterns too.",
        "initial-attention-steps": "A larger initial error of keys and queries needs more steps (Remark 3).",
        "single-pass-learns": "One pass over enough samples is enough.",
        "lucky-grow": "Lucky neurons with the right sign grow along their pattern.",
        "lucky-only": "They grow along no other pattern.",
        "lucky-gates": "Their gates stay open on the relevant tokens.",
        "values-grow": "Values of discriminative patterns grow, the others keep their length.",
        "unlucky-paper": "Neurons with the wrong sign stay within their initial spread (paper).",
        "unlucky-thesis": "They stay below 1/sqrt(B) of the lucky ones (thesis).",
        "keys-aligned": "Keys of discriminative patterns keep their direction.",
        "keys-elsewhere": "Keys of the other patterns keep their length.",
        "values-elsewhere": "Values of the other patterns keep their length.",
        "values-aligned": "Values of discriminative patterns grow along their lucky neurons.",
        "output-growth": "The output grows as a power of the steps between 1 and 5.",
        "background-removal": "Removing a spurious background lowers the test error.",
        "pruning-precision": "The tokens that receive most attention are the relevant ones.",
        "pruning-error": "Keeping only those does not raise the test error.",
        "confusion-paper": "The vote stands confusion up to half the factor of condition (8) (paper: slack "
        "1/2).",
        "confusion-thesis": "It stands confusion up to the whole factor (thesis: slack 1).",
        "heads-steady": "More heads make the number of steps no more variable.",
        "extensions-learn": "Heads, a skip connection, set-valued patterns and four classes are learnt as well.",
        "sets-attention": "With set-valued patterns the attention on relevant tokens rises too.",
        "shared-weights-easier": "With output weights shared by all tokens fewer samples are needed.",
        "uniform-attention-worse": "With uniform attention more samples are needed.",
    },
    package=__name__,
)
