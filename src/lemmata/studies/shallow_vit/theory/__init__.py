"""The theorems as functions: `theorem` has Theorem 1, Propositions and Remarks with their conditions at a trial,
`lemmas` the statements on the way, `predictions` what they say about a setting (`lemmata predict shallow-vit`).

[P] is the conference paper, [T] the thesis. "Order-wise" statements hide constants; where a function needs one it is an
argument and defaults to 1.
"""

from lemmata.studies.shallow_vit.theory.lemmas import *  # noqa: F403
from lemmata.studies.shallow_vit.theory.predictions import predict as predict
from lemmata.studies.shallow_vit.theory.theorem import *  # noqa: F403
