"""The theorems and lemmas as functions: printed and mended forms side by side, in float64, every hidden constant 1."""

from functools import cache
from math import ceil, exp, inf, log, log10, pi, sqrt
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.optimize import root_scalar

from lemmata.errors import require, require_memory
from lemmata.measure.compare import Condition
from lemmata.parts.probes import cap_share
from lemmata.studies.graph_transformer.data import surveys
from lemmata.studies.graph_transformer.data.model import VoteGraph
from lemmata.studies.graph_transformer.data.votes import (
    average_margin,
    confusion_ratio,
    core_distance,
    discriminative_share,
    inconsistent_share,
    largest_neighbourhood,
    sizes,
    unevenness,
)
from lemmata.studies.graph_transformer.trials import GraphTraining
from lemmata.study import Prediction

ACCURACY = 0.05
"""eps, where a statement asks for one."""

PAIR_BYTES = 2
"""What a pair of nodes takes: its distance, and a copy while the table is put together."""


class Graph(NamedTuple):
    """What the theorems ask of a graph: z_m, Dbar(z), eps_S, eps_0, delta_zm, the smallest core neighbourhood, how unevenly
    discriminative nodes are spread, and their share at the core distance."""

    core: int
    margin: tuple[float, ...]
    confusion: float
    inconsistent: float
    largest: int
    smallest: int
    uneven: float
    core_share: float


class Setting(NamedTuple):
    """The quantities of the theorems at a trial: gamma_d, eps_S, eps_0, sigma, delta, xi, eta, and sizes."""

    nodes: int
    patterns: int
    neurons: int
    batch: int
    labels: int
    sampled: int
    buckets: int
    discriminative: float
    confusion: float
    inconsistent: float
    value_error: float
    query_key_error: float
    hidden_std: float
    rate: float
    largest: int


@cache
def measured(data: VoteGraph) -> Graph:
    """The graph quantities of one drawn graph of a model (seed 0): they hardly differ from draw to draw."""
    require_memory(PAIR_BYTES * data.nodes**2, f"the distances of {data.nodes} nodes")
    graph = data.graph(0)
    margin = average_margin(graph)
    core = core_distance(margin)
    return Graph(
        core, tuple(margin.tolist()), confusion_ratio(graph), inconsistent_share(graph),
        int(largest_neighbourhood(graph)[core]), int(sizes(graph)[:, core].min()), unevenness(graph),
        float(discriminative_share(graph)[core]),
    )  # fmt: skip


def setting(trial: GraphTraining) -> Setting:
    data, network = trial.data, trial.network
    graph = measured(data)
    return Setting(
        data.nodes, data.patterns, network.neurons, trial.descent.batch, data.labelled, trial.sampled, data.buckets,
        data.discriminative, graph.confusion, max(graph.inconsistent, data.flipped), network.value_error,
        network.query_key_error, network.hidden_std, trial.descent.learning_rate, graph.largest,
    )  # fmt: skip


# Theorem 3.4.4 and its remark ------------------------------------------------------------------------------------------


def transformer_steps(rate: float, inconsistent: float, query_key_error: float) -> float:
    """T = eta^-1/2 (1 - 2 eps_0)^-1/2 (1 - delta)^-1/2 (3.8)."""
    if inconsistent >= 0.5 or query_key_error >= 1:
        return inf
    return (rate * (1 - 2 * inconsistent) * (1 - query_key_error)) ** -0.5


def transformer_steps_mended(rate: float, inconsistent: float, query_key_error: float) -> float:
    """The same with eta^-1: the proof asks for eta T of order one, and a factor eta is lost between (B.91) and (B.94)."""
    return transformer_steps(1.0, inconsistent, query_key_error) / rate


def clear_vote(discriminative: float, confusion: float, value_error: float) -> float:
    """1 - 2 eps_S (1 - gamma_d) - sigma, the bracket of (3.9); the theorem needs it positive."""
    return 1 - 2 * confusion * (1 - discriminative) - value_error


def vote_labels(
    discriminative: float, confusion: float, value_error: float, largest: int, nodes: int
) -> float:
    """The first term of (3.9): (1 + delta_zm^2) log N / (1 - 2 eps_S (1 - gamma_d) - sigma)^2."""
    clear = clear_vote(discriminative, confusion, value_error)
    return (1 + largest**2) * log(nodes) / clear**2 if clear > 0 else inf


def transformer_labels(s: Setting) -> float:
    """(3.9): the larger of its first term and B T."""
    first = vote_labels(s.discriminative, s.confusion, s.value_error, s.largest, s.nodes)
    return max(first, s.batch * transformer_steps(s.rate, s.inconsistent, s.query_key_error))


def remark_labels(discriminative: float, confusion: float, value_error: float) -> float:
    """How Remark 1 reads (3.9): labels go as gamma_d^-2, (1 - eps_S)^-2 and (1 - sigma)^-2. The formula itself is much
    flatter in gamma_d: it is gamma_d^-2 only at eps_S = 1/2 and sigma = 0."""
    return (discriminative * (1 - confusion) * (1 - value_error)) ** -2


def loss_bound(inconsistent: float, accuracy: float = ACCURACY) -> float:
    """2 eps_0 + eps (3.10): a node whose label disagrees with the vote ends at y F = -1, which costs 2."""
    return 2 * inconsistent + accuracy


def vote_term_dominates(inconsistent: float, largest: int, accuracy: float = ACCURACY) -> bool:
    """eps_0 < 1/2 - delta_zm^-4 eps^-4 / 2 (the footnote of Remark 1): then the first term of (3.9) is the larger one."""
    return inconsistent < 0.5 - (largest * accuracy) ** -4.0 / 2


# Theorem 3.4.6 ---------------------------------------------------------------------------------------------------------


def convolution_steps(
    rate: float, inconsistent: float, query_key_error: float, discriminative: float
) -> float:
    """T = eta^-1/2 (1 - 2 eps_0)^-1/2 gamma_d^-2 (1 - delta)^-1/2 (3.12)."""
    return transformer_steps(rate, inconsistent, query_key_error) * discriminative**-2


def convolution_steps_mended(
    rate: float, inconsistent: float, query_key_error: float, discriminative: float
) -> float:
    """The same with gamma_d^-1: (B.59) and (B.69) give T = (eta a_1)^-1/2 with a_1 going as E[p_n(0)^2], so as gamma_d^2; and
    eta^-1 as above."""
    return transformer_steps_mended(rate, inconsistent, query_key_error) / discriminative


def convolution_labels(s: Setting) -> float:
    """(3.13): the larger of (gamma_d^2 - sigma)^-2 (1 + delta_zm^2) log N and B T."""
    clear = s.discriminative**2 - s.value_error
    first = clear**-2 * (1 + s.largest**2) * log(s.nodes) if clear > 0 else inf
    return max(
        first, s.batch * convolution_steps(s.rate, s.inconsistent, s.query_key_error, s.discriminative)
    )


def uniform_attention(core_share: float, confusion: float) -> float:
    """E[p_n(0)] of a convolution (W_K = W_Q = 0, b = 0) on the core neighbourhood: the share of class-relevant nodes in it.

    It is c gamma_d where discriminative nodes are spread evenly (c = 1 - eps_S), and 1 - eps_S whatever gamma_d is on the
    document's own graph. (B.66) is `start_attention`: its proof leaves W_K and W_Q at their start."""
    return core_share * (1 - confusion)


def start_attention(
    relevant: float | Float[ndarray, "..."], own: float | Float[ndarray, "..."], discriminative_node: bool
) -> float | Float[ndarray, "..."]:
    """p_n(0) of (B.66): attention on class-relevant nodes with orthonormal W_K and W_Q, b = 0 and no feature noise.

    A node's own pattern has logit 1 and all others 0. `relevant` is the share of class-relevant nodes in the set, `own` that of
    nodes of the asking node's pattern. A discriminative node, whose own pattern is the class-relevant one, has
    |S*| / (|S*| + (|N| - |S*|) e^-1), any other |S*| / (|N| - |S_l| + |S_l| e)."""
    if discriminative_node:
        return relevant / (relevant + (1 - relevant) * exp(-1))
    return relevant / (1 - own + own * exp(1))


# Lemma 3.4.5, Definition B.2.3 -----------------------------------------------------------------------------------------


def attention_limit(confusion: float, discriminative_node: bool) -> float:
    """Attention on class-relevant nodes goes to 1 for discriminative nodes and to 1 - eps_S for the others (3.11), its eta^C
    neglected."""
    return 1.0 if discriminative_node else 1 - confusion


def mean_attention_limit(discriminative: float, confusion: float) -> float:
    """E[p_n(T)] = 1 - eps_S (1 - gamma_d) (B.54, mended)."""
    return 1 - confusion * (1 - discriminative)


def relevant_attention(
    query_size: float,
    bias: Float[ndarray, " bucket"],
    relevant: Float[ndarray, "node bucket"],
    confusing: Float[ndarray, "node bucket"],
    other: Float[ndarray, "node bucket"],
    error: float,
    discriminative_node: bool,
) -> Float[ndarray, " node"]:
    """p_n(t) of Definition B.2.3, the predicted attention on class-relevant nodes, from |q_1(t)|, b(t) and the counts of
    nodes by distance. A discriminative node is drawn to its own pattern only, any other to both discriminative ones. Printed
    with `error` = sigma; it is a lower bound for discriminative nodes with 2 delta."""
    raised = exp(query_size**2 - error * query_size)
    weight = np.exp(bias)
    good = (relevant * weight).sum(-1) * raised
    bad = (confusing * weight).sum(-1) * (1.0 if discriminative_node else raised)
    return good / (good + bad + (other * weight).sum(-1))


# Lemma 3.4.7, Lemma B.3.3 ----------------------------------------------------------------------------------------------


def bias_gap(discriminative: float, margin: Float[ndarray, " bucket"]) -> Float[ndarray, " bucket"]:
    """gamma_d (Dbar(z_m) - Dbar(z)), what b_zm - b_z exceeds up to a constant (3.14)."""
    return discriminative * (margin[core_distance(margin)] - margin)


def first_bias_direction(margin: Float[ndarray, " bucket"]) -> Float[ndarray, " distance"]:
    """The direction of b along z = 1..Z-1 while attention is uniform: that of Dbar(z), less its mean (B.184, B.193)."""
    inside = margin[1:] - margin[1:].mean()
    return inside / np.linalg.norm(inside)


def bias_bound(s: Setting, steps: int, attention: float, sampled_margin: float, spread: float) -> float:
    """(B.25): b_z(t) >= gamma_d/2 eta^2 t^2 (1 - 2 eps_0)^3 p m (xi eta t^2)^2 margin_S(z) / K_b, with a = sqrt(m), |p_1| =
    1, and margin_S(z) the sampled margin over |S|."""
    growth = (s.hidden_std * s.rate * steps**2) ** 2
    total = (s.rate * steps) ** 2 * (1 - 2 * s.inconsistent) ** 3 * attention * s.neurons * growth
    return s.discriminative / 2 * total * sampled_margin / spread


def sampling_error(sampled: int) -> float:
    """sqrt(log|S| / |S|), how far shares among sampled nodes lie from those of the graph (B.182)."""
    return sqrt(log(sampled) / sampled)


# Lemmas B.3.1, B.3.2, B.3.4, B.3.5 -------------------------------------------------------------------------------------


def lucky_growth_printed(
    steps: Float[ndarray, " step"], hidden_std: float, rate: float, inconsistent: float, attention: float
) -> Float[ndarray, " step"]:
    """W_O,i(t) p_1 >= xi (1 + eta t^2 (1 - 2 eps_0) p / 4) (B.9), with m/a^2 = 1."""
    return hidden_std * (1 + rate * steps**2 * (1 - 2 * inconsistent) * attention / 4)


def lucky_growth(
    steps: Int[ndarray, " step"],
    hidden_std: float,
    rate: float,
    inconsistent: float,
    attention: float,
    neurons: int,
    value_error: float,
    start: float = 0.0,
) -> Float[ndarray, " step"]:
    """The same from the increments (B.91), without the factor eta lost on the way to (B.94): h(t+1) - h(t) =
    eta/sqrt(m) (p (1 - 2 eps_0) - sigma) + eta^2 t/2 (1 - 2 eps_0) p h(t). `start` is h(0), xi where it is 0."""
    own = attention * (1 - 2 * inconsistent)
    found, height = [], start or hidden_std
    for step in range(int(np.max(steps)) + 1):
        found.append(height)
        height += rate / sqrt(neurons) * (own - value_error) + rate**2 * step / 2 * own * height
    return np.asarray(found)[np.asarray(steps, int)]


def key_growth_floor(key_size: float, query_key_error: float) -> float:
    """K(t) >= exp(-(|q_1|^2 - delta |q_1|)), the least growth of a discriminative key in a step, up to a constant."""
    return exp(-(key_size**2 - query_key_error * key_size))


def key_growth(
    s: Setting,
    step: int,
    attention: float,
    total_attention: float,
    normaliser: float,
    others: float,
    key_size: float,
) -> float:
    """K(t) of (B.42), with a = sqrt(m): eta sqrt(m) [(1 - 2 eps_0) xi eta (t+1)^2 (p/4 - sigma) + eta sqrt(m)/2 P (1 - sigma)
    (xi/sqrt(m) (1 - 2 eps_0) eta (t+1)^2/4 sqrt(m) p)^2] phi (|S| - |S_1|) |q_1|^2, P the attention added up over the steps."""
    own, time = 1 - 2 * s.inconsistent, s.rate * (step + 1) ** 2
    early = own * s.hidden_std * time * (attention / 4 - s.value_error)
    late = s.rate * sqrt(s.neurons) / 2 * total_attention * (1 - s.value_error)
    late *= (s.hidden_std * own * time / 4 * attention) ** 2
    return s.rate * sqrt(s.neurons) * (early + late) * normaliser * others * key_size**2


def key_size_range(steps: int, query_key_error: float) -> tuple[float, float]:
    """|q_1(T)| lies between sqrt(log(T (1 - delta))) and T (B.45)."""
    return sqrt(max(log(steps * (1 - query_key_error)), 0.0)), float(steps)


def lucky_share(width: int, value_error: float) -> float:
    """The expected share of neurons that are lucky for one pattern: half of those within pi/2 - sigma of it (the chance behind
    Lemma B.3.5, sign included)."""
    return cap_share(width, pi / 2 - value_error) / 2


def value_coefficient(attention: float, inconsistent: float, neurons: int) -> float:
    """|V_i| = (1 - 2 eps_0)/2 p / sqrt(m) / 2, how much of each lucky row enters W_V mu_1 in a step, half of the batch
    having its label (B.31)."""
    return (1 - 2 * inconsistent) / 4 * attention / sqrt(neurons)


# Output and characteristic time ----------------------------------------------------------------------------------------


def time_to_margin(
    rate: float, hidden_std: float, neurons: int, inconsistent: float, value_error: float, attention: float
) -> float:
    """The t at which a_0 eta^3 t^5 + a_1 eta t^2 = 1 (B.46, B.47), with a = sqrt(m), a_1 = sqrt(m) xi ((1 - 2 eps_0) p/4 -
    sigma) p, a_0 = m (1 - 2 eps_0)/2 p ((xi/sqrt(m)) (1 - 2 eps_0)/4 sqrt(m) p)^2. An order of magnitude."""
    own = 1 - 2 * inconsistent
    first = sqrt(neurons) * hidden_std * max(own * attention / 4 - value_error, 0.0) * attention
    fifth = neurons * own / 2 * attention * (hidden_std * own / 4 * attention) ** 2
    require(first + fifth > 0, "with attention 0 the output never reaches the margin.")
    found = root_scalar(lambda t: fifth * rate**3 * t**5 + first * rate * t**2 - 1, bracket=(0.0, 1e12))
    return float(found.root)


# Concentration over labelled nodes -------------------------------------------------------------------------------------


def label_deviation(labels: float, largest: int, nodes: int) -> float:
    """sqrt((1 + delta_zm^2) log N / |L|), how far a mean over labelled nodes may lie from its expectation (B.56 to B.58)."""
    return sqrt((1 + largest**2) * log(nodes) / labels)


def vote_bias(discriminative: float, confusion: float, power: int = 1) -> float:
    """E[1 - p'_n] = (1 - gamma_d) eps_S (B.54), and at most `power` times that for the powers of p'_n."""
    return power * (1 - discriminative) * confusion


def moment_bound(s: float, labels: int, largest: Int[ndarray, " bucket"]) -> float:
    """The logarithm of (B.49): |L| (1 + sum_z delta_z^2) s^2."""
    return labels * (1 + float(np.sum(np.asarray(largest, float) ** 2))) * s**2


def batch_imbalance(batch: int) -> float:
    """sqrt(log B / B), what the mean label of a batch seldom exceeds (B.83)."""
    return sqrt(log(batch) / batch)


# Conditions ------------------------------------------------------------------------------------------------------------


def transformer_conditions(trial: GraphTraining) -> list[Condition]:
    """What Theorem 3.4.4 and Assumptions 3.4.2 and B.2.1 ask for."""
    s, graph = setting(trial), measured(trial.data)
    bracket = clear_vote(s.discriminative, s.confusion, s.value_error)
    return [
        Condition("m >= M^2 log N", None, s.neurons / (s.patterns**2 * log(s.nodes))),
        Condition("B >= log N / eps^2", None, s.batch * ACCURACY**2 / log(s.nodes)),
        Condition("eps_S < 1/2", s.confusion < 0.5, _below(s.confusion, 0.5)),
        Condition("eps_0 < 1/2", s.inconsistent < 0.5, _below(s.inconsistent, 0.5)),
        Condition("delta < 1/2", s.query_key_error < 0.5, _below(s.query_key_error, 0.5)),
        Condition("sigma < 1/M", None, _below(s.value_error, 1 / s.patterns)),
        Condition("2 eps_S (1 - gamma_d) + sigma < 1", bracket > 0, _below(1 - bracket, 1.0)),
        Condition("sqrt(log|S|/|S|) small", None, 1 / (s.buckets * sampling_error(s.sampled))),
        Condition("|N_zm| >= N / Z^2", None, graph.smallest * s.buckets**2 / s.nodes),
        Condition(
            "delta_zm <= sqrt N", graph.largest <= sqrt(s.nodes), sqrt(s.nodes) / max(graph.largest, 1)
        ),
        Condition(
            "discriminative nodes spread evenly (2.2)", None, _below(graph.uneven, s.discriminative / 2)
        ),
        Condition("|L| >= (3.9)", None, s.labels / transformer_labels(s)),
    ]


def convolution_conditions(trial: GraphTraining) -> list[Condition]:
    """What Theorem 3.4.6 asks for beside that."""
    s = setting(trial)
    left = sqrt(log(s.nodes) / s.nodes) + s.value_error
    others = [c for c in transformer_conditions(trial) if c.name != "|L| >= (3.9)"]
    return [
        *others,
        Condition("sqrt(log N/N) + sigma <= gamma_d^2 (B.70)", None, s.discriminative**2 / left),
        Condition("|L| >= (3.13)", None, s.labels / convolution_labels(s)),
    ]


def _below(value: float, limit: float) -> float:
    """The margin of value < limit."""
    return limit / value if value > 0 else 1e9


# Predictions -----------------------------------------------------------------------------------------------------------


def predict(trial: GraphTraining) -> tuple[list[Condition], list[Prediction]]:
    """Which distance is the core, with what margin, and how many labels and steps the theorems ask for: of a graph file, if one
    is named, or of the generator's graph."""
    if trial.data.file:
        return _of_file(trial)
    s, graph = setting(trial), measured(trial.data)
    margins = ", ".join(f"{m:.3g}" for m in graph.margin[1:])
    return transformer_conditions(trial), [
        Prediction("core distance z_m", float(graph.core)),
        Prediction("average winning margin at distances 1, 2, ...", margins),
        Prediction("eps_S, confusion ratio in the core neighbourhood", graph.confusion),
        Prediction("eps_0, nodes that their core neighbourhood votes against", graph.inconsistent),
        Prediction("test loss at most (3.10)", loss_bound(s.inconsistent)),
        Prediction("labels, order of magnitude (3.9)", transformer_labels(s)),
        Prediction(
            "its larger term (footnote 11)",
            "the vote's" if vote_term_dominates(s.inconsistent, s.largest) else "B T",
        ),
        Prediction(
            "attention on class-relevant nodes goes to (3.11), on average",
            mean_attention_limit(s.discriminative, s.confusion),
        ),
        Prediction(
            "steps, order of magnitude (3.8)", transformer_steps(s.rate, s.inconsistent, s.query_key_error)
        ),
        Prediction("the same, mended", transformer_steps_mended(s.rate, s.inconsistent, s.query_key_error)),
        Prediction("labels for a convolution (3.13)", convolution_labels(s)),
        Prediction(
            "steps for a convolution (3.12)",
            convolution_steps(s.rate, s.inconsistent, s.query_key_error, s.discriminative),
        ),
        Prediction("share of lucky neurons, each label", lucky_share(trial.network.width, s.value_error)),
    ]


def _of_file(trial: GraphTraining) -> tuple[list[Condition], list[Prediction]]:
    """The same for a graph file: nodes, features and classes as they are; sigma and eta are the trial's."""
    found = surveys.survey(trial.data.file, trial.data.buckets - 1)
    error = trial.network.value_error
    bracket = clear_vote(found.discriminative, found.confusion, error)
    conditions = [
        Condition("eps_0 < 1/2", found.inconsistent < 0.5, _below(found.inconsistent, 0.5)),
        Condition("eps_S < 1/2", found.confusion < 0.5, _below(found.confusion, 0.5)),
        Condition("2 eps_S (1 - gamma_d) + sigma < 1", bracket > 0, _below(1 - bracket, 1.0)),
        Condition(
            "classes balanced within 10 sqrt N",
            found.gap <= found.allowed_gap,
            found.allowed_gap / max(found.gap, 1),
        ),
        Condition(
            "delta_zm <= sqrt N", found.largest <= sqrt(found.nodes), sqrt(found.nodes) / found.largest
        ),
    ]
    rate = trial.descent.learning_rate
    labels = (
        vote_labels(found.discriminative, found.confusion, error, found.largest, found.nodes)
        if bracket > 0
        else None
    )
    return conditions, [
        Prediction("core distance z_m, margins per neighbour", float(found.core)),
        Prediction("core distance z_m, margins as counts", float(found.core_by_count)),
        Prediction("normalised winning margin at distances 1, 2, ...", _listed(found.normalised)),
        Prediction("average winning margin at distances 1, 2, ...", _listed(found.margin)),
        Prediction("gamma_d, discriminative nodes", found.discriminative),
        Prediction("eps_0, nodes that their core neighbourhood votes against", found.inconsistent),
        Prediction("eps_S, confusion ratio in the core neighbourhood", found.confusion),
        Prediction("test loss at most (3.10)", loss_bound(found.inconsistent)),
        Prediction("labels, order of magnitude (3.9)", _said_labels(labels, found.nodes)),
        Prediction(
            "steps, mended order of (3.8)", transformer_steps_mended(rate, min(found.inconsistent, 0.49), 0.2)
        ),
    ]


def _listed(values: Float[ndarray, " bucket"]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def _said_labels(labels: float | None, nodes: int) -> str:
    if labels is None:
        return "none suffice: 2 eps_S (1 - gamma_d) + sigma is not below 1"
    beyond = " (more than there are nodes: the bound says nothing)" if labels > nodes else ""
    return f"10^{log10(ceil(labels)):.1f}{beyond}"
