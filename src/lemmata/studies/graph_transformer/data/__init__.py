"""The data: graphs whose labels are votes, sampled node sets, and the survey of real graphs."""

from lemmata.studies.graph_transformer.data.sampling import masks
from lemmata.studies.graph_transformer.data.surveys import survey
from lemmata.studies.graph_transformer.data.votes import (
    average_margin,
    confusion_ratio,
    core_distance,
    margin_identity,
    winning_margin,
)

__all__ = [
    "average_margin", "confusion_ratio", "core_distance", "margin_identity", "masks", "survey", "winning_margin",
]  # fmt: skip
