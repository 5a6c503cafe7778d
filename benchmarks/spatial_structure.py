"""One step of the reference run of Figure 4 against NumPy and PyTorch eager, and the three-number recursion.

    python -m benchmarks.spatial_structure [--steps 20] [--rounds 5] [--recursion 1000000]

The reference run has 64 patches of dimension 32 and 8000 images: 65 MB of patches, which a plain step reads twice, once to
project them on the value vector and once for its gradient. The lab reads them once, in blocks that stay in the
cache. Times are per step, the fastest of several rounds that take turns, so that a busy machine slows all of them
alike. A line says how many cores it uses; the lab uses two as its pool does, with one run on each at a time, PyTorch (if it
is installed) as it does by itself, with two threads for one run.
"""

import argparse
import time
from collections.abc import Callable

from benchmarks.timing import CORES, fastest, pin, side_by_side

pin(1)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from lemmata.descent import Descent, Learning  # noqa: E402
from lemmata.loop import train  # noqa: E402
from lemmata.studies.spatial_structure.network import activation, activation_slope, attention_scores  # noqa: E402
from lemmata.studies.spatial_structure.trials import IdealisedDescent, ImageDescent  # noqa: E402
from lemmata.trial import random_key, with_precision  # noqa: E402

TRIAL = ImageDescent()


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--recursion", type=int, default=1_000_000)
    chosen = options.parse_args()
    state, steps = start(), chosen.steps
    contestants = {
        "lab, one core": lab_steps(state, steps),
        "NumPy, one core": numpy_steps(state, steps),
        **torch_steps(state, steps),
    }
    if len(CORES) > 1:
        contestants["lab, two cores"] = side_by_side(lab_run, steps, cores=CORES[:2])
    times = {name: seconds / steps for name, seconds in fastest(contestants, chosen.rounds).items()}
    if "lab, two cores" in times:
        times["lab, two cores"] /= 2  # each of the two did the same number of steps
    for name, seconds in times.items():
        print(f"{name:26s} {1e3 * seconds:8.2f} ms a step")
    print(
        f"one core against NumPy:       {times['NumPy, one core'] / times['lab, one core']:.2f} times faster"
    )
    peers = {name: seconds for name, seconds in times.items() if name.startswith("PyTorch")}
    if peers:
        one, all_cores = times["lab, one core"], min(s for name, s in times.items() if name.startswith("lab"))
        print(f"one core against one thread:  {peers['PyTorch eager, one thread'] / one:.2f} times faster")
        print(f"all cores against its best:   {min(peers.values()) / all_cores:.2f} times faster")
    recursion(chosen.recursion)


def start() -> Learning:
    return jax.jit(lambda trial, key: trial.start(key))(with_precision(TRIAL), random_key(TRIAL, 0))


def lab_run(steps: int) -> Callable[[], object]:
    return lab_steps(start(), steps)


def lab_steps(state: Learning, steps: int) -> Callable[[], object]:
    """Steps as the lab takes them: a compiled loop over lanes, one lane wide."""
    trial = jax.tree.map(lambda leaf: leaf[None], with_precision(TRIAL))
    lanes = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)

    @jax.jit
    def run(trial, lanes, count):
        body = jax.vmap(lambda one, s: one.step(s))
        return jax.lax.fori_loop(0, count, lambda _, s: body(trial, s), lanes).params

    return lambda: jax.block_until_ready(run(trial, lanes, steps))


def _plain(state: Learning) -> tuple[np.ndarray, ...]:
    blocked, labels = (np.asarray(part) for part in state.data)
    labels = labels.reshape(-1)
    blocks, dimension, block, count = blocked.shape
    patches = blocked.transpose(0, 2, 3, 1).reshape(blocks * block, count, dimension)
    patches = np.ascontiguousarray(patches)
    return patches, labels, np.array(state.params.logits), np.array(state.params.value)


def numpy_steps(state: Learning, steps: int) -> Callable[[], object]:
    """The same step with whole-sample matrix products."""
    patches, labels, logits, value = _plain(state)
    shape, rate, speed = TRIAL.constants, TRIAL.descent.learning_rate, TRIAL.descent.attention_rate
    flat, (samples, count, _) = patches.reshape(-1, patches.shape[-1]), patches.shape

    def run() -> None:
        A, v = logits.copy(), value.copy()
        for _ in range(steps):
            S = np.asarray(attention_scores(jnp.asarray(A)))
            u = (flat @ v).reshape(samples, count)
            z = count * (u @ S.T)
            margin = labels * activation(z, shape).sum(1)
            pull = (labels / (1 + np.exp(margin)))[:, None] * count * activation_slope(z, shape)
            pulled = pull.T @ u
            gradient = S * (pulled - (S * pulled).sum(1, keepdims=True))
            np.fill_diagonal(gradient, 0)
            v = v + np.float32(rate) * ((pull @ S).reshape(-1) @ flat) / samples
            A = A + np.float32(rate * speed) * gradient / samples

    return run


def torch_steps(state: Learning, steps: int) -> dict[str, Callable[[], object]]:
    """The network as one would write it in PyTorch, with automatic differentiation."""
    try:
        import torch
    except ImportError:
        return {}
    patches, labels, logits, value = (torch.tensor(a) for a in _plain(state))
    frozen = torch.eye(len(logits), dtype=torch.bool)
    nu, rate, speed = TRIAL.network.linear, TRIAL.descent.learning_rate, TRIAL.descent.attention_rate

    def run(threads: int) -> None:
        pin(threads)
        torch.set_num_threads(threads)
        A, v = logits.clone().requires_grad_(), value.clone().requires_grad_()
        for _ in range(steps):
            z = len(A) * (patches @ v) @ torch.softmax(A, 1).T
            loss = torch.nn.functional.softplus(-labels * (z**3 + nu * z).sum(1)).mean()
            by_logits, by_value = torch.autograd.grad(loss, (A, v))
            with torch.no_grad():
                A -= rate * speed * by_logits.masked_fill(frozen, 0)
                v -= rate * by_value
        pin(1)

    return {
        "PyTorch eager, one thread": lambda: run(1),
        "PyTorch eager, two threads": lambda: run(2),
    }


def recursion(steps: int) -> None:
    """Population descent as three numbers, 500 draws, in double precision."""
    descent = Descent(learning_rate=1e-3, stop="cap", steps=steps, logs=3, spacing="even")
    trial = IdealisedDescent(descent=descent, test_draws=10)
    train(trial, seed=0)
    began = time.perf_counter()
    train(trial, seed=0)
    seconds = time.perf_counter() - began
    print(f"three numbers  {1e6 * seconds / steps:8.2f} us a step: {steps:,} steps in {seconds:.1f} s")


if __name__ == "__main__":
    main()
