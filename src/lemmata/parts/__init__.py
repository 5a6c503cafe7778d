"""Model parts that several studies share: patterns, attention with votes, initial models, probes, graphs, networks."""
