"""Names of the fields and records of the study: meaning and symbol in the paper."""

from lemmata.names import Name

NAMES = {
    "data.relevant": Name("relevant patterns", "M_1"),
    "data.irrelevant": Name("irrelevant patterns", "M_2"),
    "data.relevant_fraction": Name("share of contexts with the pattern of the query", "alpha"),
    "data.pattern_norm": Name("norm of the patterns", "beta"),
    "data.noise_bound": Name("largest coefficient of irrelevant patterns", "K"),
    "data.examples": Name("contexts of a training prompt", "l_tr"),
    "data.task_count": Name("training tasks; 0: those that cover all", "|T_tr|"),
    "data.room": Name("places of a prompt"),
    "test.noise_bound": Name("largest coefficient of irrelevant patterns in the test", "K'"),
    "test.coefficient_sum": Name("sum of the coefficients out of domain", "S_1"),
    "test.fractions": Name("share of contexts with the pattern of the query in the test", "alpha'"),
    "test.lengths": Name("contexts of a test prompt", "l_ts"),
    "diagonal": Name("initial queries and keys", "delta"),
    "hinge": Name("hinge loss on unseen tasks"),
    "error": Name("error on unseen tasks"),
    "ood_hinge": Name("hinge loss out of domain"),
    "ood_error": Name("error out of domain"),
    "mass": Name("attention on contexts of the query's pattern", "1 - gamma_t"),
}
