"""Images, draws and weights of one's own for networks whose attention depends on positions alone."""

from math import factorial

import numpy as np

from lemmata.descent import Descent
from lemmata.studies.spatial_structure.data import Gaussian, Structured
from lemmata.studies.spatial_structure.network import PositionalNetwork, Weights
from lemmata.studies.spatial_structure.network.variants import Encoded, Wide
from lemmata.studies.spatial_structure.trials import CoupledDescent, IdealisedDescent, ImageDescent
from lemmata.studies.spatial_structure.trials.gaussian import GaussianDescent
from lemmata.studies.spatial_structure.trials.real import RealGrids
from lemmata.studies.spatial_structure.trials.recursion import Moments, Tied
from lemmata.studies.spatial_structure.trials.transfer import Perceptron
from lemmata.trial import put_all
from tests.own import Case, Refused, begun

D, C, DIM, STEPS = 6, 2, 5, 3
NU, BETA = 0.1, 1.5
DATA = Structured(patches=D, group_size=C, dimension=DIM, partition="given", groups=(0, 1, 2, 0, 1, 2))
NETWORK = PositionalNetwork(linear=NU, diagonal=BETA, init=0.3)
GROUPS = np.array(DATA.groups)


def descent(rate: float, attention_rate: float, **options) -> Descent:
    return Descent(
        learning_rate=rate,
        attention_rate=attention_rate,
        stop="cap",
        steps=STEPS,
        log_at=(0, STEPS),
        **options,
    )


IMAGES = ImageDescent(
    DATA, NETWORK, descent(0.002, 4.0), samples=20, test_samples=7, keep_logits=True, precision="float64"
)
ENCODED = put_all(IMAGES, {"attention": "encodings", "width": 3, "keep_logits": False})
LOOKING = put_all(ENCODED, {"attention": "self"})
FRESH = put_all(IMAGES, {"descent.batches": "fresh"})
COUPLED = CoupledDescent(realistic=put_all(IMAGES, {"keep_logits": False}), draws=40)
IDEAL = IdealisedDescent(
    DATA, PositionalNetwork(linear=0.5, diagonal=BETA), descent(0.05, 3.0), draws=8, test_draws=9
)
GAUSSIAN = GaussianDescent(
    Gaussian(patches=4, group_size=2, dimension=3), PositionalNetwork(linear=NU, diagonal=BETA),
    descent(0.01, 2.0, batches="full"), learner="analysed", samples=9, test_samples=6, precision="float64",
)  # fmt: skip
WIDE = put_all(GAUSSIAN, {"learner": "wide", "channels": 3, "width": 4})
PERCEPTRON = Perceptron(DATA, descent=descent(0.1, 1.0), samples=9, test_samples=8, precision="float64")


def softmax(logits):
    raw = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return raw / raw.sum(axis=-1, keepdims=True)


def passed(logits, value, patches, labels, cube=3, linear=NU):
    """Margins of the network, and minus the gradient of the mean logistic loss in all logits and in the value vector."""
    count, scores, seen = logits.shape[0], softmax(logits), patches @ value
    z = count * seen @ scores.T
    margins = labels * np.sum(z**cube + linear * z, axis=1)
    h = (labels / (1 + np.exp(margins)))[:, None] * count * (cube * z ** (cube - 1) + linear) / len(labels)
    to_value = np.einsum("ni,ij,njd->d", h, scores, patches)
    to_logits = scores * (h.T @ seen - np.sum(h * (seen @ scores.T), axis=0)[:, None])
    return margins, to_logits, to_value


def mean_loss(margins):
    return np.mean(np.logaddexp(0, -margins))


def positional(start, data, rates):
    """Logits and value vector after the steps, the frozen diagonal as it was, and the losses on the way."""
    logits, value = (np.array(part) for part in start)
    losses = []
    for step in range(STEPS + 1):
        margins, to_logits, to_value = passed(logits, value, *data)
        losses.append(mean_loss(margins))
        if step < STEPS:
            np.fill_diagonal(to_logits, 0)
            logits, value = logits + rates[0] * rates[1] * to_logits, value + rates[0] * to_value
    return logits, value, losses, margins


def images(seed, data=None, weights=None, trial=IMAGES):
    """What a descent on images records."""
    state = begun(trial, seed)
    start = state.params if weights is None else weights
    given = unblocked(state.data) if data is None else data
    logits, value, losses, margins = positional(start, given, (0.002, 4.0))
    feature, unseen = state.world.world.feature, state.world.unseen
    along = value @ feature
    rest = np.linalg.norm(value - along * feature)
    u = along * unseen.coefficients + rest / np.sqrt(DIM) * unseen.noise
    z = D * u @ softmax(logits).T
    off = logits[(GROUPS[:, None] == GROUPS) & ~np.eye(D, dtype=bool)]
    return {
        "loss_curve": [losses[0], losses[-1]],
        "logits": logits,
        "value": value,
        "train_error": np.mean(margins <= 0),
        "alignment": along,
        "orthogonal": rest,
        "test_loss": mean_loss(unseen.labels * np.sum(z**3 + NU * z, axis=1)),
        "same_mean": off.mean(),
    }


def unblocked(data):
    """Drawn images as they were before they were cut into blocks, without padding."""
    patches, labels = data
    whole, labels = patches.transpose(0, 2, 3, 1).reshape(-1, D, DIM), labels.ravel()
    return whole[labels != 0], labels[labels != 0]


def encoded(data, weights):
    """What encodings learn: the gradient of A = P^T P goes through both factors."""
    positions, value = (np.array(part) for part in weights)
    losses = []
    for step in range(STEPS + 1):
        margins, to_logits, to_value = passed(positions.T @ positions, value, *data)
        losses.append(mean_loss(margins))
        if step < STEPS:
            positions = positions + 0.008 * positions @ (to_logits + to_logits.T)
            value = value + 0.002 * to_value
    return {"loss_curve": [losses[0], losses[-1]], "logits": positions.T @ positions, "value": value}


def looking(data, weights):
    """What self-attention says before the first step."""
    patches, labels = data
    outputs = []
    for image in patches:
        seen = image + np.array(weights.positions).T
        z = D * softmax(seen @ seen.T) @ (image @ weights.value)
        outputs.append(np.sum(z**3 + NU * z))
    return {"loss_curve": [mean_loss(labels * np.array(outputs))]}


def coupled(seed, data=None, weights=None):
    """What the realistic run of a coupling records."""
    state = begun(COUPLED, seed).realistic
    start = state.params if weights is None else weights
    given = unblocked(state.data) if data is None else data
    logits, value, *_ = positional(start, given, (0.002, 4.0))
    feature = state.world.world.feature
    along = value @ feature
    same = (GROUPS[:, None] == GROUPS) & ~np.eye(D, dtype=bool)
    return {
        "alignment": along,
        "orthogonal": np.linalg.norm(value - along * feature),
        "same_mean": logits[same].mean(),
        "cross_mean": logits[GROUPS[:, None] != GROUPS].mean(),
    }


def ideal(seed, coefficients, tied=None):
    """The three numbers from all entries: each logit moves as one of those that it stands for does on average."""
    start = begun(IDEAL, seed).tied if tied is None else tied
    alpha, gamma, rho = (float(number) for number in start)
    group = np.repeat(np.arange(D // C), C)
    same, cross = (group[:, None] == group) & ~np.eye(D, dtype=bool), group[:, None] != group
    draws = coefficients.reshape(len(coefficients), D)
    losses = []
    for step in range(STEPS + 1):
        logits = np.where(same, gamma, np.where(cross, rho, BETA))
        margins, to_logits, to_value = passed(
            logits, np.array([alpha]), draws[:, :, None], np.ones(len(draws)), linear=0.5
        )
        losses.append(mean_loss(margins))
        if step < STEPS:
            alpha = alpha + 0.05 * to_value[0]
            gamma, rho = gamma + 0.15 * to_logits[same].mean(), rho + 0.15 * to_logits[cross].mean()
    return {
        "loss_curve": [losses[0], losses[-1]],
        "alignment": alpha,
        "same": gamma,
        "cross": rho,
        "slack": np.mean(1 / (1 + np.exp(margins))),
        "largest_output": margins.max(),
    }


def moments(coefficients) -> Moments:
    """Sums over positions of the powers of what a position, the rest of its group and all others hold, with their multinomial
    counts: first of degree 3, then of degree 1."""
    own = coefficients
    group = own.sum(axis=2, keepdims=True)
    parts = (own, group - own, group.sum(axis=1, keepdims=True) - group + 0 * own)
    powers = [(a, b, 3 - a - b) for a in range(4) for b in range(4 - a)] + [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    rows = []
    for a, b, c in powers:
        ways = factorial(a + b + c) // (factorial(a) * factorial(b) * factorial(c))
        rows.append(ways * (parts[0] ** a * parts[1] ** b * parts[2] ** c).sum(axis=2))
    return Moments(np.array([row[:, 0] for row in rows]), np.array([row[:, 1:].sum(axis=1) for row in rows]))


def gaussian(seed, data=None, weights=None):
    """What the analysed network learns from Gaussian patches."""
    state = begun(GAUSSIAN, seed)
    start = state.params if weights is None else weights
    logits, value, losses, _ = positional(start, state.data if data is None else data, (0.01, 2.0))
    tested = state.world
    margins = passed(logits, value, tested.patches, tested.labels)[0]
    return {"loss_curve": [losses[0], losses[-1]], "logits": logits, "test_error": np.mean(margins <= 0)}


def wide(data, weights):
    """What the wide transformer says before the first step."""
    patches, labels = data
    positions, value, hidden, bias, readout = weights
    scores = softmax(positions.T @ positions)
    active = np.maximum(np.einsum("ij,njc->nic", scores, patches @ value) * 2 @ hidden + bias, 0)
    return {"loss_curve": [mean_loss(labels * np.einsum("niw,iw->n", active, readout))]}


def perceptron(seed, data=None, weights=None):
    """What the ReLU network on coefficients learns."""
    state = begun(PERCEPTRON, seed)
    labels, inputs = state.data if data is None else data
    inner, bias, outer = (np.array(part) for part in (state.params if weights is None else weights))
    losses = []
    for step in range(STEPS + 1):
        active = np.maximum(inputs @ inner + bias, 0)
        margins = labels * (active @ outer)
        losses.append(mean_loss(margins))
        if step < STEPS:
            pull = labels / (1 + np.exp(margins)) / len(labels)
            back = pull[:, None] * outer * (active > 0)
            outer = outer + 0.1 * pull @ active
            inner, bias = inner + 0.1 * inputs.T @ back, bias + 0.1 * back.sum(axis=0)
    test_labels, test = state.world
    found = test_labels * (np.maximum(test @ inner + bias, 0) @ outer)
    return {"loss_curve": [losses[0], losses[-1]], "test_error": np.mean(found <= 0)}


RNG = np.random.default_rng(8)
SIGNS = RNG.choice([-1.0, 1.0], 33)
MINE = (0.4 * RNG.normal(size=(33, D, DIM)) + 0.2 * SIGNS[:, None, None], SIGNS)
LOGITS = 0.4 * RNG.normal(size=(D, D))
OWN = Weights(LOGITS, 0.3 * RNG.normal(size=DIM))
FROZEN = OWN._replace(logits=np.where(np.eye(D), BETA, LOGITS))
CODES = Encoded(0.5 * RNG.normal(size=(3, D)), OWN.value)
PLACED = Encoded(0.5 * RNG.normal(size=(DIM, D)), OWN.value)
SPURIOUS = RNG.choice([-1.0, 0.0, 1.0], (8, D // C, C))
SPURIOUS[:, 0] = 1.0
NUMBERS = Tied(np.array(0.3), np.array(0.5), np.array(-0.2))
PATCHES = (RNG.normal(size=(9, 4, 3)), SIGNS[:9])
SMALL = Weights(0.4 * RNG.normal(size=(4, 4)), 0.3 * RNG.normal(size=3))
ALL = Wide(*(RNG.normal(size=shape) for shape in ((4, 4), (3, 3), (3, 4), (4,), (4, 4))))
TOLD = (SIGNS[:9], RNG.normal(size=(9, D)))
LAYERS = tuple(0.3 * RNG.normal(size=shape) for shape in ((D, 128), (128,), (128,)))
SEEN_ONCE = {"descent.log_at": (0,)}

CASES = [
    Case("images", IMAGES, 0, MINE, None, lambda: images(0, MINE)),
    Case("weights", IMAGES, 0, None, OWN, lambda: images(0, None, OWN)),
    Case("encodings", ENCODED, 1, MINE, CODES, lambda: encoded(MINE, CODES)),
    Case("self-attention", put_all(LOOKING, SEEN_ONCE), 0, MINE, PLACED, lambda: looking(MINE, PLACED)),
    Case("coupled-images", COUPLED, 0, MINE, None, lambda: coupled(0, MINE)),
    Case("coupled-weights", COUPLED, 0, None, FROZEN, lambda: coupled(0, None, FROZEN)),
    Case("draws", IDEAL, 0, moments(SPURIOUS), None, lambda: ideal(0, SPURIOUS)),
    Case("numbers", IDEAL, 0, moments(SPURIOUS), NUMBERS, lambda: ideal(0, SPURIOUS, NUMBERS)),
    Case("gaussian-patches", GAUSSIAN, 0, PATCHES, None, lambda: gaussian(0, PATCHES)),
    Case("gaussian-weights", GAUSSIAN, 0, None, SMALL, lambda: gaussian(0, None, SMALL)),
    Case("wide", put_all(WIDE, SEEN_ONCE), 0, PATCHES, ALL, lambda: wide(PATCHES, ALL)),
    Case("coefficients", PERCEPTRON, 0, TOLD, None, lambda: perceptron(0, TOLD)),
    Case("layers", PERCEPTRON, 0, None, LAYERS, lambda: perceptron(0, None, LAYERS)),
]

REAL = put_all(RealGrids(), {"pictures": "made"})

REFUSED = [
    Refused(FRESH, MINE, None, "draws fresh samples at every step and takes no data"),
    Refused(IMAGES, (MINE[0], np.where(SIGNS > 0, 1.0, 0.0)), None, "data[1] (labels) takes +1 or -1, not 0"),
    Refused(IMAGES, (MINE[0][:, :, :2], SIGNS), None, "data[0] takes an array of shape (any number, 6, 5)"),
    Refused(IMAGES, (MINE[0][:20], SIGNS), None, "20 in data[0], 33 in data[1]"),
    Refused(
        IMAGES,
        None,
        CODES,
        "weights takes Weights(logits: float64 (6, 6), value: float64 (5,)), not Encoded(",
    ),
    Refused(ENCODED, None, OWN, "not Weights("),
    Refused(COUPLED, None, OWN, "weights.logits takes 1.5 on its diagonal"),
    Refused(
        IDEAL,
        Moments(np.zeros((13, 7)), np.zeros((13, 7))),
        None,
        "data.signal takes an array of shape (13, 8)",
    ),
    Refused(
        IDEAL, None, NUMBERS._replace(alignment=np.array(-1.0)), "weights.alignment takes numbers from 0"
    ),
    Refused(
        GAUSSIAN,
        (PATCHES[0][:5], SIGNS[:5]),
        None,
        "data[0] takes an array of shape (9, 4, 3), not (5, 4, 3)",
    ),
    Refused(GAUSSIAN, None, ALL, "weights takes Weights("),
    Refused(PERCEPTRON, (TOLD[0] * 2, TOLD[1]), None, "data[0] (labels) takes +1 or -1"),
    Refused(PERCEPTRON, None, LAYERS[:2], "weights takes (float64 (6, 128), float64 (128,), float64 (128,))"),
    Refused(REAL, np.zeros(3), None, "the pictures come from a data set"),
    Refused(REAL, None, np.zeros(3), "weights takes"),
]
