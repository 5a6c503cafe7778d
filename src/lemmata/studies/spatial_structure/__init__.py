"""Spatial structure: attention that sees only positions finds out which patches belong together."""

from lemmata.studies.spatial_structure.claims import CLAIMS, LEDGER
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
        "encodings": "Trainable positional encodings and self-attention beside the analysed network",
        "glm-floor": "Error of linear models against the dominance of spurious patches",
        "without-association": "Attention built to avoid the groups generalises",
        "three-events": "Population descent as three numbers: value, attention, margin",
        "patches": "The second event and what it takes, against the number of patches",
        "first-event": "End of the first event against the starting alignment",
        "loss-rate": "The loss at the end of population descent",
        "common-rate": "One step size for value and attention, as the paper has it: millions of steps",
        "frozen-attention": "Descent with attention frozen at its start",
        "linear-phase": "The first phase of descent on a sample",
        "coupling": "Distance between realistic and population descent against the sample size",
        "transfer": "Samples needed for a new feature, with and without association, against the number of patches",
        "transfer-learners": "Error of ten downstream learners against their samples",
        "sizes": "What group size, spurious rate, patches, degree and diagonal do to the second event and the error",
    },
    claims=CLAIMS,
    ledger=LEDGER,
    package=__name__,
)
