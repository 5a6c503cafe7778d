"""Names of the fields and records of the study: meaning and symbol in the paper."""

from lemmata.names import Name

NAMES = {
    "heads": Name("attention heads", "H"),
    "network.heads": Name("attention heads", "H"),
    "network.scale_exponent": Name("power of the heads that scales the output", "c"),
    "samples": Name("training samples", "n"),
    "data.samples": Name("training samples", "n"),
    "tokens": Name("tokens of a sample", "T"),
    "data.tokens": Name("tokens of a sample", "T"),
    "radius": Name("largest norm of a token", "R"),
    "distance": Name("distance of the target from the start", "Delta"),
    "head_norm": Name("largest norm of a head of the target", "q"),
    "step_size": Name("step size", "eta"),
    "steps": Name("steps", "K"),
    "start_loss": Name("training loss at the start", "L(theta_0)"),
    "target_loss": Name("training loss of the target", "L(theta)"),
    "first_samples": Name("samples of the first phase", "n_1"),
    "delta": Name("probability of failure", "delta"),
    "signal": Name("norm of the patterns", "S"),
    "relevant_fraction": Name("share of relevant tokens", "zeta"),
    "noise_law": Name("law of the noise"),
    "positions": Name("where relevant tokens stand"),
    "log_train_loss": Name("logarithm of the training loss"),
}
