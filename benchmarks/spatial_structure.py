"""A step of the reference run of Figure 4: 64 patches of dimension 32, 8000 images, and the figure itself.

The 65 MB of patches are what a step must read. A plain one reads them twice, once to project them on the value vector and once
for its gradient; the lab reads them once, in blocks that stay in the cache, by a kernel of its own that fetches the next block
while it multiplies with the scores. Where there is no C++ compiler, XLA does the same block by block and takes twice as long.
By `recursion` descent on the population risk is three numbers, and an image is a draw of thirteen moments.
"""

import time
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.workload import Arrays, Command, Measure, Plain, Simulator, Step, Work, Workload
from lemmata.descent import Descent
from lemmata.loop import train
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.network import PositionalNetwork
from lemmata.studies.spatial_structure.trials import IdealisedDescent, ImageDescent
from lemmata.studies.spatial_structure.trials.recursion import monomials

LINEAR = 1e-4
MOMENTS = len(monomials(PositionalNetwork().degree))


def trial(steps: int, samples: int, patches: int, dimension: int) -> ImageDescent:
    return ImageDescent(
        data=Structured(patches=patches, dimension=dimension),
        network=PositionalNetwork(linear=LINEAR, init=0.02),
        descent=Descent(learning_rate=1e-4, attention_rate=10.0, stop="cap", steps=steps, logs=2),
        samples=samples,
    )


def plain(trial: ImageDescent, key: Any, state: Any, count: int) -> Plain:
    """Samples out of their blocks, padding left off; the diagonal is no weight."""
    blocked, labels = state.data
    patches = jnp.moveaxis(blocked, 1, -1).reshape(-1, trial.data.patches, trial.data.dimension)
    logits, value = state.params
    frozen = jnp.eye(len(logits), dtype=logits.dtype)
    batch = {
        "patches": patches[: trial.samples],
        "labels": labels.reshape(-1)[: trial.samples],
        "trained": 1 - frozen,
        "diagonal": logits * frozen,
    }
    rate = float(trial.descent.learning_rate)
    rates = {"logits": rate * float(trial.descent.attention_rate), "value": rate}
    return Plain({"logits": logits, "value": value}, [batch], rates)


def jax_loss(weights: Arrays, batch: Arrays) -> Any:
    logits = weights["logits"] * batch["trained"] + batch["diagonal"]
    z = len(logits) * (batch["patches"] @ weights["value"]) @ jax.nn.softmax(logits, axis=1).T
    output = jnp.sum(z**3 + LINEAR * z, axis=1)
    return jnp.mean(jax.nn.softplus(-batch["labels"] * output))


def torch_loss(weights: Arrays, batch: Arrays) -> Any:
    import torch

    logits = weights["logits"] * batch["trained"] + batch["diagonal"]
    z = len(logits) * (batch["patches"] @ weights["value"]) @ torch.softmax(logits, dim=1).T
    output = (z**3 + LINEAR * z).sum(dim=1)
    return torch.nn.functional.softplus(-batch["labels"] * output).mean()


def work(samples: int, patches: int, dimension: int) -> Work:
    """Projections and their way back (n D d each), and three products with the scores (n D^2 each); every patch is read."""
    operations = 2 * samples * patches * (2 * dimension + 3 * patches)
    return Work(operations, 4 * samples * patches * dimension)


def recursion(steps: int, draws: int, patches: int) -> IdealisedDescent:
    """The population's descent on so many draws."""
    return IdealisedDescent(
        data=Structured(patches=patches),
        descent=Descent(learning_rate=1e-3, stop="cap", steps=steps, logs=2),
        draws=draws,
        test_draws=10,
    )


def recursion_work(draws: int, patches: int) -> Work:
    """Two products with the moments of all draws, which are read once, and an exponential and a logarithm a draw; patches cost
    nothing."""
    return Work(4 * MOMENTS * draws, 8 * MOMENTS * draws, exponentials=2 * draws)


def extra(paper: bool) -> dict[str, Measure]:
    """Population descent as three numbers, 500 draws, in double precision."""
    steps = 1_000_000 if paper else 100_000
    descent = Descent(learning_rate=1e-3, stop="cap", steps=steps, logs=3, spacing="even")
    one = IdealisedDescent(descent=descent, test_draws=10)
    train(one, seed=0)
    began = time.perf_counter()
    train(one, seed=0)
    took = time.perf_counter() - began
    return {"the recursion of three numbers, a step": Measure(1e6 * took / steps, "µs")}


WORKLOAD = Workload(
    about=__doc__ or "",
    figure="spatial-structure/fig4",
    short=Command(("--scale", "quick", "--seeds", "4"), sizes={"samples": 5000}),
    paper=Command(("--scale", "paper")),
    step=Step(
        trial=trial,
        sizes={"samples": 8000, "patches": 64, "dimension": 32},
        tiny={"samples": 70, "patches": 8, "dimension": 4},
        plain=plain,
        jax_loss=jax_loss,
        torch_loss=torch_loss,
        work=work,
        growth={"samples": (2000, 8000, 32_000), "patches": (16, 64, 144), "dimension": (8, 32, 128)},
        runs=2,
        simulator="images",
        others={
            "recursion": Simulator(
                recursion,
                {"draws": 500, "patches": 64},
                recursion_work,
                {"draws": (500, 5000, 50_000), "patches": (16, 64, 144)},
            )
        },
    ),
    extra=extra,
)
