"""The ways in which a run can end, by number and by name. `capped`: it reached its largest number of steps."""

RUNNING, CONVERGED, CAPPED, DIVERGED, FAILED = range(5)
STATUS = ("running", "converged", "capped", "diverged", "failed")
