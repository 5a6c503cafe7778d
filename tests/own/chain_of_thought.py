"""Own prompts and weights of chain of thought: gradient descent of W by hand, and a forward pass through layers."""

from functools import partial

import jax
import numpy as np

from lemmata.descent import Descent
from lemmata.studies.chain_of_thought.data import Chains, OwnPrompts, Prompt
from lemmata.studies.chain_of_thought.network import Classes, Layers
from lemmata.studies.chain_of_thought.trials import Deep, Reasoning, Testing
from lemmata.trial import put, put_all
from tests.own import Case, Refused, begun

M, K, DIM, EXAMPLES = 4, 2, 8, 3
COLUMNS, BATCH, STEPS, COUNT = EXAMPLES * K + K - 1, 3, 4, 5
RATE = 3.0

REASONING = Reasoning(
    data=Chains(dim=DIM, patterns=M, steps=K, examples=EXAMPLES),
    test=Testing(patterns=3, trajectory=0.8, lengths=(2,), prompts=4),
    descent=Descent(
        loss="squared", learning_rate=RATE, batches="fresh", batch=BATCH, stop="cap", steps=STEPS,
        log_at=tuple(range(STEPS + 1)),
    ),
    watched=COUNT,
    precision="float64",
)  # fmt: skip
TOKENS = put(REASONING, "simulator", "tokens")
CLASSES = put_all(REASONING, {"simulator": "classes", "descent.learning_rate": 1e-30})
DEEP = Deep(
    data=Chains(dim=DIM, patterns=M, steps=K, examples=EXAMPLES, shuffled=True),
    descent=put_all(
        REASONING.descent, {"method": "adam", "learning_rate": 1e-30, "steps": 2, "log_at": (2,)}
    ),
    layers=2,
    watched=COUNT,
    precision="float64",
)


def prompts() -> Prompt:
    """Prompts without a task: any pattern may follow any other."""
    rng = np.random.default_rng(1)
    count = np.ones((COUNT, COLUMNS), np.float32)
    count[::2, -1] = 0
    return Prompt(
        rng.integers(0, M, (COUNT, COLUMNS)),
        rng.integers(0, M, (COUNT, COLUMNS)),
        rng.integers(0, K, (COUNT, COLUMNS)),
        count,
        rng.integers(0, M, COUNT),
        rng.integers(0, K, COUNT),
        rng.integers(0, M, COUNT),
    )


VECTORS = np.linalg.qr(np.random.default_rng(2).normal(size=(DIM, M + K)))[0].T
OWN = {"patterns": OwnPrompts(prompts()), "tokens": OwnPrompts(prompts(), VECTORS)}


def drawn_weights(*shape: int):
    return np.random.default_rng(3).normal(size=shape)


TABLE, WIDE = drawn_weights(2 * M + K, M + K), drawn_weights(2 * DIM, 2 * DIM)
CLASS = Classes(*(drawn_weights(*shape) for shape in ((2,), (2,), (K,), (K,), (K,), (K, K))))
LAYERS = Layers(*0.3 * drawn_weights(2, 2, 2, 2 * DIM, 2 * DIM))


def unit(index, many):
    return np.eye(many)[index]


def in_basis(one: Prompt, at: int):
    """The columns of a prompt and its query by the rows and columns of the table that they read."""
    top, bottom, step = (unit(part[at], n) for part, n in zip(one[:3], (M, M, K), strict=True))
    asked = np.concatenate([unit(one.query[at], M), unit(one.query_step[at], K)])
    return np.concatenate([top, bottom, step], axis=1), asked


def as_tokens(one: Prompt, at: int):
    """The columns (input + encoding; output) of a prompt and its query column (pattern + encoding; 0)."""
    patterns, encodings = VECTORS[:M], VECTORS[M:]
    upper = patterns[one.top[at]] + encodings[one.step[at]]
    asked = patterns[one.query[at]] + encodings[one.query_step[at]]
    return np.concatenate([upper, patterns[one.bottom[at]]], axis=1), np.append(asked, np.zeros(DIM))


def attention(w, columns, asked, count):
    logits = columns @ w @ asked
    raised = count * np.exp(logits - logits.max())
    return raised / raised.sum()


def slope(w, one: Prompt, at: int, seen):
    """The loss of a prompt, its gradient, and the attention on the four kinds of columns."""
    columns, asked = seen(one, at)
    share = attention(w, columns, asked, one.count[at])
    gives = unit(one.bottom[at], M)
    miss = share @ gives - unit(one.label[at], M)
    pull = share * (gives @ miss - share @ gives @ miss)
    same, now = one.top[at] == one.query[at], one.step[at] == one.query_step[at]
    kinds = np.stack([same & now, ~same & now, same & ~now, ~same & ~now])
    return 0.5 * miss @ miss, np.outer(pull @ columns, asked), kinds @ share


def table_of(w):
    """What W says to patterns and encodings."""
    patterns, encodings = (np.pad(part, ((0, 0), (0, DIM))) for part in (VECTORS[:M], VECTORS[M:]))
    lower = np.pad(VECTORS[:M], ((0, 0), (DIM, 0)))
    return np.concatenate([patterns, lower, encodings]) @ w @ np.concatenate([patterns, encodings]).T


def by_hand(start, one: Prompt, seen, to_table, steps=STEPS):
    w, losses, masses, diagonal = np.array(start, float), [], [], []
    for step in range(steps + 1):
        watched = [slope(w, one, at, seen) for at in range(COUNT)]
        losses.append(np.mean([found[0] for found in watched]))
        masses.append(np.mean([found[2] for found in watched], axis=0))
        diagonal.append(np.trace(to_table(w)[:M, :M]) / M)
        if step < steps:
            batch = [(step * BATCH + place) % COUNT for place in range(BATCH)]
            w = w - RATE * np.mean([slope(w, one, at, seen)[1] for at in batch], axis=0)
    moved = to_table(w) - to_table(np.array(start, float))
    sums = [np.abs(rows.sum(0)).max() for rows in np.split(moved, [M, 2 * M])]
    return {"loss_curve": losses, "masses_curve": masses, "diagonal_curve": diagonal, "drift": max(sums)}


def of_classes():
    """Without a step: the drawn prompts, seen with the user's numbers."""
    c, same = CLASS, np.eye(M)

    def block(two, row):
        return np.hstack([two[0] * same + two[1] * (1 - same), np.tile(row, (M, 1))])

    places = np.hstack([np.repeat(c.step[:, None], M, 1), c.place])
    table = np.vstack([block(c.into, c.into_step), block(c.out, c.out_step), places])
    watched = begun(CLASSES, 0).world.watched
    found = [slope(table, watched, at, in_basis) for at in range(COUNT)]
    return {
        "loss_curve": [np.mean([one[0] for one in found])] * (STEPS + 1),
        "masses_curve": [np.mean([one[2] for one in found], axis=0)] * (STEPS + 1),
        "drift": 0.0,
    }


def through_layers(w: Layers, one: Prompt, at: int):
    """The query's column after all layers, for one prompt, and the attention of its heads."""
    columns, asked = as_tokens(one, at)
    x = np.vstack([columns, asked])
    seen = np.tri(len(x), k=-1, dtype=bool) & (np.append(one.count[at], 1) > 0)
    seen[0, 0] = True
    paid = np.zeros((2, 2, len(columns)))
    for layer in range(2):
        read = np.zeros_like(x)
        for head in range(2):
            logits = np.where(seen, x @ w.w[layer, head].T @ x.T, -np.inf)
            share = np.exp(logits - logits.max(1, keepdims=True))
            share /= share.sum(1, keepdims=True)
            paid[layer, head] = share[-1, :-1]
            read += share @ x @ w.v[layer, head].T
        x = x + read
    return x[-1, DIM:], paid


def deep_by_hand():
    one, losses, masses = prompts(), [], []
    for at in range(COUNT):
        out, paid = through_layers(LAYERS, one, at)
        losses.append(0.5 * np.sum((VECTORS[one.label[at]] - out) ** 2))
        same, now = one.top[at] == one.query[at], one.step[at] == one.query_step[at]
        kinds = np.stack([same & now, ~same & now, same & ~now, ~same & ~now])
        masses.append(np.einsum("lhc,kc->lhk", paid, kinds))
    return {"loss": np.mean(losses), "masses": np.mean(masses, axis=0), "loss_curve": [np.mean(losses)] * 2}


def from_the_drawn_table():
    return by_hand(begun(REASONING, 0).params, prompts(), in_basis, np.asarray)


CASES = [
    Case("prompts", REASONING, 0, OWN["patterns"], None, from_the_drawn_table),
    Case(
        "prompts-weights", REASONING, 0, OWN["patterns"], TABLE,
        partial(by_hand, TABLE, prompts(), in_basis, np.asarray),
    ),
    Case("tokens", TOKENS, 0, OWN["tokens"], WIDE, partial(by_hand, WIDE, prompts(), as_tokens, table_of)),
    Case("classes", CLASSES, 0, None, CLASS, of_classes),
    Case("layers", DEEP, 0, OWN["tokens"], LAYERS, deep_by_hand),
]  # fmt: skip


def spoiled(form: str = "patterns", **changed) -> OwnPrompts:
    return OWN[form]._replace(prompts=prompts()._replace(**changed))


REFUSED = [
    Refused(REASONING, np.full((3, DIM), np.nan), None, "data takes OwnPrompts("),
    Refused(REASONING, OWN["tokens"], None, f"data.vectors takes None, not float64 ({M + K}, {DIM})"),
    Refused(TOKENS, OWN["patterns"], None, f"data.vectors takes float64 ({M + K}, {DIM}), not None"),
    Refused(TOKENS, OWN["tokens"]._replace(vectors=np.ones((M + K, DIM))), None, "patterns are orthonormal"),
    Refused(REASONING, spoiled(top=np.full((COUNT, COLUMNS), M)), None, "numbers from 0 to 3"),
    Refused(REASONING, spoiled(step=np.full((COUNT, COLUMNS), -1)), None, "numbers from 0 to 1"),
    Refused(REASONING, spoiled(label=np.zeros(COUNT + 1, int)), None, "one number of samples"),
    Refused(REASONING, spoiled(count=np.zeros((COUNT, COLUMNS))), None, "leaves out all columns"),
    Refused(REASONING, spoiled(count=np.full((COUNT, COLUMNS), -1.0)), None, "must not be negative"),
    Refused(REASONING, spoiled(top=np.zeros((COUNT, 2), int)), None, f"(any number, {COLUMNS})"),
    Refused(CLASSES, OWN["patterns"], None, "use simulator=patterns"),
    Refused(REASONING, None, WIDE, f"takes an array of shape ({2 * M + K}, {M + K})"),
    Refused(TOKENS, None, TABLE, f"takes an array of shape ({2 * DIM}, {2 * DIM})"),
    Refused(REASONING, None, CLASS, "weights takes float64"),
    Refused(DEEP, spoiled("tokens", count=np.full((COUNT, COLUMNS), 0.5)), None, "takes 0 or 1"),
    Refused(DEEP, OWN["patterns"], None, "data.vectors takes float64"),
    Refused(
        DEEP, None, jax.tree.map(lambda part: part[:1], LAYERS), "takes an array of shape (2, 2, 16, 16)"
    ),
]
