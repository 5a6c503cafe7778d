"""What the paper and the thesis claim, and beforehand what would refute it. [P] is the conference paper, [T] the thesis."""

from lemmata.studies.shallow_vit.claims.behaviour import BEHAVIOUR
from lemmata.studies.shallow_vit.claims.ledger import LEDGER as LEDGER
from lemmata.studies.shallow_vit.claims.mechanism import MECHANISM

CLAIMS = (*BEHAVIOUR, *MECHANISM)
