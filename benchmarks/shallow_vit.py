"""One SGD step of the shallow vision transformer: batch 32, 100 tokens, dimension 10, 1000 neurons; and Figure 2, steps to
zero training loss.

The token-by-neuron arrays of one sample fill the cache, so that the lab takes runs and samples one after another, by a kernel
of its own that makes the gates of a few tokens and neurons at a time and uses them at once. Where there is no C++ compiler,
XLA makes each such array once and takes more than twice as long. By `patterns` a sample is one token for each of five patterns
and how often it occurs, which is the same training where tokens have no noise and share their output weights.
"""

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.workload import Arrays, Command, Plain, Simulator, Step, Work, Workload, changed
from lemmata.descent import Descent
from lemmata.studies.shallow_vit.data import TokenData
from lemmata.studies.shallow_vit.network import Network
from lemmata.studies.shallow_vit.trials import ViTTraining

NAMES = ("query", "key", "value")


def trial(steps: int, samples: int, tokens: int, dim: int, neurons: int, heads: int) -> ViTTraining:
    """It learns so slowly that no sample is ever fitted: the lab would leave it out of the gradient of attention."""
    return ViTTraining(
        data=TokenData(0.5, 0.1, samples=samples, tokens=tokens, dim=dim),
        network=Network(neurons=neurons, heads=heads),
        descent=Descent(learning_rate=1e-4, loss="hinge", stop="cap", steps=steps, logs=2),
    )


def plain(trial: ViTTraining, key: Any, state: Any, count: int) -> Plain:
    weights = {name: getattr(state.params, name) for name in (*NAMES, "hidden")}
    batch = {
        "tokens": state.data.tokens,
        "label": state.data.label[:, 0],
        "votes": state.world.votes[..., 0],
    }
    return Plain(weights, [batch], dict.fromkeys(weights, float(trial.descent.learning_rate)))


def jax_loss(weights: Arrays, batch: Arrays) -> Any:
    x = batch["tokens"][:, None]
    query, key, value = (x @ weights[name].mT for name in NAMES)
    attended = jax.nn.softmax(query @ key.mT, axis=-1) @ value
    features = jnp.moveaxis(attended, 1, 2).reshape(*batch["tokens"].shape[:2], -1)
    active = jax.nn.relu(features @ weights["hidden"])
    output = jnp.sum(active * batch["votes"], axis=(1, 2)) / x.shape[2]
    return jnp.mean(jax.nn.relu(1 - batch["label"] * output))


def torch_loss(weights: Arrays, batch: Arrays) -> Any:
    import torch

    x = batch["tokens"][:, None]
    query, key, value = (x @ weights[name].mT for name in NAMES)
    attended = torch.softmax(query @ key.mT, dim=-1) @ value
    features = attended.transpose(1, 2).flatten(2)
    active = torch.relu(features @ weights["hidden"])
    output = (active * batch["votes"]).sum(dim=(1, 2)) / x.shape[2]
    return torch.relu(1 - batch["label"] * output).mean()


def work(samples: int, tokens: int, dim: int, neurons: int, heads: int) -> Work:
    """For each sample three products of token-by-neuron arrays with the hidden weights, four of attention maps with tokens, and
    an exponential for each of their entries; what must be read are samples, votes and weights."""
    each = 6 * tokens * neurons * heads * dim + 8 * heads * tokens**2 * dim
    touched = 4 * (samples * tokens * dim + tokens * neurons + 2 * heads * dim * neurons)
    return Work(samples * each, touched, exponentials=samples * heads * tokens**2)


def pattern_work(samples: int, tokens: int, dim: int, neurons: int, heads: int) -> Work:
    """The same with one token for each pattern, however many tokens there are; their output weights are one row."""
    return work(samples, PATTERNS, dim, neurons, heads)._replace(
        bytes=4 * (samples * PATTERNS * (dim + 1) + neurons + 2 * heads * dim * neurons)
    )


PATTERNS = TokenData().patterns
SIZES = {"samples": 32, "tokens": 100, "dim": 10, "neurons": 1000, "heads": 1}
BY_PATTERNS = {"simulator": "patterns", "data.noise_std": 0.0, "network.output_weights": "shared"}

WORKLOAD = Workload(
    about=__doc__ or "",
    figure="shallow-vit/fig2",
    short=Command(("--scale", "quick", "--seeds", "2"), sizes={"samples": 10, "tokens": 50, "neurons": 300}),
    paper=Command(("--scale", "paper"), sizes={"samples": 10}),
    step=Step(
        trial=trial,
        sizes=SIZES,
        tiny={"samples": 3, "tokens": 10, "dim": 10, "neurons": 8, "heads": 2},
        plain=plain,
        jax_loss=jax_loss,
        torch_loss=torch_loss,
        work=work,
        growth={
            "samples": (16, 32, 64),
            "tokens": (50, 100, 200),
            "dim": (10, 20, 40),
            "neurons": (500, 1000, 2000),
            "heads": (1, 2, 4),
        },
        runs=4,
        simulator="tokens",
        others={
            "patterns": Simulator(
                changed(trial, BY_PATTERNS),
                SIZES,
                pattern_work,
                {
                    "samples": (16, 64, 256),
                    "tokens": (100, 1000, 10_000),
                    "dim": (10, 20, 40),
                    "neurons": (500, 2000, 8000),
                    "heads": (1, 2, 4),
                },
            )
        },
    ),
)
