"""In-context learning of binary tasks: a layer that attends to contexts like the query and reads their labels."""

from lemmata.study import Study

STUDY = Study(
    id="in-context-learning",
    title="In-context learning, in and out of domain, with pruning",
    summary=(
        "A transformer layer is trained by SGD on prompts of a few binary tasks. It learns to attend to the contexts that "
        "share the query's pattern and to read their labels. It then solves unseen tasks, and tasks over mixtures of the "
        "patterns, without an update. Neurons that stay small may be pruned."
    ),
    citation="""
@inproceedings{li2024nonlinear,
  title     = {How Do Nonlinear Transformers Learn and Generalize in In-Context Learning?},
  author    = {Li, Hongkang and Wang, Meng and Lu, Songtao and Cui, Xiaodong and Chen, Pin-Yu},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}
""",
    version="H. Li, doctoral thesis, Rensselaer Polytechnic Institute, December 2024: "
    "chapter 6 and appendix E",
    package=__name__,
)
