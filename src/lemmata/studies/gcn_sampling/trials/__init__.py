"""What one training is: with a sampled graph, or beside its twin with A*; and what is computed without training, of the sampler
and of the start."""

from lemmata.studies.gcn_sampling.trials.draws import Draws
from lemmata.studies.gcn_sampling.trials.on_file import OnFile
from lemmata.studies.gcn_sampling.trials.rounds import Alternative, Curvature
from lemmata.studies.gcn_sampling.trials.start import Existence, NearStart
from lemmata.studies.gcn_sampling.trials.training import Algorithm, Training
from lemmata.studies.gcn_sampling.trials.twins import Twins

__all__ = [
    "Algorithm",
    "Alternative",
    "Curvature",
    "Draws",
    "Existence",
    "NearStart",
    "OnFile",
    "Training",
    "Twins",
]
