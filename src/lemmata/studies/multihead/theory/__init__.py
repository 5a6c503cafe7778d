"""The theorems as functions: `bounds` (general data), `mixture` (the token mixture), their `conditions` at a trial, and what
they say before anything is trained (`predict`). All of them are found here."""

# ruff: noqa: F403
from lemmata.studies.multihead.theory.bounds import *
from lemmata.studies.multihead.theory.conditions import *
from lemmata.studies.multihead.theory.forecast import *
from lemmata.studies.multihead.theory.mixture import *
