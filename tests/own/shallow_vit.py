"""Own samples and weights of the shallow vision transformer: gradient descent on the hinge loss by hand."""

import dataclasses
from functools import partial

import numpy as np

from lemmata.parts.votes import Weights
from lemmata.studies.shallow_vit.data import OwnTokens, Sample, TokenData
from lemmata.studies.shallow_vit.network import Network
from lemmata.studies.shallow_vit.trials import SGD, ViTTraining
from lemmata.trial import put, put_all
from tests.own import Case, Refused, begun

SAMPLES, TESTS, TOKENS, DIM, PATTERNS, NEURONS, STEPS, RATE = 4, 5, 6, 5, 3, 7, 3, 0.7

TRIAL = ViTTraining(
    data=TokenData(
        samples=SAMPLES, tokens=TOKENS, dim=DIM, patterns=PATTERNS, relevant_fraction=0.5, confusion_fraction=0.2
    ),
    network=Network(neurons=NEURONS, initial="shrink"),  # drawn weights that do not depend on the patterns
    descent=dataclasses.replace(
        SGD, learning_rate=RATE, batch=SAMPLES, stop="cap", steps=STEPS, log_at=tuple(range(STEPS + 1))
    ),
    precision="float64",
    probes="attention",
    test_samples=TESTS,
)  # fmt: skip


def samples(count: int, seed: int) -> Sample:
    """Tokens without patterns, some of them removed."""
    rng = np.random.default_rng(seed)
    shape = count, TOKENS
    kept = np.ones(shape)
    kept[::2, 0] = 0
    role = rng.integers(0, 3, shape)
    role[:, 1:4] = range(3)  # every role among the kept tokens
    return Sample(
        rng.normal(size=(*shape, DIM)),
        rng.choice([-1.0, 1.0], (count, 1)),
        rng.integers(-1, PATTERNS, shape),
        role == 0,
        role == 1,
        rng.uniform(0, 2, shape),
        rng.random(shape) < 0.5,
        kept,
    )


BASE = np.linalg.qr(np.random.default_rng(2).normal(size=(DIM, PATTERNS)))[0].T
OWN = OwnTokens(samples(SAMPLES, 0), samples(TESTS, 1), BASE[:, None])


def own_weights() -> Weights:
    rng = np.random.default_rng(3)
    shapes = (1, DIM, DIM), (1, DIM, DIM), (1, DIM, DIM), (DIM, NEURONS)
    return Weights(*(0.6 * rng.normal(size=shape) for shape in shapes))


def slope(w, votes, one: Sample, at: int):
    """The margin of a sample, the gradient of its hinge loss, and the attention map."""
    query, key, value, hidden = w
    x, kept, label = one.tokens[at], one.kept[at], one.label[at, 0]
    asked, looked = x @ query.T, x @ key.T
    raised = kept * np.exp(asked @ looked.T)
    share = raised / raised.sum(1, keepdims=True)
    mixed = share @ x
    inside = mixed @ value.T @ hidden
    margin = label * np.sum(kept * np.sum(votes * np.maximum(inside, 0), axis=1)) / kept.sum()
    weight = (-label if margin < 1 else 0.0) * kept / kept.sum()
    gates = weight[:, None] * votes * (inside > 0)
    pulled = gates @ hidden.T
    towards = pulled @ value
    logits = share * (towards @ x.T - np.sum(towards * mixed, axis=1, keepdims=True))
    gradient = logits.T @ asked, logits @ looked, pulled.T @ mixed, (mixed @ value.T).T @ gates
    return margin, (gradient[1].T @ x, gradient[0].T @ x, *gradient[2:]), share


def judged(w, votes, one: Sample):
    margins = np.array([slope(w, votes, one, at)[0] for at in range(len(one.label))])
    return np.mean(np.maximum(0, 1 - margins)), np.mean(margins <= 0), np.mean(margins)


def by_role(w, votes, one: Sample):
    """Attention paid to relevant tokens: by all tokens that are kept, by relevant, by confusion and by other ones."""
    other = ~one.relevant & ~one.confusion
    roles = [part * one.kept for part in (np.ones_like(one.kept), one.relevant, one.confusion, other)]
    paid = np.stack([slope(w, votes, one, at)[2] @ one.relevant[at] for at in range(len(one.label))])
    return np.array([np.sum(part * paid) / np.sum(part) for part in roles])


def by_hand(data: OwnTokens | None, weights: Weights | None):
    state = begun(TRIAL, 0)
    votes, train = state.world.votes[..., 0], state.data if data is None else data.train
    base = (state.world if data is None else data).patterns[:, 0]
    w = [
        np.array(part[0] if part.ndim == 3 else part)
        for part in (state.params if weights is None else weights)
    ]
    carried = w[2] @ base.T
    left, _, right = np.linalg.svd(carried, full_matrices=False)
    found = {
        "initial_value_error": np.linalg.norm(carried - left @ right, axis=0).max(),
        "spectral_norm": max(np.linalg.norm(part, 2) for part in w[:3]),
        "token_noise": train.noise.max(),
    }
    losses, logits, attention = [], [], []
    for step in range(STEPS + 1):
        losses.append(judged(w, votes, train)[0])
        attention.append(by_role(w, votes, train))
        logits.append(np.sum((w[1] @ base.T) * (w[0] @ base.T), axis=0))
        if step < STEPS:
            gradients = zip(*(slope(w, votes, train, at)[1] for at in range(SAMPLES)), strict=True)
            w = [part - RATE * np.mean(one, axis=0) for part, one in zip(w, gradients, strict=True)]
    found |= {
        "train_loss_curve": losses, "attention_by_role_curve": np.array(attention)[:, 1:], "pattern_logit_curve": logits,
        "train_loss": losses[-1], "train_error": judged(w, votes, train)[1], "attention": attention[-1][0],
    }  # fmt: skip
    if data is not None:
        found |= dict(zip(("test_loss", "test_error"), judged(w, votes, data.test), strict=False))
    return found


CASES = [
    Case("samples", TRIAL, 0, OWN, None, partial(by_hand, OWN, None)),
    Case("weights", TRIAL, 0, None, own_weights(), partial(by_hand, None, own_weights())),
    Case("both", TRIAL, 0, OWN, own_weights(), partial(by_hand, OWN, own_weights())),
]


def spoiled(**changed) -> OwnTokens:
    return OWN._replace(train=OWN.train._replace(**changed))


QUIET = put_all(
    TRIAL,
    {"data.noise_std": 0.0, "network.output_weights": "shared", "simulator": "patterns", "probes": "none"},
)
REFUSED = [
    Refused(TRIAL, OWN.train, None, "data takes OwnTokens("),
    Refused(TRIAL, OWN._replace(train=OWN.test), None, "takes an array of shape (4, 6, 5), not (5, 6, 5)"),
    Refused(TRIAL, spoiled(label=np.zeros((SAMPLES, 1))), None, "data.train.label takes +1 or -1"),
    Refused(TRIAL, spoiled(kept=np.zeros((SAMPLES, TOKENS))), None, "more than 0 for some token"),
    Refused(TRIAL, spoiled(pattern=np.full((SAMPLES, TOKENS), 3)), None, "numbers from -1 to 2"),
    Refused(TRIAL, spoiled(noise=np.full((SAMPLES, TOKENS), -1.0)), None, "not negative"),
    Refused(TRIAL, OWN._replace(patterns=2 * OWN.patterns), None, "takes unit vectors"),
    Refused(
        TRIAL, None, own_weights()._replace(value=np.ones((1, 2, DIM))), "takes an array of shape (1, 5, 5)"
    ),
    Refused(QUIET, OWN, None, "use simulator=tokens"),
    Refused(put(TRIAL, "descent.batches", "fresh"), OWN, None, "use another kind of batches"),
    Refused(put(TRIAL, "probes", "neurons"), None, own_weights(), "use probes=attention or probes=none"),
]
