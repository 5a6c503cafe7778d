"""The data: graphs whose labels are votes, sampled node sets, and the survey of real graphs."""
