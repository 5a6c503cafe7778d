"""Names of the fields and records of the study: meaning and symbol in the paper."""

from lemmata.names import Name

NAMES = {
    "graph.degrees": Name("degrees of the groups", "d_l"),
    "graph.sizes": Name("nodes of the groups", "N_l"),
    "graph.target_scaling": Name("scaling of the target", "p-hat"),
    "graph.features": Name("features of a node"),
    "graph.outputs": Name("outputs of a node"),
    "graph.target": Name("law of the labels"),
    "scaling": Name("scaling of each group", "p*_l"),
    "rates": Name("sampling rate of each group", "S_l/N_l"),
    "labels": Name("labelled nodes", "|Omega|"),
    "width": Name("neurons", "m"),
    "sampler": Name("how nodes are sampled"),
    "dropout": Name("share of edges that are dropped"),
    "passes": Name("steps for each labelled node"),
    "budget": Name("steps, in place of passes"),
    "norm": Name("largest row sum of the effective matrix", "|A*|_inf"),
    "error": Name("test error"),
    "normalised_error": Name("test error over the labels' second moment"),
    "twin_error": Name("error of training with samples minus that with the effective matrix"),
    "spread": Name("spread of the draws"),
}
