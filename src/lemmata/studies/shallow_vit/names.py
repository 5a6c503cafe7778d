"""Names of the fields and records of the study: meaning and symbol in the paper."""

from lemmata.names import Name

NAMES = {
    "data.relevant_fraction": Name("share of relevant tokens", "alpha_*"),
    "data.confusion_fraction": Name("share of confusion tokens", "alpha_#"),
    "data.nondiscriminative_fraction": Name("share of tokens that decide nothing", "alpha_nd"),
    "data.noise_std": Name("standard deviation of Gaussian token noise", "c_0"),
    "data.noise_radius": Name("largest norm of bounded token noise", "tau"),
    "data.noise": Name("law of the token noise"),
    "data.noisy_fraction": Name("share of tokens with loud noise"),
    "data.noisy_std": Name("standard deviation of loud noise"),
    "data.background_rate": Name("share of background tokens of one pattern"),
    "data.removed_fraction": Name("share of tokens that are removed"),
    "data.removal": Name("which tokens are removed"),
    "data.samples": Name("training samples", "N"),
    "data.classes": Name("classes"),
    "network.key_dim": Name("dimension of queries and keys", "m_b"),
    "network.value_dim": Name("dimension of values", "m_a"),
    "network.attention": Name("trained, frozen or uniform attention"),
    "network.output_weights": Name("an output vector for each token, or one for all"),
    "network.initial": Name("law of the initial weights"),
    "attention_by_role": Name("attention on relevant tokens, by role of the query"),
    "steps": Name("steps until zero training loss", "T"),
}
