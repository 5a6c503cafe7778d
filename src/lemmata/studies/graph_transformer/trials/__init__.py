"""What one training is: of a node's label (`nodes`), and the variants of appendix B.5 (`variants`)."""

from lemmata.studies.graph_transformer.trials.nodes import (
    GROUPS,
    GraphTraining,
    Surveying,
)
from lemmata.studies.graph_transformer.trials.variants import (
    ClusterTraining,
    FourClassTraining,
    GraphSetTraining,
)

__all__ = [
    "GROUPS", "ClusterTraining", "FourClassTraining", "GraphSetTraining", "GraphTraining", "Surveying",
]  # fmt: skip
