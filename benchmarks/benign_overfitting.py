"""Figure 1 of benign overfitting: full-batch gradient descent on W_Q, W_K, W_V of a softmax layer.

The lab carries the rows of queries and keys of the training tokens in a basis of their own span (P = 2 + N(M - 1) rows of at
most 2P numbers), peers the weights themselves (1024 x 512), as the lab does by `direct`. By `gram` and `leading-order` every
step moves a hundred fresh points along; `row` adds up what moves them, for the end. Charged are the steps that each cell of
the figure took, at what a step costs eager PyTorch for its N. A cell also draws its weights, a training set and a hundred test
points; each N is a program of its own.
"""

import subprocess
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks import ENVIRONMENT
from benchmarks.measure import figure
from benchmarks.timing import CORES, on_cores
from benchmarks.workload import Arrays, Command, Measure, Plain, Simulator, Step, Work, Workload, changed
from lemmata.studies.benign_overfitting.data import gather
from lemmata.studies.benign_overfitting.figures import template
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.studies.benign_overfitting.trials.instances import draw_explicit
from lemmata.trial import put_all

TESTED = template().test_points


def trial(steps: int, samples: int, tokens: int, dim: int, key_dim: int) -> BenignOverfitting:
    sizes = {"data.samples": samples, "data.tokens": tokens, "data.dim": dim}
    widths = {"network.key_dim": key_dim, "network.value_dim": key_dim}
    endless = {"descent.target_loss": 0.0, "descent.steps": steps, "descent.logs": 2}
    return put_all(template(), {**sizes, **widths, **endless})


def plain(trial: BenignOverfitting, key: Any, state: Any, count: int) -> Plain:
    drawn = draw_explicit(trial.data, trial.network, trial.test_points, key, trial.precision)
    weights, labels = drawn.weights, drawn.train.labels
    batch = {"tokens": gather(drawn.train.rows, labels), "labels": labels, "readout": weights.readout}
    trained = {"query": weights.query, "key": weights.key, "value": weights.value}
    return Plain(trained, [batch], dict.fromkeys(trained, float(trial.descent.learning_rate)))


def jax_loss(weights: Arrays, batch: Arrays) -> Any:
    x = batch["tokens"]
    attention = jax.nn.softmax((x @ weights["query"]) @ (x @ weights["key"]).mT, axis=-1)
    output = jnp.mean(attention @ (x @ weights["value"]) @ batch["readout"], axis=1)
    return jnp.mean(jax.nn.softplus(-batch["labels"] * output))


def torch_loss(weights: Arrays, batch: Arrays) -> Any:
    import torch

    x = batch["tokens"]
    attention = torch.softmax((x @ weights["query"]) @ (x @ weights["key"]).mT, dim=-1)
    output = (attention @ (x @ weights["value"]) @ batch["readout"]).mean(dim=1)
    return torch.nn.functional.softplus(-batch["labels"] * output).mean()


def work(samples: int, tokens: int, dim: int, key_dim: int) -> Work:
    """Logits and the two feeds of queries and keys (N M^2 b each), one product with the Gram matrix (P^2 (2b + 1)), and
    attention (N M^2 exponentials)."""
    rows = 2 + samples * (tokens - 1)
    basis = min(2 * rows, key_dim)
    operations = 6 * samples * tokens**2 * basis + 2 * rows**2 * (2 * basis + 1)
    return Work(operations, 4 * (rows**2 + 8 * rows * basis), exponentials=samples * tokens**2)


def gram_work(samples: int, tokens: int, dim: int, key_dim: int) -> Work:
    """With A = P + T (M - 1) rows, those of the T fresh points included: G S and G S^T, S by its entries (2 A N M^2 together),
    G r (A P); Q' Q^T and Q' K^T, and from them Q' Q'^T and Q' K'^T, as many for K' (eight products of A P^2); two products in
    the rows of each fresh point (T M^2 P each). G is read, four matrices of A P numbers are read and written."""
    rows = 2 + samples * (tokens - 1)
    every = rows + TESTED * (tokens - 1)
    fed = 2 * every * samples * tokens**2 + every * rows
    operations = 2 * (fed + 8 * every * rows**2 + 2 * TESTED * tokens**2 * rows)
    return Work(operations, 4 * 9 * every * rows, exponentials=samples * tokens**2)


def leading_work(samples: int, tokens: int, dim: int, key_dim: int) -> Work:
    """G S and G S^T (P N M^2 each), of fresh rows only the column of their signal (N M entries of S each); G r for all A rows
    (A P). G and the logits between all P rows are read, and the logits written."""
    rows = 2 + samples * (tokens - 1)
    fresh = TESTED * (tokens - 1)
    fed = 2 * samples * tokens * (rows * tokens + fresh) + (rows + fresh) * rows
    return Work(2 * fed, 4 * (3 * rows + fresh) * rows, exponentials=samples * tokens**2)


def direct_work(samples: int, tokens: int, dim: int, key_dim: int) -> Work:
    """Queries and keys of all tokens and the gradients of their weights (N M d d_h each), logits and the two feeds (N M^2 d_h
    each); W_V w_O, its gradient, and both with tokens. Three weights are read and written, tokens read."""
    seen = samples * tokens
    operations = 8 * seen * dim * key_dim + 6 * seen * tokens * key_dim + 4 * dim * (key_dim + seen)
    return Work(operations, 4 * dim * (6 * key_dim + seen), exponentials=seen * tokens)


LOADED = ("lemmata.lab.run, lemmata.studies.benign_overfitting.figures", *2 * ("lemmata.lab.work",))
"""What a driver and two workers import whatever they do."""
AIM = 30


def loading() -> float:
    """Seconds until a driver and two workers have imported what they need, side by side."""
    began = time.perf_counter()
    started = [subprocess.Popen([sys.executable, "-c", f"import {what}"], env=ENVIRONMENT) for what in LOADED]
    for process in started:
        process.wait()
    return time.perf_counter() - began


def extra(paper: bool) -> dict[str, Measure]:
    """The figure for few samples, where steps cost least and everything else counts most; and what is left of the time that
    the aim leaves when Python has loaded its packages."""
    few = ("--scale", "paper" if paper else "quick", "--seeds", "3", "--set", "samples=2,4")
    found = figure(WORKLOAD, Command(few, along=("samples", (2, 4))), rounds=3)
    said = "figure 1 for N up to 4, whole command, against eager PyTorch"
    with on_cores(CORES):
        least = min(loading() for _ in range(3))
    return {
        **{
            f"{said}, {turn}": Measure(found[f"{turn} ratio"], "times", str(AIM) if turn == "warm" else "")
            for turn in ("cold", "warm")
        },
        "the whole command, were the aim reached": Measure(found["peer"] / AIM, "s"),
        "imports of a driver and two workers alone": Measure(least, "s"),
    }


SIZES = {"samples": 10, "tokens": 16, "dim": 1024, "key_dim": 512}
GROWTH = {"samples": (5, 10, 20), "tokens": (8, 16, 32), "dim": (512, 1024, 2048)}
OTHERS = {
    "gram": (gram_work, {"tokens": (4, 8, 16)}),  # 32 take a fifth of a second and more
    "leading-order": (leading_work, {}),
    "direct": (direct_work, {}),
}

WORKLOAD = Workload(
    about=__doc__ or "",
    figure="benign-overfitting/fig1",
    short=Command(("--scale", "quick", "--seeds", "1"), along=("samples", (2, 8, 20))),
    paper=Command(("--scale", "paper", "--seeds", "3"), along=("samples", (2, 4, 10, 20))),
    step=Step(
        trial=trial,
        sizes=SIZES,
        tiny={"samples": 4, "tokens": 4, "dim": 32, "key_dim": 16},
        plain=plain,
        jax_loss=jax_loss,
        torch_loss=torch_loss,
        work=work,
        growth=GROWTH,
        runs=4,
        simulator="row",
        others={
            name: Simulator(changed(trial, {"simulator": name}), SIZES, formula, {**GROWTH, **own})
            for name, (formula, own) in OTHERS.items()
        },
    ),
    extra=extra,
)
