"""Names of the fields and records of the study: meaning and symbol in the paper."""

from lemmata.names import Name

NAMES = {
    "data.discriminative": Name("share of discriminative nodes", "gamma_d"),
    "data.confusion": Name("confusion ratio of the core neighbourhood", "eps_S"),
    "data.flipped": Name("share of nodes that their core votes against", "eps_0"),
    "data.feature_noise": Name("noise of the features"),
    "data.labelled": Name("labelled nodes", "|L|"),
    "data.degree": Name("degree of a node"),
    "data.core": Name("core distance", "z_m"),
    "data.nodes": Name("nodes", "N"),
    "data.buckets": Name("distances that are told apart", "Z"),
    "network.self_bias": Name("initial bias of a node on itself"),
    "network.kind": Name("transformer or convolution"),
    "network.start": Name("law of the initial weights"),
    "hinge_margin": Name("margin that the hinge asks for"),
    "sampled": Name("nodes of a sampled set", "|S|"),
    "sampler": Name("how sets are sampled"),
    "attention": Name("attention on class-relevant nodes", "p_n"),
    "bias": Name("trained bias, by distance", "b"),
    "margin": Name("average winning margin, by distance", "Delta"),
}
