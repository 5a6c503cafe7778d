"""Samples and heads of one's own for multi-head attention, and for the trainings that theorems allow."""

import numpy as np

from lemmata.descent import Descent
from lemmata.studies.multihead.data import Samples
from lemmata.studies.multihead.network import Heads, Network
from lemmata.studies.multihead.trials import SecondPhase, Training
from lemmata.studies.multihead.trials.guaranteed import Guaranteed
from lemmata.studies.multihead.trials.real import RealSentences
from lemmata.trial import put, put_all
from tests.own import Case, Refused, begun

STEPS, RATE, HEADS = 3, 0.5, 4.0
TRAINING = Training(
    network=Network(heads=HEADS),
    descent=Descent(learning_rate=RATE, stop="cap", steps=STEPS, log_at=(0, STEPS)),
)
ALLOWED = put_all(Guaranteed(), {"data.samples": 4, "data.test_samples": 5, "cap": 3})
SECOND = SecondPhase(distance=0.02, first_samples=200)


def softmax(scores):
    raw = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raw / raw.sum(axis=-1, keepdims=True)


def head(decoder, attention, tokens):
    """The output of one head, what its decoder sees, and its attention."""
    maps = softmax(tokens @ attention @ tokens.transpose(0, 2, 1))
    seen = maps @ tokens
    return np.sum(decoder * seen, axis=(1, 2)), seen, maps


def margins(groups, members, samples):
    """Margins of all heads, those of a group being alike, over the root of their number."""
    outputs = sum(m * head(u, w, samples.tokens)[0] for m, u, w in zip(members, *groups, strict=True))
    return samples.labels * outputs / np.sqrt(sum(members))


def loss(margin):
    return np.logaddexp(0, -margin)


def slopes(groups, members, samples, kept):
    """The gradient of the loss, summed over kept samples and over all their number, in one head of each group."""
    pull = -samples.labels / (1 + np.exp(margins(groups, members, samples))) * kept / len(kept)
    pull = pull / np.sqrt(sum(members))
    found = []
    for decoder, attention in zip(*groups, strict=True):
        _, seen, maps = head(decoder, attention, samples.tokens)
        values = np.einsum("td,nsd->nts", decoder, samples.tokens)
        moved = maps * (values - np.sum(maps * values, axis=2, keepdims=True))
        to_attention = np.einsum("n,nta,nts,nsb->ab", pull, samples.tokens, moved, samples.tokens)
        found.append((np.einsum("n,ntd->td", pull, seen), to_attention))
    return [np.array(part) for part in zip(*found, strict=True)]


def stepped(groups, members, samples, kept, rate):
    return [
        part - rate * there
        for part, there in zip(groups, slopes(groups, members, samples, kept), strict=True)
    ]


def whole_norm(groups, members):
    return np.sqrt(sum(m * (np.sum(u**2) + np.sum(w**2)) for m, u, w in zip(members, *groups, strict=True)))


def trained(seed, data=None, weights=None):
    """What a training of four equal heads records."""
    state = begun(TRAINING, seed)
    samples = state.data if data is None else data
    now = start = [np.array(part) for part in (state.fit.params if weights is None else weights)]
    members, kept, losses, away = [HEADS], np.ones(len(samples.labels)), [], []
    for step in range(STEPS + 1):
        losses.append(np.mean(loss(margins(now, members, samples))))
        away.append(whole_norm([a - b for a, b in zip(now, start, strict=True)], members))
        if step < STEPS:
            now = stepped(now, members, samples, kept, RATE)
    maps = [head(part[0][0], part[1][0], samples.tokens)[2] for part in (start, now)]
    return {
        "train_loss_curve": [losses[0], losses[-1]],
        "loss_sum": sum(losses[1:]),
        "farthest": max(away),
        "margin": np.min(margins(now, members, samples)) / np.sqrt(HEADS * np.sum(now[0] ** 2)),
        "attention_moved": np.linalg.norm(now[1] - start[1]),
        "attention_change": np.abs(maps[1] - maps[0]).max(),
        "relevant_attention": np.mean(np.sum(maps[1] * samples.relevant[:, None], axis=2)),
        "token_norm": np.linalg.norm(samples.tokens, axis=2).max(),
    }


def guaranteed(data):
    """What the allowed training and its leave-one-out twins record."""
    rate, heads, count = float(ALLOWED.step_size), ALLOWED.heads, len(data.labels)
    shape = (ALLOWED.data.tokens, ALLOWED.data.dim)
    everyone = [np.ones(count), *(1 - np.eye(count))]
    models = [[np.zeros((1, *shape)), np.zeros((1, shape[1], shape[1]))] for _ in everyone]
    for _ in range(ALLOWED.steps):
        models = [stepped(one, [heads], data, kept, rate) for one, kept in zip(models, everyone, strict=True)]
    first, *twins = models
    goal = [0 * first[0], 0 * first[1]]
    goal[0][:, :, 0] = ALLOWED.distance / np.sqrt(heads * shape[0])
    last = np.mean(loss(margins(first, [heads], data)))
    apart = [whole_norm([a - b for a, b in zip(twin, first, strict=True)], [heads]) for twin in twins]
    out = [loss(margins(twin, [heads], data))[i] for i, twin in enumerate(twins)]
    return {
        "last_loss": last,
        "target_loss": np.mean(loss(margins(goal, [heads], data))),
        "away": apart,
        "stability": np.mean(apart),
        "left_out_gap": np.mean(out) - last,
        "farthest": whole_norm(first, [heads]),
    }


def second(seed, data):
    """What the second phase records: it begins where its own first phase ended, and looks for its own horizon."""
    state, heads, rate = begun(SECOND, seed), SECOND.heads, float(SECOND.step_size)
    members = [float(m) for m in state.world.members]
    now = start = [np.array(part) for part in state.fit.params]
    way = np.zeros_like(now[0])
    way[:, :, :2] = np.array([1.0, -1.0]) / np.sqrt(2 * SECOND.data.tokens)
    goal = [start[0] + SECOND.distance / np.sqrt(heads) * way, start[1]]
    target = np.mean(loss(margins(goal, members, data)))
    horizon, kept = 0, np.ones(len(data.labels))
    while (horizon + 1) * rate * target <= SECOND.distance**2 and horizon < SECOND.steps:
        now, horizon = stepped(now, members, data, kept, rate), horizon + 1
    return {
        "horizon": horizon,
        "start_loss": np.mean(loss(margins(start, members, data))),
        "target_loss": target,
        "last_loss": np.mean(loss(margins(now, members, data))),
        "attention_moved": max(np.linalg.norm(part) for part in now[1] - start[1]),
    }


def mixed(count: int, seed: int) -> Samples:
    """Samples whose relevant tokens differ in number, which the mixture's never do."""
    rng = np.random.default_rng(seed)
    labels, relevant = rng.choice([-1.0, 1.0], count), rng.random((count, 10)) < 0.4
    signal = labels[:, None, None] * np.array([1.0, -1.0, 0.0, 0.0])
    return Samples(np.where(relevant[:, :, None], signal, rng.normal(size=(count, 10, 4))), labels, relevant)


def aligned(count: int, seed: int, tilt: float = 0.2) -> Samples:
    """Tokens of the largest norm, all within a narrow cone around the label's direction."""
    rng, data = np.random.default_rng(seed), ALLOWED.data
    labels = rng.choice([-1.0, 1.0], count)
    tokens = tilt * rng.uniform(-1, 1, size=(count, data.tokens, data.dim)) / np.sqrt(data.dim)
    tokens[:, :, 0] += labels[:, None]
    tokens *= data.radius / np.linalg.norm(tokens, axis=2, keepdims=True)
    return Samples(tokens, labels, np.ones(tokens.shape[:2], bool))


def pure(count: int, seed: int) -> Samples:
    """Three tokens of the label's pattern and one of the third, without noise."""
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1.0, 1.0], count)
    relevant = np.arange(4) != rng.integers(4, size=(count, 1))
    own = np.where(labels[:, None] > 0, np.eye(3)[0], np.eye(3)[1])
    return Samples(np.where(relevant[:, :, None], own[:, None], np.eye(3)[2]), labels, relevant)


MINE, FEW, CONE, PURE = mixed(40, 1), mixed(6, 2), aligned(4, 3), pure(10, 4)
RNG = np.random.default_rng(5)
OWN = Heads(0.3 * RNG.normal(size=(1, 10, 4)), 0.4 * RNG.normal(size=(1, 4, 4)))
TWO = Heads(np.zeros((2, 4, 3)), np.zeros((2, 3, 3)))
ZERO = Heads(np.zeros((5, 1, 10, 4)), np.zeros((5, 1, 4, 4)))

CASES = [
    Case("samples", TRAINING, 0, MINE, None, lambda: trained(0, MINE)),
    Case("heads", TRAINING, 0, None, OWN, lambda: trained(0, None, OWN)),
    Case("samples-and-heads", TRAINING, 1, FEW, OWN, lambda: trained(1, FEW, OWN)),
    Case("allowed", ALLOWED, 0, CONE, None, lambda: guaranteed(CONE)),
    Case("second-phase", SECOND, 0, PURE, None, lambda: second(0, PURE)),
]

REAL = put_all(RealSentences(), {"text": "made", "start_from_file": False, "heads": 2, "width": 8})

REFUSED = [
    Refused(TRAINING, tuple(MINE), None, "data takes Samples(tokens: float64 (100, 10, 4)"),
    Refused(TRAINING, MINE._replace(tokens=MINE.tokens[:, :9]), None, "shape (any number, 10, 4)"),
    Refused(
        TRAINING, MINE._replace(labels=MINE.labels[:5]), None, "one number of samples, at least 1, not 40"
    ),
    Refused(TRAINING, MINE._replace(labels=MINE.labels + 2), None, "data.labels takes +1 or -1"),
    Refused(TRAINING, MINE._replace(relevant=1.0 * MINE.relevant), None, "not float64"),
    Refused(TRAINING, None, Heads(OWN.decoder, OWN.attention[:, :3, :3]), "weights.attention takes an array"),
    Refused(
        put(TRAINING, "network.decoder", "pooling"),
        None,
        OWN,
        "weights.decoder takes an array of shape (1, 4)",
    ),
    Refused(ALLOWED, aligned(5, 0), None, "shape (4, "),
    Refused(ALLOWED, CONE._replace(tokens=2 * CONE.tokens), None, "tokens of norm at most"),
    Refused(ALLOWED, aligned(4, 3, tilt=20.0), None, "a margin of at least"),
    Refused(ALLOWED, None, ZERO, "multihead/training takes them"),
    Refused(SECOND, PURE._replace(labels=-PURE.labels), None, "a margin of at least"),
    Refused(SECOND, None, TWO, "takes no weights of one's own"),
    Refused(REAL, np.zeros(3), None, "the sentences come from a data set"),
    Refused(REAL, None, np.zeros(3), "weights takes"),
]
