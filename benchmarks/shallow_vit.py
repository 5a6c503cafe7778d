"""One SGD step of the shallow vision transformer: the lab's step against PyTorch eager and against the
matrix-multiply peak of one core.

    python -m benchmarks.shallow_vit [--runs 8] [--steps 5]

One step is: the gradient of the hinge loss over a batch of 32 samples (100 tokens, dimension 10, 1000
neurons), and the update. Times are per run and step, averaged over the runs, the fastest of several rounds
that take turns, so that a busy machine slows all of them alike. The peak is that of a 1500 x 1500
single-precision product. A line says how many cores it uses; the lab uses two as its pool does, with one run
on each at a time, PyTorch as it does by itself, with two threads for one run.
"""

import argparse
import sys
from collections.abc import Callable

from benchmarks.timing import CORES, fastest, matrix_peak, pin, side_by_side, torch_on

pin(1)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from lemmata.descent import Descent, hinge_loss  # noqa: E402
from lemmata.guard import double  # noqa: E402
from lemmata.studies.shallow_vit.data import TokenData  # noqa: E402
from lemmata.studies.shallow_vit.network import Network  # noqa: E402
from lemmata.studies.shallow_vit.trials import ViTTraining  # noqa: E402
from lemmata.trial import random_key, with_precision  # noqa: E402

BATCH, TOKENS, DIM, NEURONS = 32, 100, 10, 1000
# Three products of token-by-neuron arrays with the hidden weights, four of attention maps with token vectors.
FLOPS = BATCH * (3 * 2 * TOKENS * NEURONS * DIM + 4 * 2 * TOKENS * TOKENS * DIM)

TRIAL = ViTTraining(
    data=TokenData(samples=BATCH, tokens=TOKENS, dim=DIM, relevant_fraction=0.5, confusion_fraction=0.05),
    network=Network(neurons=NEURONS),
    descent=Descent(learning_rate=1.0, loss="hinge", batches="full", stop="cap"),
)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--runs", type=int, default=8)
    options.add_argument("--steps", type=int, default=5)
    options.add_argument("--rounds", type=int, default=7)
    chosen = options.parse_args()
    states = start(chosen.runs)
    contestants = {
        "peak": matrix_peak(),
        "lab, one core": lab_steps(chosen.runs, chosen.steps),
        "vmap and autodiff, one core": jax_step(states, chosen.steps, all_at_once),
    } | torch_steps(states, chosen.steps)
    if len(CORES) > 1:
        contestants["lab, two cores"] = side_by_side(lab_steps, chosen.runs, chosen.steps, cores=CORES[:2])
    times = fastest(contestants, chosen.rounds)
    if "lab, two cores" in times:
        times["lab, two cores"] /= 2  # each of the two did the same number of steps
    report(times, chosen.runs * chosen.steps)


def start(runs: int):
    with double():
        keys = jnp.stack([random_key(TRIAL, seed) for seed in range(runs)])
        return jax.vmap(with_precision(TRIAL).start)(keys)


def lab_steps(runs: int, steps: int) -> Callable[[], object]:
    return jax_step(start(runs), steps, one_by_one)


def report(times: dict[str, float], count: int) -> None:
    peak = 2 * 1500**3 / times.pop("peak") / 1e9
    print(f"one step of one run: batch {BATCH}, {TOKENS} tokens, dimension {DIM}, {NEURONS} neurons")
    print(f"{'matrix-multiply peak of one core':34s} {peak:17.0f} GFLOP/s")
    each = {name: seconds / count for name, seconds in times.items()}
    for name, seconds in each.items():
        rate = FLOPS / seconds / 1e9
        print(f"{name:34s} {seconds * 1e3:6.2f} ms {rate:7.1f} GFLOP/s {rate / peak:5.0%} of one core's peak")
    peers = {name: seconds for name, seconds in each.items() if name.startswith("PyTorch")}
    if peers:
        one, all_cores = each["lab, one core"], min(s for name, s in each.items() if name.startswith("lab"))
        print(f"one core against one thread:  {peers['PyTorch eager, one thread'] / one:.2f} times faster")
        print(f"all cores against its best:   {min(peers.values()) / all_cores:.2f} times faster")
    else:
        print("PyTorch is not installed here: no comparison (pip install torch).", file=sys.stderr)


# JAX --------------------------------------------------------------------------------------------------------


def jax_step(states, steps: int, step: Callable) -> Callable[[], object]:
    with double():
        trial = with_precision(TRIAL)

    @jax.jit
    def train(weights):
        def body(_, weights):
            return step(trial, states, weights)

        return jax.lax.fori_loop(0, steps, body, weights)

    def work() -> object:
        with double():
            return jax.block_until_ready(train(states.params))

    return work


def updated(weights, gradient):
    return jax.tree.map(lambda w, g: w - TRIAL.descent.learning_rate * g, weights, gradient)


def one_by_one(trial, states, weights):
    """What the lab does: runs one after another, samples one after another, one token-by-neuron array at a
    time."""

    def run(given):
        one, data, world, key = given
        return updated(one, trial.slope(one, data, world, key)[1])

    return jax.lax.map(run, (weights, states.data, states.world, states.key))


def all_at_once(trial, states, weights):
    """The same mathematics the usual way: a plain ReLU, automatic differentiation, `vmap` over runs and
    samples."""

    def run(one, votes, data):
        def objective(w):
            def loss(sample):
                attention = trial.network.attend(trial.network.fold(w), sample)[0]
                active = jax.nn.relu(attention @ (sample.tokens @ w.value[0].T) @ w.hidden)
                return hinge_loss(sample.label[0] * jnp.sum(active * votes[..., 0]) / TOKENS)

            return jnp.mean(jax.vmap(loss)(data))

        return updated(one, jax.grad(objective)(one))

    return jax.vmap(run)(weights, states.world.votes, states.data)


# PyTorch ----------------------------------------------------------------------------------------------------


def torch_steps(states, steps: int) -> dict[str, Callable[[], object]]:
    try:
        import torch
    except ModuleNotFoundError:
        return {}

    def tensor(array) -> "torch.Tensor":
        return torch.from_numpy(np.array(array))

    runs = [
        {
            "query": tensor(states.params.query[n, 0]),
            "key": tensor(states.params.key[n, 0]),
            "value": tensor(states.params.value[n, 0]),
            "hidden": tensor(states.params.hidden[n]),
            "votes": tensor(states.world.votes[n, ..., 0]),
            "tokens": tensor(states.data.tokens[n]),
            "label": tensor(states.data.label[n, :, 0]),
        }
        for n in range(states.step.shape[0])
    ]

    def work() -> None:
        for run in runs:
            names = ("query", "key", "value", "hidden")
            weights = [run[name].clone().requires_grad_() for name in names]
            for _ in range(steps):
                query, key, value, hidden = weights
                x = run["tokens"]
                attention = torch.softmax((x @ query.T) @ (x @ key.T).transpose(1, 2), dim=-1)
                active = torch.relu((attention @ (x @ value.T)) @ hidden)
                margin = run["label"] * (active * run["votes"]).sum(dim=(1, 2)) / TOKENS
                loss = torch.relu(1 - margin).mean()
                slopes = torch.autograd.grad(loss, weights)
                with torch.no_grad():
                    weights = [(w - g).requires_grad_() for w, g in zip(weights, slopes, strict=True)]

    two = {"PyTorch eager, two threads": torch_on(2, work)} if len(CORES) > 1 else {}
    return {"PyTorch eager, one thread": torch_on(1, work)} | two


if __name__ == "__main__":
    main()
