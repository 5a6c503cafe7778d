"""What is run: the one-layer model, the small GPT-2 style model, classic learners on the same prompts."""

from lemmata.studies.in_context_learning.trials.classic import Classic
from lemmata.studies.in_context_learning.trials.deep import Stack
from lemmata.studies.in_context_learning.trials.layer import DIRECTIONS, NORMS, ORDERS, Layer
from lemmata.studies.in_context_learning.trials.testing import Testing

__all__ = ["DIRECTIONS", "NORMS", "ORDERS", "Classic", "Layer", "Stack", "Testing"]
