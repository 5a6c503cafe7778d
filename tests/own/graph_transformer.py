"""Own graphs and weights of the graph transformer: gradient descent on the hinge loss by hand. Sets are as large as what they
are drawn from, and batches hold all labelled nodes, so that nothing is left to chance."""

from functools import partial

import numpy as np

from lemmata.studies.graph_transformer.data.model import VoteGraph
from lemmata.studies.graph_transformer.data.own import OwnClasses, OwnClusters, OwnGraph, OwnGraphs
from lemmata.studies.graph_transformer.data.variants import ClusterGraph, FourClassGraph, GraphSet
from lemmata.studies.graph_transformer.network import Network, Parameters
from lemmata.studies.graph_transformer.trials import (
    ClusterTraining,
    FourClassTraining,
    GraphSetTraining,
    GraphTraining,
)
from lemmata.studies.graph_transformer.trials.nodes import SGD
from lemmata.studies.graph_transformer.trials.real_training import RealNodes
from lemmata.trial import put, put_all
from tests.own import Case, Refused, begun

NODES, KNOWN, DIM, BUCKETS, NEURONS, WIDTH, STEPS, RATE = 8, 4, 5, 4, 6, 7, 3, 0.8
GRAPHS, TRAINED = 5, 3

DESCENT = put_all(
    SGD, {"learning_rate": RATE, "batch": KNOWN, "steps": STEPS, "log_at": tuple(range(STEPS + 1))}
)
NETWORK = Network(neurons=NEURONS, width=WIDTH)
TRIAL = GraphTraining(
    data=VoteGraph(
        nodes=NODES, labelled=KNOWN, patterns=4, dim=DIM, buckets=BUCKETS, generator="blocks", degree=3
    ),
    network=NETWORK,
    descent=DESCENT,
    sampled=NODES,
    tested=NODES - KNOWN,
    precision="float64",
)
CLUSTERS = ClusterTraining(
    data=ClusterGraph(nodes=NODES, labelled=KNOWN, clusters=2, patterns=4, dim=DIM, columns=2),
    network=put(NETWORK, "kind", "no-position"),
    descent=DESCENT,
    sampled=NODES - 1,
    precision="float64",
)
GRAPH_SET = GraphSetTraining(
    data=GraphSet(
        labelled=TRAINED,
        tested=GRAPHS - TRAINED,
        near=1,
        right=2,
        wrong=0,
        patterns=4,
        dim=DIM,
        buckets=BUCKETS,
    ),
    network=NETWORK,
    descent=put(DESCENT, "batch", TRAINED),
    precision="float64",
)
CLASSES = FourClassTraining(
    data=FourClassGraph(nodes=NODES, labelled=KNOWN, patterns=5, dim=DIM, buckets=BUCKETS, first=1, second=2),
    network=NETWORK,
    descent=DESCENT,
    sampled=NODES - 1,
    precision="float64",
)


def weights(dim: int, buckets: int, seed: int = 3) -> Parameters:
    rng = np.random.default_rng(seed)
    shapes = (WIDTH, dim), (WIDTH, dim), (WIDTH, dim), (WIDTH, NEURONS), (buckets,)
    return Parameters(*(0.5 * rng.normal(size=shape) for shape in shapes))


def distances(rng, nodes: int):
    """Any symmetric distances, 0 from a node to itself alone."""
    half = np.triu(rng.integers(1, BUCKETS, (nodes, nodes)), 1)
    return half + half.T


def orthonormal(rng, count: int, dim: int):
    return np.linalg.qr(rng.normal(size=(dim, count)))[0].T


def graph(parts: int = 1) -> OwnGraph:
    rng = np.random.default_rng(1)
    return OwnGraph(
        orthonormal(rng, 4, DIM),
        rng.normal(size=(NODES, DIM)),
        distances(rng, NODES),
        np.array([0, 2, 1, 3, 2, 0, 3, 1]),
        np.array([1, -1, -1, 1, 1, -1, -1, 1]),
        np.array([3, 1, 7, 2, 0, 6, 5, 4]),
        (rng.random((parts, NODES, NODES)) < 0.5) & ~np.eye(NODES, dtype=bool),
    )


def clusters() -> OwnClusters:
    one, rng = graph(), np.random.default_rng(2)
    wide = DIM + 2
    features = rng.normal(size=(NODES, wide))
    return OwnClusters(orthonormal(rng, 4, wide), features, rng.integers(0, 2, NODES), one.label, one.order)


def graphs() -> OwnGraphs:
    rng, nodes = np.random.default_rng(4), GRAPH_SET.data.nodes
    return OwnGraphs(
        orthonormal(rng, 4, DIM),
        rng.normal(size=(GRAPHS, nodes, DIM)),
        np.stack([distances(rng, nodes) for _ in range(GRAPHS)]),
        np.array([1, -1, -1, 1, -1]),
    )


def classes() -> OwnClasses:
    one, rng = graph(), np.random.default_rng(5)
    return OwnClasses(
        orthonormal(rng, 5, DIM), one.features, one.distance, rng.integers(0, 5, NODES),
        rng.choice([-1, 1], (NODES, 2)), one.order,
    )  # fmt: skip


def asked(w, signs, asking, tokens, away):
    """F of one node, its gradient in the parameters, the attention, and what neurons see."""
    query, key, value, hidden, bias = w
    logits = tokens @ key.T @ query @ asking + bias[away]
    raised = np.exp(logits - logits.max())
    alpha = raised / raised.sum()
    mixed = alpha @ tokens
    inside = value @ mixed @ hidden
    gates = signs * (inside > 0)
    pulled = hidden @ gates
    towards = value.T @ pulled
    moved = alpha * (tokens @ towards - mixed @ towards)
    gradient = (
        np.outer(key @ (moved @ tokens), asking),
        np.outer(query @ asking, moved @ tokens),
        np.outer(pulled, mixed),
        np.outer(value @ mixed, gates),
        np.bincount(away, moved, len(bias)),
    )
    return np.maximum(inside, 0) @ signs, gradient, alpha, inside


def stepped(w, found, labels, moved_bias=True):
    """One step on the mean hinge loss of outputs with their gradients."""
    new = [part.copy() for part in w]
    for (output, gradient, *_), label in zip(found, labels, strict=True):
        if label * output < 1:
            for part, one in zip(new[: None if moved_bias else -1], gradient, strict=False):
                part += RATE * label * one / len(labels)
    return new


def arrays(given) -> list[np.ndarray]:
    return [np.array(part, float) for part in given]


def judged(outputs, labels):
    signed = np.array(outputs) * labels
    return np.mean(np.maximum(0, 1 - signed)), np.mean(signed <= 0)


def of_graph(trial: GraphTraining, own: OwnGraph | None, given: Parameters | None, itself: bool = True):
    state = begun(trial, 0)
    nodes, signs = state.world.nodes, state.world.signs
    if own is None:
        near = (nodes.distance == 1) | (nodes.distance == 2)
        sets = near[None]
    else:
        nodes, sets = own, own.sets
    w = first = arrays(state.params if given is None else given)
    label, pattern, away = (np.asarray(part, int) for part in (nodes.label, nodes.pattern, nodes.distance))
    seen = [
        np.flatnonzero(row | (np.arange(NODES) == n if itself else not row.any()))
        for n, row in enumerate(sets.any(0))
    ]
    known, tests = nodes.order[:KNOWN], nodes.order[KNOWN:]

    def told(w, which):
        x = nodes.features
        return [asked(w, signs, x[n], x[seen[n]], away[n, seen[n]]) for n in which]

    curves = {name: [] for name in ("test_hinge", "test_error", "attention", "confused", "bias")}
    shifts = []
    for step in range(STEPS + 1):
        found, good, bad = told(w, tests), [], []
        for n, (_, _, alpha, _) in zip(tests, found, strict=True):
            own_kind = 0 if label[n] > 0 else 1
            good.append(alpha @ (pattern[seen[n]] == own_kind))
            bad.append(alpha @ (pattern[seen[n]] == 1 - own_kind))
        hinge, error = judged([one[0] for one in found], label[tests])
        voting = pattern[tests] < 2
        groups = [[np.mean(np.array(part)[at]) for at in (voting, ~voting)] for part in (good, bad)]
        for name, value in zip(curves, (hinge, error, *groups, w[4]), strict=True):
            curves[name].append(value)
        shifts.append(np.linalg.norm((w[2] - first[2]) @ nodes.patterns.T, axis=0))
        if step < STEPS:
            w = stepped(w, told(w, known), label[known])
    own_kind = np.where(label > 0, 0, 1)[:, None]
    votes = (pattern == own_kind).astype(int) - (pattern == 1 - own_kind)
    sizes = np.stack([(away == z).sum(1) for z in range(BUCKETS)])
    share = [
        np.mean(((away == z) @ (pattern < 2).astype(int))[sizes[z] > 0] / sizes[z][sizes[z] > 0])
        for z in range(BUCKETS)
    ]
    margin = [np.mean(np.sum(votes * (away == z), axis=1)) for z in range(BUCKETS)]
    core = 1 + int(np.argmax(margin[1:]))
    confusion = []
    for n in np.flatnonzero(pattern >= 2):
        there = np.flatnonzero(sets.any(0)[n] & (away[n] == core))
        good, bad = np.sum(votes[n, there] > 0), np.sum(votes[n, there] < 0)
        confusion += [bad / (good + bad)] if good + bad else []
    lucky = [
        np.all(
            [
                (one[3] > 0) & (signs == sign * abs(signs))
                for one in told(first, np.flatnonzero(pattern == kind))
            ],
            0,
        )
        for kind, sign in ((0, 1), (1, -1))
    ]
    neurons = {"lucky_share_curve": [np.mean(lucky, axis=1)] * (STEPS + 1), "value_shift_curve": shifts}
    return {
        **(neurons if trial.probes == "neurons" else {}),
        **{f"{name}_curve": values for name, values in curves.items()},
        "train_hinge": judged([one[0] for one in told(w, known)], label[known])[0],
        "bias_drift": abs(w[4].sum() - first[4].sum()),
        "margin": margin, "core": core, "largest": sizes.max(1), "share": share,
        "sampled_confusion": np.mean(confusion) if confusion else 0.0,
        **({} if own is None else {"test_flipped": 0.0}),
    }  # fmt: skip


def of_clusters():
    own, signs = clusters(), begun(CLUSTERS, 0).world.signs
    w = arrays(weights(DIM + 2, 1)._replace(bias=np.zeros(1)))
    x, known, tests, nowhere = own.features, own.order[:KNOWN], own.order[KNOWN:], np.zeros(NODES, int)
    curves = {name: [] for name in ("test_hinge", "test_error", "inside")}
    for step in range(STEPS + 1):
        found = [asked(w, signs, x[n], x, nowhere) for n in tests]
        inside = [one[2] @ (own.cluster == own.cluster[n]) for n, one in zip(tests, found, strict=True)]
        said = *judged([one[0] for one in found], own.label[tests]), np.mean(inside)
        for name, value in zip(curves, said, strict=True):
            curves[name].append(value)
        if step < STEPS:
            w = stepped(w, [asked(w, signs, x[n], x, nowhere) for n in known], own.label[known], False)
    return {f"{name}_curve": values for name, values in curves.items()}


def of_graphs():
    own, signs, w = graphs(), begun(GRAPH_SET, 0).world[1], arrays(weights(DIM, BUCKETS))

    def summed(w, at):
        x, away = own.features[at], own.distance[at]
        each = [asked(w, signs, x[n], x, away[n]) for n in range(len(x))]
        return sum(one[0] for one in each), [
            sum(parts) for parts in zip(*(one[1] for one in each), strict=True)
        ]

    hinges, errors, bias = [], [], []
    for step in range(STEPS + 1):
        hinge, error = judged([summed(w, at)[0] for at in range(TRAINED, GRAPHS)], own.label[TRAINED:])
        hinges.append(hinge), errors.append(error), bias.append(w[4])
        if step < STEPS:
            w = stepped(w, [summed(w, at) for at in range(TRAINED)], own.label[:TRAINED])
    return {"test_hinge_curve": hinges, "test_error_curve": errors, "bias_curve": bias}


def both_weights() -> Parameters:
    pairs = zip(weights(DIM, BUCKETS, 6), weights(DIM, BUCKETS, 7), strict=True)
    return Parameters(*(np.stack(pair) for pair in pairs))


def of_classes():
    own, signs = classes(), begun(CLASSES, 0).world.signs
    both = [arrays(weights(DIM, BUCKETS, seed)) for seed in (6, 7)]
    x, known, tests = own.features, own.order[:KNOWN], own.order[KNOWN:]

    def told(n):
        return [asked(w, sign, x[n], x, own.distance[n]) for w, sign in zip(both, signs, strict=True)]

    hinges, errors, bias = [], [], []
    for _ in range(STEPS + 1):
        signed = np.array([[one[0] for one in told(n)] for n in tests]) * own.label[tests]
        hinges.append(np.mean(np.maximum(0, 1 - signed.sum(1))))
        errors.append(np.mean((signed <= 0).any(1)))
        bias.append([w[4].copy() for w in both])
        found = [(told(n), own.label[n]) for n in known]
        for pair, label in found:
            if sum(label[k] * pair[k][0] for k in (0, 1)) < 1:
                for k in (0, 1):
                    for part, one in zip(both[k], pair[k][1], strict=True):
                        part += RATE * label[k] * one / KNOWN
    kinds = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]])[own.pattern]
    margin = [
        [np.sum((own.distance == z) @ kinds[:, k] * own.label[:, k]) / NODES for z in range(BUCKETS)]
        for k in (0, 1)
    ]
    return {"test_hinge_curve": hinges, "test_error_curve": errors, "bias_curve": bias, "margin": margin}


HALVES = put(TRIAL, "sampler", "both")
NEURON_PROBES = put(TRIAL, "probes", "neurons")
CORE = put(TRIAL, "sampler", "core")
NO_POSITION = weights(DIM + 2, 1)._replace(bias=np.zeros(1))
OWN = weights(DIM, BUCKETS)
CASES = [
    Case("graph", TRIAL, 0, graph(), OWN, partial(of_graph, TRIAL, graph(), OWN)),
    Case("neurons", NEURON_PROBES, 0, graph(), OWN, partial(of_graph, NEURON_PROBES, graph(), OWN)),
    Case("weights", TRIAL, 0, None, OWN, partial(of_graph, TRIAL, None, OWN)),
    Case("without-itself", CORE, 0, graph(), OWN, partial(of_graph, CORE, graph(), OWN, False)),
    Case("clusters", CLUSTERS, 0, clusters(), NO_POSITION, of_clusters),
    Case("graph-set", GRAPH_SET, 0, graphs(), OWN, of_graphs),
    Case("four-classes", CLASSES, 0, classes(), both_weights(), of_classes),
]


def spoiled(**changed) -> OwnGraph:
    return graph()._replace(**changed)


QUIET = put_all(TRIAL, {"data.feature_noise": 0.0, "simulator": "patterns"})
REAL = put_all(RealNodes(), {"graph": "made", "labelled": 30, "tests": 50})

REFUSED = [
    Refused(TRIAL, np.arange(NODES), None, "data takes OwnGraph("),
    Refused(TRIAL, graph(2), None, f"takes an array of shape (1, {NODES}, {NODES})"),
    Refused(HALVES, graph(), None, f"takes an array of shape (2, {NODES}, {NODES})"),
    Refused(
        TRIAL, spoiled(features=np.zeros((NODES, DIM + 1))), None, f"takes an array of shape ({NODES}, {DIM})"
    ),
    Refused(TRIAL, spoiled(label=np.zeros(NODES, int)), None, "data.label takes +1 or -1"),
    Refused(TRIAL, spoiled(order=np.zeros(NODES, int)), None, "each node from 0 to 7 once"),
    Refused(TRIAL, spoiled(pattern=np.full(NODES, 4)), None, "data.pattern takes numbers from 0 to 3"),
    Refused(
        TRIAL,
        spoiled(distance=np.full((NODES, NODES), BUCKETS)),
        None,
        "data.distance takes numbers from 0 to 3",
    ),
    Refused(TRIAL, spoiled(distance=np.ones((NODES, NODES), int)), None, "0 from a node to itself"),
    Refused(TRIAL, spoiled(patterns=np.ones((4, DIM))), None, "takes orthonormal rows"),
    Refused(TRIAL, spoiled(sets=np.ones((1, NODES, NODES), bool)), None, "a node in its own set"),
    Refused(NEURON_PROBES, spoiled(pattern=np.full(NODES, 2)), None, "use probes=none"),
    Refused(QUIET, graph(), None, "use simulator=nodes"),
    Refused(TRIAL, None, OWN._replace(value=np.ones((2, DIM))), f"takes an array of shape ({WIDTH}, {DIM})"),
    Refused(put(TRIAL, "network.kind", "gcn"), None, OWN, "weights.query takes zeros"),
    Refused(CLUSTERS, clusters(), weights(DIM + 2, 1), "weights.bias takes zeros"),
    Refused(CLUSTERS, clusters()._replace(label=np.zeros(NODES, int)), None, "data.label takes +1 or -1"),
    Refused(GRAPH_SET, graphs()._replace(label=np.zeros(GRAPHS, int)), None, "data.label takes +1 or -1"),
    Refused(
        CLASSES, classes()._replace(pattern=np.full(NODES, 5)), None, "data.pattern takes numbers from 0 to 4"
    ),
    Refused(CLASSES, None, OWN, f"takes an array of shape (2, {WIDTH}, {DIM})"),
    Refused(REAL, np.zeros(3), None, "the graph comes from a data set"),
    Refused(REAL, None, np.zeros(3), "weights takes"),
]
