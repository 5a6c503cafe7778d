"""One folder a paper, all with the same rooms: data, network, theory, figures, claims, README."""
