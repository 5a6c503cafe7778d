"""Exact reductions of a training to a smaller one that gives the same numbers up to rounding."""
