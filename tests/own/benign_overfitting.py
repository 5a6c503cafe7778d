"""Features and labels, and weights, of one's own for the transformer and its convolutional rival."""

import numpy as np

from lemmata.descent import Descent
from lemmata.studies.benign_overfitting.data import Data, Features
from lemmata.studies.benign_overfitting.network import Filters, Network, Weights
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.studies.benign_overfitting.trials.convolution import Convolution
from lemmata.studies.benign_overfitting.trials.real import RealDigits
from lemmata.trial import put
from tests.own import Case, Refused, begun

STEPS, RATE = 3, 0.5
DATA = Data(signal_norm=3.0, weak_noise=0.4, noise_ratio=2.0, samples=4, tokens=3, dim=7)
DESCENT = Descent(learning_rate=RATE, target_loss=0.0, steps=STEPS, log_at=(0, STEPS))
NETWORK = Network(init_divisor=1.0, readout_divisor=1.0, key_dim=5, value_dim=6)
TRIAL = BenignOverfitting(data=DATA, network=NETWORK, descent=DESCENT, test_points=5, precision="float64")
DIRECT = put(TRIAL, "simulator", "direct")
WISHART = BenignOverfitting(
    data=put(DATA, "dim", 40),
    network=Network(init="gaussian", key_dim=60),
    sampling="wishart",
    precision="float64",
)
RIVAL = Convolution(
    data=DATA, network=Filters(std=0.3, filters=3), descent=DESCENT, test_points=5, precision="float64"
)


def features(seed: int) -> Features:
    """Two signals that are neither orthogonal nor of one length, and noise; labels that are not balanced."""
    rng = np.random.default_rng(seed)
    return Features(rng.normal(size=(2 + 4 * 2, 7)), np.array([1.0, -1.0, -1.0, -1.0]))


def weights(seed: int) -> Weights:
    rng = np.random.default_rng(seed)
    return Weights(*(0.4 * rng.normal(size=shape) for shape in ((7, 5), (7, 5), (7, 6), (6,))))


def tokens_of(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Every sample's signal, then its own noise tokens."""
    noise = rows[2:].reshape(len(labels), -1, rows.shape[1])
    return np.concatenate([np.where(labels[:, None] > 0, rows[0], rows[1])[:, None], noise], axis=1)


def attended(trained, readout, tokens):
    """Outputs, attention and values of all samples."""
    query, key, value = trained
    raw = np.exp(tokens @ query @ (tokens @ key).transpose(0, 2, 1))
    attention = raw / raw.sum(axis=2, keepdims=True)
    values = tokens @ value @ readout
    return np.einsum("nij,nj->n", attention, values) / tokens.shape[1], attention, values


def mean_loss(margins):
    return np.mean(np.log1p(np.exp(-margins)))


def slopes(trained, readout, tokens, labels):
    """The gradient of the mean logistic loss in W_Q, W_K and W_V."""
    query, key, _ = trained
    outputs, attention, values = attended(trained, readout, tokens)
    pull = -labels / (1 + np.exp(labels * outputs)) / tokens.shape[1] / len(labels)
    centred = attention * (values[:, None] - np.einsum("nij,nj->ni", attention, values)[:, :, None])
    scores = pull[:, None, None] * centred
    to_query = np.einsum("nia,nij,njb->ab", tokens, scores, tokens @ key)
    to_key = np.einsum("nja,nij,nib->ab", tokens, scores, tokens @ query)
    weight = np.einsum("n,nij,nja->a", pull, attention, tokens)
    return to_query, to_key, np.outer(weight, readout)


def trained(seed, data=None, own=None):
    """What a training records, its test points having the signals that it is trained with."""
    start = begun(DIRECT, seed).simulation.start
    train, test = (start.train if data is None else data), start.test
    begin = start.weights if own is None else own
    tokens, now, readout = tokens_of(*train), begin[:3], begin[3]
    losses = []
    for step in range(STEPS + 1):
        outputs = attended(now, readout, tokens)[0]
        losses.append(mean_loss(train.labels * outputs))
        if step < STEPS:
            slope = slopes(now, readout, tokens, train.labels)
            now = [part - RATE * there for part, there in zip(now, slope, strict=True)]
    fresh = tokens_of(np.concatenate([train.rows[:2], test.rows[2:]]), test.labels)
    margins = test.labels * attended(now, readout, fresh)[0]
    signed = train.labels[:, None] * (tokens @ now[2] @ readout)
    return {
        "train_loss_curve": [losses[0], losses[-1]],
        "test_loss": mean_loss(margins),
        "test_error": np.mean(margins <= 0),
        "readout_square": readout @ readout,
        "signal_value": signed[:, 0].mean(),
        "strong_value": signed[:, 1].mean(),
    }


def at_the_start(data, own):
    """The logits alone are moved by the leading order: what it shows before the first step is exact."""
    outputs = attended(own[:3], own[3], tokens_of(*data))[0]
    return {"train_loss_curve": [mean_loss(data.labels * outputs)] * 2, "readout_square": own[3] @ own[3]}


def rival(seed, data=None, filters=None):
    """What the convolution records."""
    state = begun(RIVAL, seed)
    tokens, labels = state.data if data is None else data
    now = np.array(state.fit.params if filters is None else filters)
    side, losses = np.array([1.0, -1.0]), []

    def outputs(tokens):
        active = np.maximum(np.einsum("srd,nid->nsri", now, tokens), 0)
        return (active**3).sum(axis=3).mean(axis=2) @ side, active

    for step in range(STEPS + 1):
        found, active = outputs(tokens)
        losses.append(mean_loss(labels * found))
        if step < STEPS:
            pull = -labels / (1 + np.exp(labels * found)) / len(labels)
            now = now - RATE * np.einsum(
                "n,s,nsri,nid->srd", pull, side, active**2, tokens
            )  # 3 over 3 filters
    fresh, fresh_labels = state.world
    return {
        "train_loss_curve": [losses[0], losses[-1]],
        "test_loss": mean_loss(fresh_labels * outputs(fresh)[0]),
    }


MINE, OTHER, OWN = features(1), features(2), weights(3)
IMAGES = (np.random.default_rng(4).normal(size=(4, 3, 7)), np.array([1.0, 1.0, -1.0, -1.0]))
FILTERS = 0.5 * np.random.default_rng(5).normal(size=(2, 3, 7))
STILL = put(put(TRIAL, "simulator", "leading-order"), "descent.learning_rate", 1e-30)

CASES = [
    Case("rows-data", TRIAL, 0, MINE, None, lambda: trained(0, MINE)),
    Case("rows-weights", TRIAL, 0, None, OWN, lambda: trained(0, None, OWN)),
    Case("grams", put(TRIAL, "simulator", "gram"), 1, OTHER, OWN, lambda: trained(1, OTHER, OWN)),
    Case("direct", DIRECT, 2, OTHER, OWN, lambda: trained(2, OTHER, OWN)),
    Case("leading-order", STILL, 0, MINE, OWN, lambda: at_the_start(MINE, OWN)),
    Case("rival-data", RIVAL, 0, IMAGES, None, lambda: rival(0, IMAGES)),
    Case("rival-weights", RIVAL, 0, None, FILTERS, lambda: rival(0, None, FILTERS)),
]

REAL = put(RealDigits(), "data.pictures", "made")

REFUSED = [
    Refused(WISHART, MINE, None, "sampling=explicit (simulator=direct"),
    Refused(WISHART, None, OWN, "sampling=wishart takes no data or weights"),
    Refused(TRIAL, tuple(MINE), None, "data takes Features(rows: float64 (10, 7), labels: float64 (4,))"),
    Refused(TRIAL, MINE._replace(labels=np.array([1.0, 0, 1, 1])), None, "data.labels takes +1 or -1, not 0"),
    Refused(TRIAL, MINE._replace(rows=MINE.rows[:-2]), None, "data.rows takes an array of shape (10, 7)"),
    Refused(TRIAL, MINE._replace(labels=MINE.labels[:2]), None, "data.labels takes an array of shape (4,)"),
    Refused(
        TRIAL,
        None,
        OWN._replace(key=OWN.key[:, :4]),
        "weights.key takes an array of shape (7, 5), not (7, 4)",
    ),
    Refused(DIRECT, None, OWN._replace(query=OWN.query * 1j), "not complex128"),
    Refused(RIVAL, (IMAGES[0], IMAGES[1] / 2), None, "takes +1 or -1, not 0.5"),
    Refused(RIVAL, None, FILTERS[:1], "weights takes an array of shape (2, 3, 7)"),
    Refused(REAL, np.zeros(3), None, "the pictures come from a data set"),
    Refused(REAL, None, np.zeros(3), "weights takes"),
]
