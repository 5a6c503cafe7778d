"""From records to numbers with intervals: thresholds, boundaries, exponents, level sets, times, comparisons."""
