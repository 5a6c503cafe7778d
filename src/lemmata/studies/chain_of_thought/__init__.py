"""Chain of thought against in-context learning: a layer that votes step by step."""

from lemmata.studies.chain_of_thought.claims import CLAIMS, LEDGER
from lemmata.study import Study

STUDY = Study(
    id="chain-of-thought",
    title="Chain of thought, against in-context learning",
    summary=(
        "One attention layer trained on K-step reasoning prompts learns to attend, at each step, to the examples at the same step "
        "with the same input, so that its output is their vote. Step by step it reasons right wherever each step is right more "
        "often than any other outcome; asked in one go it needs the likeliest final label to be the right one."
    ),
    citation="""
@article{li2024training,
  title   = {Training Nonlinear Transformers for Chain-of-Thought Inference: A Theoretical Generalization Analysis},
  author  = {Li, Hongkang and Wang, Meng and Lu, Songtao and Cui, Xiaodong and Chen, Pin-Yu},
  journal = {arXiv:2410.02167},
  year    = {2024}
}
""",
    figures={
        "fig7-3a": "Chain-of-thought error over the number of examples, for several shares of matching examples",
        "fig7-3b": "The same for several probabilities of the right trajectory",
        "fig7-3c": "The same for several primacies",
        "fig7-4a": "In-context error over the number of examples, for several shares of matching examples",
        "fig7-4b": "The same for several probabilities of the right trajectory",
        "fig7-4c": "The same for several primacies",
        "fig7-5": "Chain of thought against in-context learning, with and without Condition 7.3.2",
        "fig7-6": "Attention on four kinds of columns along training",
        "fig7-7": "The same in three layers with two heads",
        "figF-1": "The same in three layers with one head and sinusoidal positions",
        "chain": "The attention of each reasoning step, drawn as the chain, and how it came about",
        "span": "Test patterns inside and outside the span, and one that is never learnt",
        "noise": "Noise on the test tokens, up to its limit",
        "training-noise": "Noise on the training tokens too",
        "stage-one": "Length of the first stage against the share of matching examples",
        "iterations": "Steps, gradients and the tail against patterns and reasoning steps",
        "classes": "A closed system of a few numbers beside the training",
        "agreement": "Two ways to the same training",
    },
    claims=CLAIMS,
    package=__name__,
    ledger=LEDGER,
)
