"""Exact reductions of a training to a smaller one: the same numbers to rounding, for a fraction of the work."""
