"""Inputs and labels, and starts, of one's own for descent on Gaussian mixtures."""

import numpy as np

from lemmata.descent import Descent
from lemmata.studies.group_imbalance.data import Population
from lemmata.studies.group_imbalance.trials import Descents, Starts
from tests.own import Case, Refused, begun

SMALL = Population(dim=3, neurons=2, samples=4000, teacher_columns=((2.0, 0.0, 0.0), (0.0, 2.0, 1.0)))
TRIAL = Descents(
    population=SMALL,
    descent=Descent(learning_rate=1.0, loss="cross-entropy", stop="cap", steps=4, logs=2),
    test_points=50,
)
STARTS = Starts(population=SMALL, starts=3, tolerance=1e-10)


def samples(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of two groups, the larger one wide, with labels of SMALL's teacher."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(count, 3)) * np.where(rng.random(count) < 0.3, 0.5, 1.6)[:, None]
    chance = np.mean(1 / (1 + np.exp(-inputs @ np.array(SMALL.teacher_columns).T)), axis=1)
    return inputs, (rng.random(count) < chance).astype(float)


def risk(weights, inputs, labels):
    """The cross-entropy of the mean of sigmoids, its gradient and its Hessian (columns of W one after another)."""
    neurons = weights.shape[1]
    each = 1 / (1 + np.exp(-inputs @ weights))
    mean = each.mean(axis=1)
    first, second = each * (1 - each), each * (1 - each) * (1 - 2 * each)
    loss = -np.mean(labels * np.log(mean) + (1 - labels) * np.log(1 - mean))
    to_mean = -labels / mean + (1 - labels) / (1 - mean)
    bend = labels / mean**2 + (1 - labels) / (1 - mean) ** 2
    rows = np.einsum("nj,nd->njd", first / neurons, inputs).reshape(len(labels), -1)
    hessian = (rows * bend[:, None]).T @ rows / len(labels)
    for j in range(neurons):
        part = slice(3 * j, 3 * j + 3)
        hessian[part, part] += (inputs * (to_mean * second[:, j] / neurons)[:, None]).T @ inputs / len(labels)
    return loss, (to_mean @ rows / len(labels)).reshape(neurons, -1).T, hessian


def critical(start, inputs, labels):
    """The zero of the gradient that Newton's method reaches from the teacher's neighbourhood."""
    weights = start.copy()
    for _ in range(50):
        _, gradient, hessian = risk(weights, inputs, labels)
        weights = weights - np.linalg.solve(hessian, gradient.T.ravel()).reshape(gradient.T.shape).T
    assert np.linalg.norm(gradient) < 1e-12
    return weights


def descended(seed, data=None, weights=None):
    """What a descent with these samples and this start records."""
    state = begun(TRIAL, seed)
    inputs, labels = state.data if data is None else data
    now = np.array(state.fit.params if weights is None else weights)
    teacher = np.array(SMALL.teacher_columns).T
    goal = critical(teacher, inputs, labels)
    spectrum = np.linalg.eigvalsh(risk(goal, inputs, labels)[2])
    rate = 1 / np.linalg.eigvalsh(risk(now, inputs, labels)[2])[-1]
    for _ in range(4):
        now = now - rate * risk(now, inputs, labels)[1]
    soft = np.mean(1 / (1 + np.exp(-inputs @ teacher)), axis=1)
    fisher = np.linalg.eigvalsh(risk(teacher, inputs, soft)[2])
    ahead = now - rate * risk(now, inputs, labels)[1]
    return {
        "step_size": rate,
        "distance": np.linalg.norm(now - goal),
        "final_loss": risk(now, inputs, labels)[0],
        "critical_loss": risk(goal, inputs, labels)[0],
        "contraction": np.linalg.norm(ahead - goal) / np.linalg.norm(now - goal),
        "contraction_exact": 1 - rate * spectrum[0],
        "curvature_low": spectrum[0],
        "curvature_high": spectrum[-1],
        "rate_sharp": fisher[0] / fisher[-1],
        "error_sharp": np.sqrt(np.sum(1 / fisher) / len(labels)),
        "error": np.linalg.norm(goal - teacher),
        "last_error": np.linalg.norm(now - teacher),
    }


def spread(seed, data=None, weights=None):
    """What the searches from these starts record."""
    state = begun(STARTS, seed)
    inputs, labels = state.data if data is None else data
    starts = state.search.weights if weights is None else weights
    teacher = np.array(SMALL.teacher_columns).T
    ends = np.array([critical(np.array(start), inputs, labels) for start in starts])
    return {
        "init_spread": np.sqrt(np.mean(np.sum((ends - ends.mean(axis=0)) ** 2, axis=(1, 2)))),
        "error": np.median(np.linalg.norm(ends - teacher, axis=(1, 2))),
        "arrived": 1.0,
        "slope_curve": [np.mean([risk(np.array(start), inputs, labels)[1] ** 2 for start in starts])],
    }


MINE, FEW = samples(9000, 5), samples(3000, 6)
NEAR = np.array([[1.9, 0.3], [0.2, 1.7], [-0.1, 1.2]])
AROUND = NEAR + 0.1 * np.random.default_rng(7).normal(size=(3, 3, 2))

CASES = [
    Case("samples", TRIAL, 0, MINE, None, lambda: descended(0, data=MINE)),
    Case("start", TRIAL, 0, None, NEAR, lambda: descended(0, weights=NEAR)),
    Case("samples-and-start", TRIAL, 1, FEW, NEAR, lambda: descended(1, FEW, NEAR)),
    Case("search-samples", STARTS, 0, MINE, None, lambda: spread(0, data=MINE)),
    Case("search-starts", STARTS, 0, None, AROUND, lambda: spread(0, weights=AROUND)),
]

REFUSED = [
    Refused(TRIAL, MINE[0], None, "data takes (float64 (4000, 3), float64 (4000,))"),
    Refused(TRIAL, (MINE[0][:, :2], MINE[1]), None, "data[0] takes an array of shape (any number, 3)"),
    Refused(TRIAL, (MINE[0], MINE[1][:-1]), None, "not 9000 in data[0], 8999 in data[1]"),
    Refused(TRIAL, (MINE[0], 2 * MINE[1] - 1), None, "data[1] (labels) takes numbers from 0 to 1, not -1"),
    Refused(TRIAL, (MINE[0], MINE[1] > 0), None, "not bool"),
    Refused(TRIAL, None, NEAR.T, "weights takes an array of shape (3, 2), not (2, 3)"),
    Refused(STARTS, None, NEAR, "weights takes an array of shape (3, 3, 2), not (3, 2)"),
    Refused(STARTS, (MINE[0], MINE[1] + np.inf), None, "finite"),
]
