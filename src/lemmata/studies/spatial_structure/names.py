"""Names of the fields and records of the study: meaning and symbol in the paper."""

from lemmata.names import Name

NAMES = {
    "data.patches": Name("patches of an image", "D"),
    "data.dimension": Name("dimension of a patch", "d"),
    "data.group_size": Name("patches of a group", "C"),
    "data.spurious_rate": Name("rate of spurious patches", "q"),
    "data.noise": Name("noise of a patch, 1 being sigma^2 = 1/d", "sigma"),
    "data.partition": Name("how groups lie in the image"),
    "data.groups": Name("the groups, if given", "S_l"),
    "network.linear": Name("linear part of the activation", "nu"),
    "network.diagonal": Name("diagonal of the attention logits", "beta"),
    "network.init": Name("scale of the initial weights", "omega"),
    "network.degree": Name("degree of the activation", "p"),
    "network.scaling": Name("temperature of the attention"),
    "samples": Name("training samples", "N"),
    "alignment": Name("part of the value vector along the feature", "alpha"),
    "orthogonal": Name("length of the rest of the value vector", "eps_v"),
    "same": Name("logit of patches of one group", "gamma"),
    "cross": Name("logit of patches of two groups", "rho"),
    "gain": Name("signal gain of the attention", "G"),
    "logits": Name("attention logits", "A"),
    "auc": Name("area under the curve of same-group pairs"),
    "overlap": Name("share of the C largest logits that lie in the group"),
}
