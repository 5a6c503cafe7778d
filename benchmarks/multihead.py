"""Speed of the multi-head study: figure 2 against PyTorch eager, Hessian spectra along a run, the price of heads.

    python benchmarks/multihead.py [--steps 200] [--only figure|spectra|heads]

The peer trains the same cells of figure 2 (same data, float64) one by one with explicit heads and autograd, as an
eager script does; it needs torch and is skipped without. Both sides are timed over `--steps` steps after a warm-up and
scaled to the horizon of the `paper` scale, because both cost the same at every step. Ratios inside one run are what
counts; absolute times depend on the machine.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from lemmata.descent import Descent
from lemmata.guard import double
from lemmata.loop import fill, run_block
from lemmata.studies.multihead.figures import fig2, hessian_path
from lemmata.studies.multihead.network import Network
from lemmata.studies.multihead.trials import Training
from lemmata.trial import Descending, random_key, with_precision


def lanes_of(cells):
    """The cells of one structure, started together."""
    trials = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(with_precision(c.trial) for c in cells))
    keys = jnp.stack([random_key(c.trial, c.seed) for c in cells])
    return fill(trials, keys, None, jnp.ones(len(cells), bool))


def seconds_per_step(lanes, steps: int) -> float:
    """Wall time of one step of all lanes, compilation left out."""
    most, spare = jnp.asarray(steps, jnp.int32), jnp.asarray(0, jnp.int32)
    lanes = jax.block_until_ready(run_block(lanes, jnp.asarray(3, jnp.int32), spare))
    began = time.perf_counter()
    jax.block_until_ready(run_block(lanes, most, spare))
    return (time.perf_counter() - began) / steps


def torch_seconds(cells, states, steps: int) -> float:
    """Wall time of one step of every cell, cell by cell, with explicit heads."""
    import torch

    torch.set_default_dtype(torch.float64)
    total = 0.0
    for cell, tokens, labels in zip(cells, *states, strict=True):
        heads = int(cell.trial.network.heads)
        x, y = torch.tensor(np.array(tokens)), torch.tensor(np.array(labels))
        decoder = torch.zeros(heads, *x.shape[1:], requires_grad=True)
        attention = torch.zeros(heads, x.shape[2], x.shape[2], requires_grad=True)
        optimiser = torch.optim.SGD([decoder, attention], lr=float(cell.trial.descent.learning_rate))

        def step(x=x, y=y, decoder=decoder, attention=attention, optimiser=optimiser, heads=heads):
            optimiser.zero_grad()
            scores = torch.einsum("nti,hij,nsj->hnts", x, attention, x)
            attended = torch.softmax(scores, dim=-1) @ x
            output = torch.einsum("htd,hntd->n", decoder, attended) / heads**0.5
            torch.nn.functional.softplus(-y * output).mean().backward()
            optimiser.step()

        for _ in range(3):
            step()
        began = time.perf_counter()
        for _ in range(steps):
            step()
        total += (time.perf_counter() - began) / steps
    return total


def figure(steps: int) -> None:
    cells = fig2("paper").cells
    assert isinstance(cells[0].trial, Descending)
    horizon = cells[0].trial.steps
    lanes = lanes_of(cells)
    ours = seconds_per_step(lanes, steps)
    print(f"figure 2, paper size: {len(cells)} cells, {horizon} steps")
    print(
        f"  lemmata        {ours * horizon:8.1f} s  ({ours * 1e3:.2f} ms a step of all cells, logging included)"
    )
    try:
        peer = torch_seconds(cells, (lanes.state.data.tokens, lanes.state.data.labels), max(steps // 10, 5))
    except ModuleNotFoundError:
        print("  torch is not installed: no peer")
        return
    print(f"  torch, eager   {peer * horizon:8.1f} s  ({peer * 1e3:.2f} ms a step of all cells, no logging)")
    print(f"  ratio          {peer / ours:8.1f}")


def spectra() -> None:
    """The whole Hessian spectrum of every number of heads of figure 2 at 100 checkpoints."""
    cells = [cell for cell in hessian_path("quick").cells if cell.seed == 0]
    trial = cells[0].trial
    assert isinstance(trial, Descending)
    lanes = lanes_of(cells)
    most, spare = jnp.asarray(trial.steps, jnp.int32), jnp.asarray(0, jnp.int32)
    jax.block_until_ready(run_block(lanes, jnp.asarray(1, jnp.int32), spare))
    began = time.perf_counter()
    jax.block_until_ready(run_block(lanes, most, spare))
    taken = time.perf_counter() - began
    checkpoints = len(trial.log_steps)
    print(
        f"Hessian spectra: {len(cells)} runs of {most} steps with {checkpoints} checkpoints each in {taken:.1f} s"
    )


def price_of_heads(steps: int) -> None:
    """Two explicit heads, against a billion heads in two groups of equal ones."""
    descent = Descent(learning_rate=1.0, stop="cap", steps=100_000, logs=5)
    two = Training(network=Network(heads=2.0, start="random", simulated=2), descent=descent)
    many = Training(network=Network(heads=1e9, start="signs", simulated=2), descent=descent)
    times = {}
    for name, trial in (("2 heads", two), ("1e9 heads", many)):
        one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], with_precision(trial))
        lanes = fill(one, random_key(trial, 0)[None], None, jnp.ones(1, bool))
        times[name] = min(seconds_per_step(lanes, steps) for _ in range(3))
        print(f"{name:10s} {times[name] * 1e6:8.1f} us a step")
    print(f"ratio      {times['1e9 heads'] / times['2 heads']:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--only", choices=("figure", "spectra", "heads"))
    options = parser.parse_args()
    with double():
        if options.only in (None, "figure"):
            figure(options.steps)
        if options.only in (None, "spectra"):
            spectra()
        if options.only in (None, "heads"):
            price_of_heads(options.steps)


if __name__ == "__main__":
    main()
