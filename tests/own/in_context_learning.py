"""Own prompts and weights of in-context learning: SGD on the hinge loss by hand, and a forward pass of the deep model."""

from functools import partial

import jax
import numpy as np

from lemmata.descent import Descent
from lemmata.parts.votes import Weights
from lemmata.studies.in_context_learning.data import Contexts, OwnPrompts, Prompt
from lemmata.studies.in_context_learning.network import deep
from lemmata.studies.in_context_learning.trials import Layer, Stack, Testing
from lemmata.trial import put, put_all
from tests.own import Case, Refused, begun

M1, M2, FEATURES, LABELS, ROOM = 3, 2, 6, 2, 5
REDUCED, DIM, NEURONS, BATCH, STEPS = M1 + M2 + 1, FEATURES + LABELS, 6, 4, 5
NORM, RATE = 1.5, 2.0

LAYER = Layer(
    data=Contexts(
        relevant=M1, irrelevant=M2, feature_dim=FEATURES, label_dim=LABELS, room=ROOM, examples=ROOM,
        pattern_norm=NORM, noise_bound=0.0,
    ),
    test=Testing(
        irrelevant=M2, fractions=(1.0,), lengths=(4,), kinds=(), selection="exact", prompts=8, noise_bound=0.0
    ),
    descent=Descent(
        loss="hinge", learning_rate=RATE, batches="fresh", batch=BATCH, stop="cap", steps=STEPS,
        log_at=tuple(range(STEPS + 1)),
    ),
    neurons=NEURONS,
    watched=8,
    detailed=True,
    precision="float64",
)  # fmt: skip
TOKENS = put(LAYER, "simulator", "tokens")
STACK = Stack(
    data=LAYER.data,
    test=LAYER.test,
    descent=put_all(LAYER.descent, {"method": "adam", "learning_rate": 1e-30}),
    width=8,
    layers=2,
    watched=8,
    precision="float64",
)
TASKS = np.array([[[0], [1]], [[2], [0]]])
UNSEEN = [(0, 2), (1, 0), (1, 2), (2, 1)]


def prompts(count: int = 7) -> Prompt:
    """Prompts of the tasks in turn; the number is no multiple of the batch, so that batches go around."""
    rng = np.random.default_rng(1)
    task, side = TASKS[np.arange(count) % 2, :, 0], np.arange(count) // 2 % 2
    shown = np.ones((count, ROOM), bool)
    shown[:, -1] = np.arange(count) % 3 > 0
    return Prompt(
        rng.integers(0, M1, (count, ROOM)),
        rng.integers(0, M2, (count, ROOM)),
        rng.uniform(-1, 1, (count, ROOM)),
        rng.choice([-1.0, 1.0], (count, ROOM)),
        shown,
        task[np.arange(count), side],
        rng.integers(0, M2, count),
        rng.uniform(-1, 1, count),
        1.0 - 2 * side,
    )


def own(simulator: str) -> OwnPrompts:
    made = prompts()
    vectors = np.linalg.qr(np.random.default_rng(2).normal(size=(DIM, REDUCED)))[0].T
    task = TASKS[np.arange(len(made.target)) % 2]
    return OwnPrompts(made, task, vectors if simulator == "tokens" else None)


def weights(inputs: int) -> Weights:
    rng = np.random.default_rng(3)
    shapes = (1, inputs, inputs), (1, inputs, inputs), (1, DIM, inputs), (DIM, NEURONS)
    return Weights(*(0.4 * rng.normal(size=shape) for shape in shapes))


def vectors_of(frame, one: Prompt, at: int):
    """The shown context columns and the query column of a prompt, `frame` having a row for every pattern and the label."""
    there = np.flatnonzero(one.shown[at])
    x = NORM * (frame[one.relevant[at]] + one.strength[at][:, None] * frame[M1 + one.irrelevant[at]])
    columns = (x + one.label[at][:, None] * frame[-1])[there]
    asked = NORM * (frame[one.query[at]] + one.query_strength[at] * frame[M1 + one.query_irrelevant[at]])
    return columns, asked


def slope(w, votes, columns, asked, target):
    """Hinge loss of one prompt and its gradient in the four matrices, and the attention."""
    query, key, value, hidden = w
    logits = columns @ key.T @ query @ asked
    share = np.exp(logits - logits.max())
    share /= share.sum()
    mixed = share @ columns
    inside = value @ mixed @ hidden
    output = np.maximum(inside, 0) @ votes
    loss = max(0.0, 1 - target * output)
    gates = (-target if loss > 0 else 0.0) * votes * (inside > 0)
    pulled = hidden @ gates
    towards = value.T @ pulled
    along = share * (columns @ towards - mixed @ towards)
    gradient = (
        np.outer(key @ (along @ columns), asked),
        np.outer(query @ asked, along @ columns),
        np.outer(pulled, mixed),
        np.outer(value @ mixed, gates),
    )
    return loss, gradient, share, output


def tested() -> Prompt:
    """What the exact test without noise asks of the tasks that are not trained on: two contexts of either side."""
    pairs = [(task[side], task[1 - side], 1.0 - 2 * side) for task in UNSEEN for side in (0, 1)]
    own_side, other, target = (np.array(part) for part in zip(*pairs, strict=True))
    nothing = np.zeros((8, 4))
    return Prompt(
        np.stack([own_side, own_side, other, other], 1), nothing.astype(int), nothing,
        np.stack([target, target, -target, -target], 1), np.ones((8, 4), bool), own_side, np.zeros(8, int),
        np.zeros(8), target,
    )  # fmt: skip


def by_hand(trial: Layer, data: OwnPrompts | None, given: Weights | None):
    """The record of a training on own prompts."""
    assert data is not None
    state = begun(trial, 0)
    frame = np.eye(REDUCED) if data.vectors is None else data.vectors
    params = state.params if given is None else given
    w = [np.array(part[0] if part.ndim == 3 else part) for part in params]
    first, votes, count = [part.copy() for part in w], state.world.votes, len(data.task)
    losses, label_size = [], []
    off = np.eye(frame.shape[1]) - frame.T @ frame
    carry = state.world.carry
    beyond = trial.diagonal * (np.eye(DIM) - carry @ carry.T) if given is None else np.zeros((DIM, DIM))
    for step in range(STEPS + 1):
        batch = [(step * BATCH + place) % count for place in range(BATCH)]
        found = [
            slope(w, votes, *vectors_of(frame, data.prompts, at), data.prompts.target[at]) for at in batch
        ]
        losses.append(np.mean([one[0] for one in found]))
        rows = w[3].T @ w[2]
        unseen = np.linalg.norm(rows @ off, axis=1), np.linalg.norm(w[3].T @ beyond, axis=1)
        label_size.append(np.hypot(rows @ frame[-1], np.hypot(*unseen)))
        if step < STEPS:
            for part, *gradients in zip(w, *(one[1] for one in found), strict=True):
                part -= RATE * np.mean(gradients, axis=0)
    asks = tested()
    test = [slope(w, votes, *vectors_of(frame, asks, at), asks.target[at]) for at in range(8)]
    moved = frame @ (w[1] - first[1]) if data.vectors is not None else w[1] - first[1]
    asking = frame @ w[0] if data.vectors is not None else w[0]
    return {
        "train_loss_curve": losses,
        "hinge": [[np.mean([one[0] for one in test])]],
        "error": [[np.mean([asks.target[at] * one[3] <= 0 for at, one in enumerate(test)])]],
        "mass": [[np.mean([one[2][:2].sum() for one in test])]],
        "raw_sizes": np.sort(np.linalg.norm(w[3], axis=0)),
        "label_size_curve": label_size,
        "key_drift": np.abs(moved @ frame[:M1].sum(0)).max(),
        "query_label": np.abs(asking @ frame[-1]).max(),
    }


def normed(x, scale, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift


def deep_output(w, columns, asked):
    """The GPT-2 style model on one prompt."""
    x = np.vstack([columns, asked]) @ w.read_in
    count, width = x.shape
    for at in range(w.blocks.up.shape[0]):
        b = jax.tree.map(lambda part, at=at: part[at], w.blocks)
        parts = normed(x, b.scale1, b.shift1) @ b.attend + b.attend_bias
        heads = []
        for head in range(2):
            own_part = slice(head * width // 2, (head + 1) * width // 2)
            query, key, value = (one[:, own_part] for one in np.split(parts, 3, axis=1))
            logits = np.where(np.tri(count, dtype=bool), query @ key.T / (width // 2) ** 0.5, -np.inf)
            share = np.exp(logits - logits.max(1, keepdims=True))
            heads.append(share / share.sum(1, keepdims=True) @ value)
        x = x + np.concatenate(heads, 1) @ b.project + b.project_bias
        inner = normed(x, b.scale2, b.shift2) @ b.up + b.up_bias
        gelu = 0.5 * inner * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
        x = x + gelu @ b.down + b.down_bias
    return normed(x[-1], w.scale, w.shift) @ w.read_out


def deep_weights():
    rng = np.random.default_rng(4)
    shapes = jax.eval_shape(lambda: deep.start(jax.random.key(0), REDUCED, 8, 2, 0, float))
    return jax.tree.map(lambda part: 0.4 * rng.normal(size=part.shape), shapes)


def deep_by_hand(data: OwnPrompts, w):
    """The record of the deep model, whose weights stay where they are at so small a step size."""
    frame = np.eye(REDUCED)

    def losses(asked: Prompt):
        outputs = [deep_output(w, *vectors_of(frame, asked, at)) for at in range(len(asked.target))]
        return np.maximum(0, 1 - asked.target * outputs)

    train, count = losses(data.prompts), len(data.task)
    walked = [[(step * BATCH + place) % count for place in range(BATCH)] for step in range(STEPS + 1)]
    return {
        "train_loss_curve": [np.mean(train[batch]) for batch in walked],
        "hinge": [[np.mean(losses(tested()))]],
    }


CASES = [
    Case("prompts", LAYER, 0, own("patterns"), None, partial(by_hand, LAYER, own("patterns"), None)),
    Case(
        "prompts-weights", LAYER, 0, own("patterns"), weights(REDUCED),
        partial(by_hand, LAYER, own("patterns"), weights(REDUCED)),
    ),
    Case(
        "tokens", TOKENS, 0, own("tokens"), weights(DIM), partial(by_hand, TOKENS, own("tokens"), weights(DIM))
    ),
    Case(
        "deep", STACK, 0, own("patterns"), deep_weights(),
        lambda: deep_by_hand(own("patterns"), deep_weights()),
    ),
]  # fmt: skip


def spoiled(**changed) -> OwnPrompts:
    return own("patterns")._replace(prompts=prompts()._replace(**changed))


REFUSED = [
    Refused(LAYER, np.zeros((4, REDUCED)), None, "data takes OwnPrompts("),
    Refused(LAYER, own("tokens"), None, "data.vectors takes None, not float64 (6, 8)"),
    Refused(TOKENS, own("patterns"), None, "data.vectors takes float64 (6, 8), not None"),
    Refused(TOKENS, own("tokens")._replace(vectors=np.ones((REDUCED, DIM))), None, "orthonormal rows"),
    Refused(LAYER, own("patterns")._replace(task=TASKS), None, "one number of samples"),
    Refused(LAYER, spoiled(label=np.zeros((7, ROOM))), None, "data.prompts.label takes +1 or -1"),
    Refused(LAYER, spoiled(target=np.zeros(7)), None, "data.prompts.target takes +1 or -1"),
    Refused(LAYER, spoiled(relevant=np.full((7, ROOM), M1)), None, "numbers from 0 to 2"),
    Refused(LAYER, spoiled(shown=np.zeros((7, ROOM), bool)), None, "hides all contexts"),
    Refused(LAYER, spoiled(strength=np.zeros((7, ROOM + 1))), None, f"(any number, {ROOM})"),
    Refused(LAYER, own("patterns")._replace(task=np.zeros((7, 2, 1), int)), None, "a pattern twice"),
    Refused(LAYER, None, weights(DIM), f"takes an array of shape (1, {REDUCED}, {REDUCED})"),
    Refused(
        LAYER, None, weights(REDUCED)._replace(value=np.ones((1, 3, REDUCED))), f"shape (1, {DIM}, {REDUCED})"
    ),
    Refused(put(LAYER, "followed", True), None, weights(REDUCED), "followed=false"),
    Refused(STACK, spoiled(target=np.zeros(7)), None, "data.prompts.target takes +1 or -1"),
    Refused(STACK, None, weights(REDUCED), "weights takes Deep("),
]
