"""Graphs with features and labels, and weights, of one's own for sampled graph convolution.

One node is labelled and makes every batch, nothing is dropped, and samplers draw all nodes: nothing is left to chance.
"""

import dataclasses

import numpy as np

from lemmata.descent import Descent
from lemmata.studies.gcn_sampling.data import DegreeGroups, FileGroups, OwnGraph
from lemmata.studies.gcn_sampling.network import Weights
from lemmata.studies.gcn_sampling.trials import Training, Twins
from lemmata.studies.gcn_sampling.trials.on_file import OnFile
from lemmata.trial import put_all
from tests.own import Case, Refused, begun

STEPS, RATE, WIDTH = 3, 0.05, 4
STAR = np.repeat([0.7, 0.3], [3, 6])
DESCENT = Descent(
    loss="squared",
    learning_rate=RATE,
    batches="with-replacement",
    batch=1,
    stop="cap",
    steps=STEPS,
    log_at=(0, STEPS),
)
TRIAL = Training(
    graph=DegreeGroups(degrees=(4, 1), sizes=(3, 6), features=5, outputs=2), rates=(1.0, 1.0), width=WIDTH, labels=1,
    dropout=0.0, passes=STEPS, descent=DESCENT, precision="float64",
)  # fmt: skip
PLAIN = put_all(TRIAL, {"sampler": "none", "engine": "whole", "parametrisation": "conventional"})
TWINS = Twins(training=TRIAL, precision="float64")
CLASSES = OnFile(
    training=Training(
        graph=FileGroups(), rates=(1.0, 1.0), width=WIDTH, labels=1, dropout=0.0, passes=STEPS, precision="float64",
        parametrisation="conventional", descent=dataclasses.replace(DESCENT, loss="cross-entropy"),
    ),
    precision="float64",
)  # fmt: skip


def graph(nodes: int, edges: int, features: int, outputs: int, seed: int, most: int) -> OwnGraph:
    """A random graph with at most so many neighbours a node, and with a loop and a pair that comes twice."""
    rng, degree, pairs = np.random.default_rng(seed), np.zeros(nodes, int), {}
    while len(pairs) < edges:
        one, other = sorted(rng.choice(nodes, 2, replace=False).tolist())
        if (one, other) not in pairs and max(degree[one], degree[other]) < most:
            pairs[one, other] = True
            degree[[one, other]] += 1
    listed = [*pairs, (1, 1), next(iter(pairs))[::-1]]
    labels = rng.normal(size=(nodes, outputs))
    return OwnGraph(np.array(listed), rng.normal(size=(nodes, features)), labels, rng.permutation(nodes))


def own_weights(features: int, outputs: int, seed: int, biases: float) -> Weights:
    rng = np.random.default_rng(seed)
    shapes = ((features, WIDTH), (WIDTH, WIDTH), (WIDTH, outputs), (WIDTH,), (WIDTH,))
    drawn = [rng.normal(size=shape) for shape in shapes]
    return Weights(*drawn[:3], *(biases * part for part in drawn[3:]))


def normalised(pairs: np.ndarray, nodes: int) -> np.ndarray:
    """D^-1/2 (adjacency + I) D^-1/2, dense."""
    joined = np.eye(nodes)
    joined[pairs[:, 0], pairs[:, 1]] = joined[pairs[:, 1], pairs[:, 0]] = 1
    root = joined.sum(axis=1) ** -0.5
    return root[:, None] * joined * root


def drawn_matrix(graph, nodes: int) -> np.ndarray:
    """The matrix of a drawn graph, dense."""
    found, real = np.zeros((nodes, nodes)), graph.row < nodes
    found[graph.row[real], graph.column[real]] = graph.weight[real]
    return found


def layers(matrix, features, weights):
    """The hidden layers and the outputs."""
    first = np.maximum(matrix @ features @ weights.w1 + weights.bias1, 0)
    second = np.maximum(matrix @ first @ weights.w2 + weights.bias2, 0)
    return first, second, matrix @ second @ weights.readout


def trained(state, data, own, column, classes=False, readout=False):
    """Plain descent on the loss of the labelled node, with the matrix whose columns are scaled."""
    nodes = len(state.world.order)
    if data is None:
        world = state.world
        plain = drawn_matrix(world.graph, nodes)
    else:
        world, plain = data, normalised(data.pairs, nodes)
    matrix, labelled = plain * column, world.order[0]
    start = weights = state.weights if own is None else own
    for _ in range(STEPS):
        first, second, outputs = layers(matrix, world.features, weights)
        error = np.zeros_like(outputs)
        if classes:
            raw = np.exp(outputs[labelled])
            error[labelled] = (raw / raw.sum() - world.labels[labelled]) / max(1, np.log(len(raw)))
        else:
            error[labelled] = outputs[labelled] - world.labels[labelled]
        back = matrix.T @ error
        to_second = back @ weights.readout.T * (second > 0)
        to_first = matrix.T @ to_second @ weights.w2.T * (first > 0)
        weights = weights._replace(
            w1=weights.w1 - RATE * (matrix @ world.features).T @ to_first,
            w2=weights.w2 - RATE * (matrix @ first).T @ to_second,
            readout=weights.readout - RATE * readout * second.T @ back,
        )
    outputs = layers(matrix, world.features, weights)[2]
    squares, others = np.mean((outputs - world.labels) ** 2, axis=1), world.order[1:]
    moment = np.mean(np.mean(world.labels**2, axis=1)[others])
    whole = layers(plain, world.features, weights)[2]
    right = outputs.argmax(axis=1) == np.argmax(world.labels, axis=1)
    return {
        "error": squares[others].mean(),
        "normalised_error": squares[others].mean() / moment,
        "train_error": squares[labelled],
        "label_moment": moment,
        "whole_error": np.mean(np.mean((whole - world.labels) ** 2, axis=1)[others]) / moment,
        "norm": matrix.sum(axis=1).max(),
        "largest_degree": (plain > 0).sum(axis=1).max() - 1,
        "learnt_w": np.sum(np.sum((weights.w1 - start.w1) ** 2, axis=0) ** 2) ** 0.25,
        "learnt_v": np.linalg.norm(weights.w2 - start.w2),
        "largest_output": np.abs(outputs).max(),
        "right": right[others].mean(),
    }


def training(seed, data=None, own=None):
    found = trained(begun(TRIAL, seed), data, own, STAR)
    return {name: value for name, value in found.items() if name != "right"}


def conventional(seed, data, own):
    found = trained(begun(PLAIN, seed), data, own, 1.0, readout=True)
    return {name: value for name, value in found.items() if name != "right"}


def twins(seed, data=None, own=None):
    found = trained(begun(TWINS, seed).sampled, data, own, STAR)
    error = found["normalised_error"]
    return {"error": error, "twin_error": error, "norm": found["norm"], "weight_gap": 0.0}


def classes(seed, data=None, own=None):
    state = begun(CLASSES, seed)
    star = np.repeat([0.7, 0.3], [60, 60])
    found = trained(state, data, own, star, classes=True, readout=True)
    return {"accuracy": found.pop("right"), **found}


MINE = graph(9, 9, 5, 2, 1, most=4)
OWN, BARE = own_weights(5, 2, 2, 1.0), own_weights(5, 2, 3, 0.0)
FILED = graph(120, 150, 12, 3, 4, most=5)
FILED = FILED._replace(labels=np.eye(3)[FILED.labels.argmax(axis=1)])
CLASSED = own_weights(12, 3, 5, 0.0)

CASES = [
    Case("graph", TRIAL, 0, MINE, None, lambda: training(0, MINE)),
    Case("weights", TRIAL, 0, None, OWN, lambda: training(0, None, OWN)),
    Case("without-kernel", PLAIN, 1, MINE, BARE, lambda: conventional(1, MINE, BARE)),
    Case("twins", TWINS, 0, MINE, OWN, lambda: twins(0, MINE, OWN)),
    Case("file", CLASSES, 0, FILED, None, lambda: classes(0, FILED)),
    Case("file-weights", CLASSES, 0, None, CLASSED, lambda: classes(0, None, CLASSED)),
]

STAR_SHAPED = np.array([[0, other] for other in range(1, 9)])
REFUSED = [
    Refused(TRIAL, tuple(MINE), None, "data takes OwnGraph(pairs: int32 (1, 2), features: float64 (9, 5)"),
    Refused(
        TRIAL, MINE._replace(pairs=MINE.pairs.T), None, "data.pairs takes an array of shape (any number, 2)"
    ),
    Refused(TRIAL, MINE._replace(pairs=MINE.pairs + 3), None, "data.pairs takes numbers from 0 to 8"),
    Refused(TRIAL, MINE._replace(pairs=1.0 * MINE.pairs), None, "data.pairs takes numbers of the type int32"),
    Refused(TRIAL, MINE._replace(pairs=STAR_SHAPED), None, "one node has 8; raise graph.degrees"),
    Refused(TRIAL, MINE._replace(order=MINE.order * 0), None, "data.order takes every node from 0 to 8 once"),
    Refused(
        TRIAL, MINE._replace(features=MINE.features[:8]), None, "data.features takes an array of shape (9, 5)"
    ),
    Refused(
        TRIAL, None, OWN._replace(w2=OWN.w2[:, :3]), "weights.w2 takes an array of shape (4, 4), not (4, 3)"
    ),
    Refused(PLAIN, None, OWN, "zeros with parametrisation=conventional"),
    Refused(TWINS, None, OWN._replace(w1=OWN.w1.T), "weights.w1 takes an array of shape (5, 4), not (4, 5)"),
    Refused(CLASSES, FILED._replace(labels=np.ones((120, 3))), None, "rows that sum to 1"),
]
