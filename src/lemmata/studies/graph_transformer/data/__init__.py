"""The data: graphs whose labels are votes, sampled node sets, and the survey of real graphs."""

from lemmata.studies.graph_transformer.data.sampling import masks
from lemmata.studies.graph_transformer.data.surveys import survey
from lemmata.studies.graph_transformer.data.variants import graph_label, positions
from lemmata.studies.graph_transformer.data.votes import (
    average_margin,
    confusion_ratio,
    core_distance,
    inconsistent_share,
    margin_identity,
    winning_margin,
)

__all__ = [
    "average_margin", "confusion_ratio", "core_distance", "graph_label", "inconsistent_share", "margin_identity", "masks",
    "positions", "survey", "winning_margin",
]  # fmt: skip
