"""One step of the reference run of Figure 4 against NumPy and PyTorch eager, and the three-number recursion.

    python -m benchmarks.spatial_structure [--steps 2] [--rounds 20] [--recursion 1000000]

The reference run has 64 patches of dimension 32 and 8000 images: 65 MB of patches, which a plain step reads twice, once to
project them on the value vector and once for its gradient. The lab reads them once, in blocks that stay in the
cache. Every contestant has processes of its own, pinned to its cores before XLA starts, as the lab's workers are; times are
per step, the fastest of several rounds. NumPy has one core; PyTorch (which takes part if it is installed) one thread on
one core and two on two; the lab one worker, and two at once on a core each, as in a sweep: half of the slower one's time
is then what a step costs on both cores.
"""

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from lemmata.descent import train  # noqa: E402
from lemmata.studies.spatial_structure.network import activation, activation_slope, attention_scores  # noqa: E402
from lemmata.studies.spatial_structure.trials import (  # noqa: E402
    IdealisedDescent,
    Realistic,
    RealisticDescent,
    SlowAttention,
)
from lemmata.trial import random_key, with_precision  # noqa: E402

TRIAL = RealisticDescent()


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--steps", type=int, default=2)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--recursion", type=int, default=1_000_000)
    chosen = options.parse_args()
    times = {}
    for name, (stepper, cores) in CONTESTANTS.items():
        try:
            times[name] = fastest(stepper, cores, chosen.steps, chosen.rounds)
        except ModuleNotFoundError as missing:
            print(f"{name:26s} {missing}")
            continue
        print(
            f"{name:26s} {1e3 * times[name]:8.2f} ms a step   {times[name] / times['lab, one core']:5.2f} x the lab"
        )
    eager = [seconds for name, seconds in times.items() if name.startswith("PyTorch")]
    if eager:
        print(f"PyTorch's best over the lab on both cores: {min(eager) / times['lab, two workers']:.2f}")
    recursion(chosen.recursion)


def fastest(
    stepper: Callable[[Realistic], Callable], cores: Sequence[set[int]], steps: int, rounds: int
) -> float:
    """Seconds a step on all these cores: one process for each set of them, all at once, and the slowest one's fastest
    round over the number of processes."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(len(cores))
    with ProcessPoolExecutor(len(cores), context, _share, (ready,)) as pool:
        runs = [pool.submit(_worker, stepper, own, steps, rounds) for own in cores]
        return max(run.result() for run in runs) / len(cores)


def _share(ready) -> None:
    global _ready
    _ready = ready


def _worker(stepper: Callable[[Realistic], Callable], cores: set[int], steps: int, rounds: int) -> float:
    os.sched_setaffinity(0, cores)
    start = jax.jit(lambda trial, key: trial.start(key))
    advance = stepper(start(with_precision(TRIAL), random_key(TRIAL, 0)))
    advance(1)
    _ready.wait()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        advance(steps)
        times.append((time.perf_counter() - began) / steps)
    return min(times)


def lab_steps(state: Realistic) -> Callable[[int], object]:
    """Steps as the lab takes them: a compiled loop over lanes, one lane wide."""
    trial = jax.tree.map(lambda leaf: leaf[None], with_precision(TRIAL))
    lanes = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)

    @jax.jit
    def run(trial, lanes, count):
        body = jax.vmap(lambda one, s: one.step(s))
        return jax.lax.fori_loop(0, count, lambda _, s: body(trial, s), lanes).weights

    return lambda steps: jax.block_until_ready(run(trial, lanes, steps))


def _plain(state: Realistic) -> tuple[np.ndarray, ...]:
    labels = np.asarray(state.labels).reshape(-1)
    blocks, dimension, block, count = state.patches.shape
    patches = np.asarray(state.patches).transpose(0, 2, 3, 1).reshape(blocks * block, count, dimension)
    patches = np.ascontiguousarray(patches)
    return patches, labels, np.array(state.weights.logits), np.array(state.weights.value)


def numpy_steps(state: Realistic) -> Callable[[int], object]:
    """The same step with whole-sample matrix products."""
    patches, labels, logits, value = _plain(state)
    shape, rate, speed = TRIAL.shape, TRIAL.descent.learning_rate, TRIAL.descent.attention_rate
    flat, (samples, count, _) = patches.reshape(-1, patches.shape[-1]), patches.shape

    def run(steps: int) -> None:
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


def torch_steps(threads: int, state: Realistic) -> Callable[[int], object]:
    """The network as one would write it in PyTorch, with automatic differentiation."""
    import torch

    torch.set_num_threads(threads)
    patches, labels, logits, value = (torch.tensor(a) for a in _plain(state))
    frozen = torch.eye(len(logits), dtype=torch.bool)
    nu, rate, speed = TRIAL.network.linear, TRIAL.descent.learning_rate, TRIAL.descent.attention_rate

    def run(steps: int) -> None:
        A, v = logits.clone().requires_grad_(), value.clone().requires_grad_()
        for _ in range(steps):
            z = len(A) * (patches @ v) @ torch.softmax(A, 1).T
            loss = torch.nn.functional.softplus(-labels * (z**3 + nu * z).sum(1)).mean()
            by_logits, by_value = torch.autograd.grad(loss, (A, v))
            with torch.no_grad():
                A -= rate * speed * by_logits.masked_fill(frozen, 0)
                v -= rate * by_value

    return run


CONTESTANTS = {
    "lab, one core": (lab_steps, [{0}]),
    "lab, two workers": (lab_steps, [{0}, {1}]),
    "NumPy, one core": (numpy_steps, [{0}]),
    "PyTorch eager, one thread": (partial(torch_steps, 1), [{0}]),
    "PyTorch eager, two threads": (partial(torch_steps, 2), [{0, 1}]),
}


def recursion(steps: int) -> None:
    """Population descent as three numbers, 500 draws, in double precision."""
    trial = IdealisedDescent(descent=SlowAttention(1e-3, 1.0, steps=steps, logs=3), test_draws=10)
    train(trial, seed=0)
    began = time.perf_counter()
    train(trial, seed=0)
    seconds = time.perf_counter() - began
    print(f"three numbers  {1e6 * seconds / steps:8.2f} us a step: {steps:,} steps in {seconds:.1f} s")


if __name__ == "__main__":
    main()
