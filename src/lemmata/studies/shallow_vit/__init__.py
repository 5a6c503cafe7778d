"""Shallow vision transformers: how many samples and steps, and what removing tokens saves."""

from lemmata.studies.shallow_vit.claims import CLAIMS, LEDGER
from lemmata.study import Study

STUDY = Study(
    id="shallow-vit",
    title="Shallow vision transformers: sample complexity and token sparsification",
    summary=(
        "A single-head attention layer with a two-layer ReLU perceptron learns a majority vote over tokens. The theory "
        "gives the samples and steps needed as functions of the fraction of label-relevant tokens, the token noise and "
        "the error of the initial model, says that attention concentrates on relevant tokens, and that removing "
        "irrelevant or noisy tokens helps."
    ),
    citation="""
@inproceedings{li2023shallowvit,
  title     = {A Theoretical Understanding of Shallow Vision Transformers: Learning, Generalization, and Sample Complexity},
  author    = {Li, Hongkang and Wang, Meng and Liu, Sijia and Chen, Pin-Yu},
  booktitle = {International Conference on Learning Representations},
  year      = {2023}
}
""",
    figures={
        "fig1a": "Success over the relevant fraction and the number of samples",
        "fig1b": "Success over the initial error of the values and the number of samples",
        "fig1b-noise": "Success over the token noise and the number of samples",
        "fig2": "Steps to zero training loss against the relevant fraction",
        "steps": "Steps to zero training loss over the whole range of the relevant fraction",
        "fig2-rate": "Steps to zero training loss against the step size",
        "fig3": "Trained against frozen attention: success over the relevant fraction and the number of samples",
        "theorem": "The theorem's own design: success with trained, frozen and uniform attention",
        "fig4": "Attention on the relevant tokens during training",
        "fig5": "Test loss when tokens are removed at random, by irrelevance, by noise",
        "fig7": "Attention during training with 10, 15 and 20 patterns",
        "fig8": "Token removal with 10, 15 and 20 patterns",
        "initial-attention": "The initial error of keys and queries",
        "ablation": "Rounding, token order, shared or per-token output weights",
        "single-pass": "Every sample seen once",
        "uniform-attention": "Trained, frozen and uniform attention",
        "neurons": "Lucky neurons, keys, queries and values pattern by pattern",
        "spurious": "A background that tells the label only in training, and its removal",
        "pruning": "Keep only the tokens that receive most attention",
        "confusion": "How many confusion tokens the vote stands",
        "variants": "Heads, skip connection, set-valued patterns, four classes",
        "settings": "Samples and steps over random settings: what predictions are fitted to",
    },
    claims=CLAIMS,
    ledger=LEDGER,
    package=__name__,
)
