"""How a run can end, by number and by name. `capped`: its stop rule was not met in time."""

RUNNING, CONVERGED, CAPPED, DIVERGED, FAILED = range(5)
STATUS = ("running", "converged", "capped", "diverged", "failed")
