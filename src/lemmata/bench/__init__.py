"""What studies share: patterns, attention with a vote, initial models, probes. A study moves in what a second one needs."""
