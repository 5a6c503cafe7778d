"""The paper's statements as functions.

`sampling` has admissible rates, row sums and exact means, `complexity` C_eps and C_s, `features` the random-feature identities,
and `theorem` conditions, parameters, coupling and `predict`. All of them are found here.
"""

# ruff: noqa: F403
from lemmata.studies.gcn_sampling.theory.complexity import *
from lemmata.studies.gcn_sampling.theory.features import *
from lemmata.studies.gcn_sampling.theory.sampling import *
from lemmata.studies.gcn_sampling.theory.theorem import *
