"""How a run ended, as a number in the records and as a word: no imports, so that everybody may ask."""

RUNNING, CONVERGED, CAPPED, DIVERGED, FAILED = range(5)
STATUS = ("running", "converged", "capped", "diverged", "failed")
