"""In-context learning of binary tasks: a layer that attends to contexts like the query and reads their labels."""

from lemmata.studies.in_context_learning.claims import CLAIMS, LEDGER
from lemmata.study import Study

STUDY = Study(
    id="in-context-learning",
    title="In-context learning, in and out of domain, with pruning",
    summary=(
        "A transformer layer trained by SGD on prompts of a few binary tasks learns to attend to the contexts that share the query's "
        "pattern and to read their labels, so that it solves unseen tasks, and tasks over mixtures of the patterns, without an update. "
        "Neurons that stay small may be pruned."
    ),
    citation="""
@inproceedings{li2024nonlinear,
  title     = {How Do Nonlinear Transformers Learn and Generalize in In-Context Learning?},
  author    = {Li, Hongkang and Wang, Meng and Lu, Songtao and Cui, Xiaodong and Chen, Pin-Yu},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}
""",
    figures={
        "figE-2": "Error against the number of training tasks",
        "fig6-2": "Attention, projections and neurons along training, in and out of domain",
        "fig6-3": "Out-of-domain error over S_1, and error over the prompt length: one layer and a small GPT-2 style model",
        "fig6-4": "In-context learning against classic learners on the same contexts",
        "fig6-5": "Pruning neurons by size, at random and from above",
        "figE-1-length": "Training prompt length needed against alpha",
        "figE-1-steps": "Iterations needed against alpha",
        "beta": "Iterations needed against the pattern norm",
        "patterns": "Iterations needed against the number of patterns",
        "lemmas": "What the lemmas of the proof bound, along a run",
        "variants": "Several heads, several patterns per class, logistic loss, softmax over the query, noise on inputs",
        "agreement": "Two ways to the same training",
    },
    claims=CLAIMS,
    package=__name__,
    ledger=LEDGER,
)
