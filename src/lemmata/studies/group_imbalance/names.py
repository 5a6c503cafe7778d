"""Names of the fields and records of the study: meaning and symbol in the paper."""

from lemmata.names import Name

NAMES = {
    "population.samples": Name("training samples", "n"),
    "population.dim": Name("dimension of an input", "d"),
    "population.neurons": Name("neurons", "K"),
    "population.fractions": Name("fractions of the groups", "lambda"),
    "population.shifts": Name("means of the groups along the all-ones vector", "mu"),
    "population.spreads": Name("standard deviations of the groups", "s"),
    "population.means": Name("means of the groups, if given", "mu"),
    "population.covariances": Name("covariances of the groups, if given", "Sigma"),
    "population.spectrum": Name("spectrum of the covariances"),
    "population.teacher": Name("law of the teacher", "W*"),
    "population.teacher_scale": Name("scale of the teacher"),
    "population.activation": Name("activation", "phi"),
    "population.labels": Name("drawn labels or their probabilities"),
    "radius": Name("distance of the start from the teacher", "eps"),
    "far_std": Name("standard deviation of far starts"),
    "noise": Name("size of gradient noise", "xi"),
    "group_excess": Name("excess risk, by group"),
    "group_entropy": Name("entropy of the labels, by group"),
    "distance": Name("distance to the critical point"),
    "error": Name("error of the weights"),
    "contraction": Name("factor of the distance in a step", "v"),
}
