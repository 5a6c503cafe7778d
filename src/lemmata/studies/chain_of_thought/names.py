"""Names of the fields and records of the study: meaning and symbol in the paper."""

from lemmata.names import Name

NAMES = {
    "data.patterns": Name("training patterns", "M"),
    "data.steps": Name("reasoning steps", "K"),
    "data.match_fraction": Name("share of matching examples", "alpha"),
    "data.noise": Name("noise on training tokens"),
    "data.examples": Name("examples of a training prompt", "l_tr"),
    "test.patterns": Name("test patterns", "M'"),
    "test.match_fraction": Name("share of matching examples in the test", "alpha'"),
    "test.trajectory": Name("probability of the right trajectory", "tau"),
    "test.primacy": Name("primacy of the right steps", "rho"),
    "test.noise": Name("noise on test tokens", "delta"),
    "test.lengths": Name("examples of a test prompt", "l_ts"),
    "test.kind": Name("how test patterns lie to the training patterns"),
    "test.errors": Name("where the wrong steps of the examples are"),
    "length": Name("examples of a test prompt", "l_ts"),
    "cot_error": Name("error of the chain of thought, mean over steps"),
    "icl_error": Name("error of in-context learning"),
    "last_step_error": Name("error of the last reasoning step"),
    "masses": Name("attention on the four kinds of columns", "p_n"),
}
