"""What the paper predicts, as functions of its own numbers, and its conditions at a trial.

| module       | |
|--------------|-|
| `images`     | the distributions: label noise, linear models, how well planted groups hide |
| `events`     | the linear phase and the three events (Appendices D, E, G) |
| `transfer`   | few samples of a new task, with the groups known and without (Section 5, Appendix F) |
| `lemmas`     | the technical lemmas (Appendices E, G, K) |
| `conditions` | the conditions of the theorems, and `predict` |
"""

from lemmata.studies.spatial_structure.theory.conditions import *  # noqa: F403
from lemmata.studies.spatial_structure.theory.events import *  # noqa: F403
from lemmata.studies.spatial_structure.theory.images import *  # noqa: F403
from lemmata.studies.spatial_structure.theory.lemmas import *  # noqa: F403
from lemmata.studies.spatial_structure.theory.transfer import *  # noqa: F403
