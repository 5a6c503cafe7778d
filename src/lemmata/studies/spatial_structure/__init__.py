"""Spatial structure: attention that sees only positions finds out which patches belong together."""

from lemmata.study import Study

STUDY = Study(
    id="spatial-structure",
    title="Vision transformers learn spatial structure",
    summary=(
        "A one-layer transformer whose attention sees only positions is trained by gradient descent on images. One hidden "
        "group of patches carries the label, among spurious ones. Linear models fail. There is attention that generalises "
        "and is unrelated to the groups. Descent nevertheless finds the groups (patch association), in three events. The "
        "attention that it learns can be reused: on a new feature few samples are enough."
    ),
    citation="""
@inproceedings{jelassi2022vision,
  title     = {Vision Transformers provably learn spatial structure},
  author    = {Jelassi, Samy and Sander, Michael E. and Li, Yuanzhi},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2022}
}
""",
    version="NeurIPS 2022, with appendices A to K",
    package=__name__,
)
