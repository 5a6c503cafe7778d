"""The document's statements as functions: `sampling` (admissible rates, row sums, exact means), `complexity` (C_eps, C_s), `features`
(random-feature identities) and `theorem` (conditions, parameters, coupling, `predict`). All of them are found here."""

# ruff: noqa: F403
from lemmata.studies.gcn_sampling.theory.complexity import *
from lemmata.studies.gcn_sampling.theory.features import *
from lemmata.studies.gcn_sampling.theory.sampling import *
from lemmata.studies.gcn_sampling.theory.theorem import *
