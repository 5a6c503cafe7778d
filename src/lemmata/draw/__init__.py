"""Pictures of results: they see Datasets and verdicts, nothing else."""
