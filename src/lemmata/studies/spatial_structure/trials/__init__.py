"""The trainings, and what they are compared with.

| module      | trials |
|-------------|--------|
| `images`    | `ImageDescent`: all logits and the value vector, on a sample or on fresh images; encodings; self-attention |
| `recursion` | `IdealisedDescent`: population descent as three numbers |
| `flow`      | `IdealisedFlow`, `SampleFlow`: both at one rate, as the step size goes to 0 |
| `coupling`  | `CoupledDescent`: realistic, semi-idealised and idealised descent side by side |
| `gaussian`  | `GaussianDescent`: the counter-example of Figure 2 |
| `transfer`  | `Transfer`: downstream learners with and without association |
| `baselines` | `Illustration`, `LinearModel`, `HandBuilt` |
"""

from lemmata.studies.spatial_structure.trials.baselines import HandBuilt, Illustration, LinearModel
from lemmata.studies.spatial_structure.trials.coupling import CoupledDescent
from lemmata.studies.spatial_structure.trials.flow import IdealisedFlow, SampleFlow
from lemmata.studies.spatial_structure.trials.gaussian import GaussianDescent
from lemmata.studies.spatial_structure.trials.images import ImageDescent
from lemmata.studies.spatial_structure.trials.recursion import IdealisedDescent
from lemmata.studies.spatial_structure.trials.transfer import Transfer

__all__ = [
    "CoupledDescent",
    "GaussianDescent",
    "HandBuilt",
    "IdealisedDescent",
    "IdealisedFlow",
    "Illustration",
    "ImageDescent",
    "LinearModel",
    "SampleFlow",
    "Transfer",
]
