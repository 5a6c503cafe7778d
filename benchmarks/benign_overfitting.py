"""Figure 1 of benign overfitting at paper size with three seeds, all parameters divided by 16: the lab's whole command,
with compilation and an empty cache, against PyTorch eager in weight space, run after run.

PyTorch is timed per step on cells that span N and SNR (full-batch gradient descent on W_Q, W_K, W_V in float32, better of
one and two threads) and charged the steps that each cell of the figure took. Prints the ratio over the figure and for N up
to 4, and the largest memory of a process.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TOKENS, DIM, KEY_DIM, VALUE_DIM, RATE = 16, 1024, 512, 512, 0.1
FIGURE = "benign-overfitting/fig1"
CHANGES = ("--scale", "paper", "--seeds", "3")


def torch_step_seconds(samples: int, signal_norm: float, threads: int, steps: int = 30) -> float:
    """Seconds of one step of eager gradient descent on the weights."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    signals = signal_norm * torch.eye(2, DIM)
    labels = torch.tensor([1.0 if i % 2 == 0 else -1.0 for i in range(samples)])
    noise = torch.randn(samples, TOKENS - 1, DIM) * 0.2
    noise[:, 0] *= 20
    signal = signals[(labels < 0).long()]
    tokens = torch.cat([signal[:, None], noise], dim=1)
    layers = [torch.nn.Linear(DIM, n, bias=False) for n in (KEY_DIM, KEY_DIM, VALUE_DIM)]
    readout = torch.nn.Linear(VALUE_DIM, 1, bias=False)
    for layer in (*layers, readout):
        layer.weight.data /= 16
    query, key, value = layers
    weights = [layer.weight for layer in layers]

    def step() -> None:
        attention = torch.softmax(query(tokens) @ key(tokens).transpose(1, 2), dim=-1)
        output = (attention @ value(tokens) @ readout.weight[0]).mean(dim=1)
        loss = torch.nn.functional.softplus(-labels * output).mean()
        loss.item()  # the stop rule needs it every step
        with torch.no_grad():
            for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight -= RATE * gradient

    for _ in range(3):
        step()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - began) / steps


def lab_cell(samples: int, signal_norm: float) -> tuple[float, float]:
    """Seconds of one step, and of everything around the steps of one cell (drawing weights, training and test set,
    testing), once compiled."""
    import jax
    import jax.numpy as jnp

    from lemmata.guard import double
    from lemmata.loop import fill, read, run_block
    from lemmata.studies.benign_overfitting.figures import template
    from lemmata.trial import put_all, random_key, with_precision

    changes = {"data.samples": samples, "data.signal_norm": signal_norm, "descent.target_loss": 0.0}
    trial = put_all(template(), changes)
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], with_precision(trial))
    key, here, steps = random_key(trial, 0)[None], jnp.ones(1, bool), 200

    def timed() -> tuple[float, float]:
        began = time.perf_counter()
        lanes = jax.block_until_ready(fill(one, key, None, here))
        started = time.perf_counter()
        lanes = jax.block_until_ready(
            run_block(lanes, jnp.asarray(steps, jnp.int32), jnp.asarray(0, jnp.int32))
        )
        stepped = time.perf_counter()
        jax.block_until_ready(read(lanes, here))
        return (stepped - started) / steps, (started - began) + (time.perf_counter() - stepped)

    with double():
        timed()  # compiles
        return timed()


def lab_seconds(out: Path, cache: Path) -> float:
    """Seconds of the whole command in a process of its own."""
    command = [sys.executable, "-m", "lemmata", "run", FIGURE, *CHANGES, "--out", str(out)]
    began = time.perf_counter()
    subprocess.run(
        command, check=True, env={**os.environ, "LEMMATA_CACHE": str(cache)}, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - began


def main() -> None:
    from lemmata.desk import stored_order

    sample = (2, 4, 10, 20)
    per_step, around = {}, {}
    for n in sample:
        per_step[n] = min(torch_step_seconds(n, norm, t) for norm in (12.0, 67.0) for t in (1, 2))
        step, around[n] = lab_cell(n, 50.0)
        print(
            f"N = {n}: PyTorch {1e3 * per_step[n]:.2f} ms a step, lab {1e3 * step:.3f} ms, ratio {per_step[n] / step:.0f}; "
            f"around the steps of a cell the lab takes {1e3 * around[n]:.0f} ms",
            flush=True,
        )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        whole = lab_seconds(out, Path(folder) / "cache")
        again = stored_order(str(out))
        steps = again.results().steps.sum(("signal_norm", "seed"))
        entries = again.store.entries()
        small_cells = [cell.id for cell in again.sweep.cells if cell.place["samples"] <= 4]
        small = sum(entries[id].seconds for id in small_cells)
    peer = np.interp(steps.samples, sample, [per_step[n] for n in sample]) * steps.values
    at_small = steps.samples.values <= 4
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    print(f"steps in the figure: {int(steps.sum())}; PyTorch would take {peer.sum():.0f} s")
    print(
        f"lab, whole command, compilation included: {whole:.0f} s; ratio {peer.sum() / whole:.1f} (to reach: 10)"
    )
    print(
        f"N up to 4: PyTorch {peer[at_small].sum():.0f} s, lab {small:.2f} s of worker time with compilation; "
        f"ratio {peer[at_small].sum() / small:.0f} (to reach: 100)"
    )
    print(f"largest memory of a process: {memory:.2f} GB (to stay under: 2)")


if __name__ == "__main__":
    main()
