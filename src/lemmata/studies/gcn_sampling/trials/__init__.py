"""What one training is: with a sampled graph, beside its twin with A*; and what can be had of the sampler and of the start without
training."""

from lemmata.studies.gcn_sampling.trials.draws import Draws
from lemmata.studies.gcn_sampling.trials.start import Alternative, Existence, NearStart
from lemmata.studies.gcn_sampling.trials.training import Algorithm, Training
from lemmata.studies.gcn_sampling.trials.twins import Twins

__all__ = ["Algorithm", "Alternative", "Draws", "Existence", "NearStart", "Training", "Twins"]
