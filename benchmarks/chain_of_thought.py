"""Training of the attention layer on reasoning prompts at the document's size (M = 20, K = 3, d = 30, 20 examples, batch 60),
Figure 7.3 (a), and the law of the vote against 1e5 simulated prompts.

The lab trains a table of (2M + K) x (M + K) numbers by lookups, peers the 2d x 2d weights on tokens; the lab also draws its
prompts, a random cycle each. By `tokens` it trains what peers train, on tokens that it makes and adds noise to (drawn, but of
norm 0 here); by `classes` the few different numbers that the table tends to, on one prompt of expected counts for each of the K
steps.
"""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.workload import (
    Arrays,
    Command,
    Measure,
    Plain,
    Simulator,
    Step,
    Work,
    Workload,
    batch_keys,
    by_tokens,
    changed,
)
from lemmata.studies.chain_of_thought import theory
from lemmata.studies.chain_of_thought.figures import template
from lemmata.studies.chain_of_thought.trials import Reasoning
from lemmata.studies.chain_of_thought.trials.testing import coordinates, errors, scores_of
from lemmata.threefry import new_key
from lemmata.trial import put_all

PROMPTS, LENGTH, TIMES, STEPS = 100_000, 20, 20, 3


def dimension(patterns: int) -> int:
    return max(30, patterns + STEPS)


def trial(steps: int, prompts: int, examples: int, patterns: int) -> Reasoning:
    sizes = {"descent.batch": prompts, "data.examples": examples, "data.patterns": patterns}
    dims = {"data.dim": dimension(patterns), "test.patterns": min(10, patterns)}
    return put_all(template(), {**sizes, **dims, "descent.steps": steps, "descent.logs": 2})


def plain(trial: Reasoning, key: Any, state: Any, count: int) -> Plain:
    """The run on tokens that is drawn from the same key."""
    whole = by_tokens(trial)
    begun = jax.jit(lambda k: whole.start(k))(key)
    way, numbers = batch_keys(begun, count)
    seen = jax.jit(lambda number: whole.batch(way, number, None, begun.world)._asdict())
    return Plain(
        {"table": begun.params},
        [seen(number) for number in numbers],
        {"table": float(trial.descent.learning_rate)},
    )


def jax_loss(weights: Arrays, batch: Arrays) -> Any:
    columns, there = batch["columns"], batch["count"] > 0
    logits = jnp.sum(columns * (batch["asked"] @ weights["table"].T)[:, None], axis=-1)
    share = jax.nn.softmax(jnp.where(there, logits, -jnp.inf), axis=1)
    seen = (share[:, None] @ columns[:, :, columns.shape[2] // 2 :])[:, 0]
    return jnp.mean(jnp.sum((batch["label"] - seen) ** 2, axis=1)) / 2


def torch_loss(weights: Arrays, batch: Arrays) -> Any:
    import torch

    columns, there = batch["columns"], batch["count"] > 0
    logits = (columns * (batch["asked"] @ weights["table"].T)[:, None]).sum(dim=-1)
    share = torch.softmax(torch.where(there, logits, -torch.inf), dim=1)
    seen = (share[:, None] @ columns[:, :, columns.shape[2] // 2 :])[:, 0]
    return ((batch["label"] - seen) ** 2).sum(dim=1).mean() / 2


def work(prompts: int, examples: int, patterns: int) -> Work:
    """For each prompt six words of keys, those of its cycle, and two for every example that does not begin as the query does
    (60 % of them); for each of its columns that is not a copy of another (those of a step that begin with the same pattern
    are) three lookups and twelve operations in all; the sum of two columns of the table, and its gradient; and an exponential
    for each of these columns or for each number of the table, whichever are fewer."""
    others = examples - round(0.4 * examples)
    columns, rows, width = STEPS * min(patterns, 1 + others), 2 * patterns + STEPS, patterns + STEPS
    return Work(
        prompts * (3 * rows + 12 * columns),
        4 * 3 * rows * width,
        prompts * (6 + patterns + 2 * others),
        min(prompts * columns, rows * width),
    )


def token_work(prompts: int, examples: int, patterns: int) -> Work:
    """For each prompt W times the query and its gradient (4 d^2 each), and six passes over the d or 2d numbers of all columns:
    logits, the output and their derivatives. The words of the prompts as above; for the noise of every state of an example a
    word and a logarithm in each of the d - M directions without a pattern (the fewer the more patterns), and a product with
    them; an exponential for each column. W is read, its gradient written and added, columns are made and read."""
    dim, columns = dimension(patterns), examples * STEPS + STEPS - 1
    noise = prompts * examples * (STEPS + 1) * (dim - patterns)
    return Work(
        prompts * (16 * dim**2 + 12 * columns * dim) + 2 * noise * dim,
        4 * (3 * 4 * dim**2 + 2 * prompts * columns * 2 * dim),
        work(prompts, examples, patterns).words + noise,
        prompts * columns + noise,
    )


def class_work(prompts: int, examples: int, patterns: int) -> Work:
    """The same lookups for one prompt for each of the K steps, which has every column once, with its count; nothing is drawn,
    and neither prompts nor examples cost anything."""
    columns, rows, width = STEPS * patterns, 2 * patterns + STEPS, patterns + STEPS
    return Work(STEPS * (3 * rows + 12 * columns), 4 * 3 * rows * width, exponentials=STEPS * columns)


def extra(paper: bool) -> dict[str, Measure]:
    """The law of the vote at one length against simulated prompts, which pass through the layer too."""
    one = put_all(template(), {"test.prompts": 2000, "test.lengths": (LENGTH,)})
    test, d = one.test, one.data
    rows = coordinates(test, new_key(0), d.patterns, d.steps, d.dim)
    trained = jnp.zeros((60, 30)).at[:23, :23].set(4 * jnp.eye(23))
    scores = scores_of(test, trained, rows, d.patterns, d.steps)
    tried = jax.jit(lambda key: errors(test, scores, d.steps, key))
    jax.block_until_ready(tried(new_key(0)))
    began = time.perf_counter()
    found = [tried(new_key(n))["cot_vote_error"] for n in range(PROMPTS // 2000)]
    by_chance = float(np.mean(jax.block_until_ready(found)))
    slow = time.perf_counter() - began
    maps, transitions = theory.example_task(one)
    own, by_law = round(test.match_fraction * LENGTH), 0.0
    began = time.perf_counter()
    for _ in range(TIMES):
        theory._winning_counts.cache_clear()
        by_law = float(np.mean(theory._errors_from(0, own, LENGTH - own, transitions, maps)))
    fast = (time.perf_counter() - began) / TIMES
    return {
        "the law of the vote against 1e5 simulated prompts": Measure(slow / fast, "times", "1000"),
        "error of the vote by simulation less that by the law": Measure(by_chance - by_law, ""),
    }


SIZES = {"prompts": 60, "examples": 20, "patterns": 20}
GROWTH = {"prompts": (60, 240, 960), "examples": (20, 80, 320), "patterns": (10, 20, 40)}

WORKLOAD = Workload(
    about=__doc__ or "",
    figure="chain-of-thought/fig7-3a",
    short=Command(("--scale", "quick", "--seeds", "1")),
    paper=Command(("--scale", "paper")),
    step=Step(
        trial=trial,
        sizes=SIZES,
        tiny={"prompts": 6, "examples": 5, "patterns": 11},
        plain=plain,
        jax_loss=jax_loss,
        torch_loss=torch_loss,
        work=work,
        growth=GROWTH,
        simulator="patterns",
        others={
            name: Simulator(changed(trial, {"simulator": name}), SIZES, formula, GROWTH)
            for name, formula in {"tokens": token_work, "classes": class_work}.items()
        },
    ),
    extra=extra,
)
