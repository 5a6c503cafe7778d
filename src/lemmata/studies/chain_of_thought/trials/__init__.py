"""What is trained: one layer in the basis of patterns, with its tokens or by classes of entries (`reasoning`), tested step by
step and in one go (`testing`); and layers on top of each other (`deep`)."""

from lemmata.studies.chain_of_thought.trials.deep import Deep
from lemmata.studies.chain_of_thought.trials.reasoning import Reasoning, errors_of_weights
from lemmata.studies.chain_of_thought.trials.testing import MASSES, Testing

__all__ = ["MASSES", "Deep", "Reasoning", "Testing", "errors_of_weights"]
