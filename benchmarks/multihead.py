"""Figure 2 of multi-head attention: full-batch descent on a token mixture, 1 to 64 heads, in double precision.

Heads that start equal stay equal, so that the lab carries one of each group and how many it stands for; peers carry all of
them. Growth over heads is that of the peers' kind: heads which all differ; a billion equal ones are an extra line.
"""

import time
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.peers import LONG, advanced, lab, started
from benchmarks.timing import in_turns
from benchmarks.workload import Arrays, Command, Measure, Plain, Step, Work, Workload
from lemmata.descent import Descent
from lemmata.studies.multihead.data import TokenMixture
from lemmata.studies.multihead.figures.curvature import along_training
from lemmata.studies.multihead.network import Network
from lemmata.studies.multihead.trials import Training


def trial(steps: int, samples: int, tokens: int, dim: int, heads: int, differing: int) -> Training:
    """`differing` heads at random, each its own; with 0 of them `heads` equal ones from zero."""
    network = (
        Network(heads=float(differing), start="random", simulated=differing)
        if differing
        else Network(heads=float(heads))
    )
    return Training(
        data=TokenMixture(samples=samples, tokens=tokens, dim=dim),
        network=network,
        descent=Descent(learning_rate=1.0, stop="cap", steps=steps, logs=2),
    )


def plain(trial: Training, key: Any, state: Any, count: int) -> Plain:
    """Equal heads written out."""
    copies = round(float(state.world.members.sum())) // len(state.world.members)
    weights = {
        name: jnp.repeat(getattr(state.params, name), copies, axis=0) for name in ("decoder", "attention")
    }
    batch = {"tokens": state.data.tokens, "labels": state.data.labels}
    return Plain(weights, [batch], dict.fromkeys(weights, float(trial.descent.learning_rate)))


def jax_loss(weights: Arrays, batch: Arrays) -> Any:
    x = batch["tokens"]
    scores = jnp.einsum("nti,hij,nsj->hnts", x, weights["attention"], x)
    attended = jax.nn.softmax(scores, axis=-1) @ x
    output = jnp.einsum("htd,hntd->n", weights["decoder"], attended) / len(weights["decoder"]) ** 0.5
    return jnp.mean(jax.nn.softplus(-batch["labels"] * output))


def torch_loss(weights: Arrays, batch: Arrays) -> Any:
    import torch

    x = batch["tokens"]
    scores = torch.einsum("nti,hij,nsj->hnts", x, weights["attention"], x)
    attended = torch.softmax(scores, dim=-1) @ x
    output = torch.einsum("htd,hntd->n", weights["decoder"], attended) / len(weights["decoder"]) ** 0.5
    return torch.nn.functional.softplus(-batch["labels"] * output).mean()


def work(samples: int, tokens: int, dim: int, heads: int, differing: int) -> Work:
    """Per head and sample X W, (XW) X^T and S X, and as much again for the derivative (tokens have none); the decoder and
    its two derivatives; an exponential for every score, and two a sample for its loss and the slope of it."""
    each = 2 * (tokens * dim**2 + 2 * tokens**2 * dim) + 3 * tokens * dim
    groups = max(differing, 1)
    return Work(
        operations=2 * groups * samples * each,
        bytes=8 * (samples * tokens * dim + 4 * groups * dim * (tokens + dim)),
        exponentials=samples * (groups * tokens**2 + 2),
    )


def extra(paper: bool) -> dict[str, Measure]:
    """Two explicit heads against a billion in two groups of equal ones; the Hessian spectrum of every number of heads along a
    run."""
    descent = Descent(learning_rate=1.0, stop="cap", steps=LONG, logs=2)
    two = Training(network=Network(heads=2.0, start="random", simulated=2), descent=descent)
    many = Training(network=Network(heads=1e9, start="signs", simulated=2), descent=descent)
    times = in_turns({"two": lab(two), "many": lab(many)}, 5)
    cells = [cell for cell in along_training("paper" if paper else "quick").cells if cell.seed == 0]
    path = cells[0].trial
    assert isinstance(path, Training)
    lanes = started(path, len(cells))
    advanced(lanes, 1)
    began = time.perf_counter()
    advanced(lanes, path.steps)
    spectra = (time.perf_counter() - began) / len(cells) / len(path.log_steps)
    return {
        "1e9 grouped heads over two heads, a step": Measure(
            times["many"].best / times["two"].best, "times", "2"
        ),
        "whole Hessian spectra, 100 checkpoints of a run": Measure(100 * spectra, "s", "60"),
    }


WORKLOAD = Workload(
    about=__doc__ or "",
    figure="multihead/fig2",
    short=Command(("--scale", "quick"), along=("heads", (1, 16, 64))),
    paper=Command(("--scale", "paper"), along=("heads", (1, 4, 16, 64))),
    step=Step(
        trial=trial,
        sizes={"samples": 100, "tokens": 10, "dim": 4, "heads": 16, "differing": 0},
        tiny={"samples": 6, "tokens": 10, "dim": 4, "heads": 3},
        plain=plain,
        jax_loss=jax_loss,
        torch_loss=torch_loss,
        work=work,
        growth={
            "samples": (100, 400, 1600),
            "tokens": (10, 20, 40),
            "dim": (4, 16, 64),
            "heads": (16, 1024, 65536),
            "differing": (1, 4, 16),
        },
    ),
    extra=extra,
)
