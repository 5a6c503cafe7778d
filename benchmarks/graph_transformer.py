"""One SGD step of the graph transformer, its node sets drawn anew: the lab's step against PyTorch eager, PyTorch Geometric, the
matrix-multiply peak of one core and the memory floor.

    python -m benchmarks.graph_transformer [--steps 20] [--rounds 5]

One step is: a batch of 64 labelled nodes of a graph of 1000, for each a set of 60 nodes at distances 1 and 2 without
replacement, the gradient of the hinge loss of 400 neurons, and the update. PyTorch draws its sets by the largest of random
numbers, which is its usual way; PyTorch Geometric's way makes an edge of every node of a set and sums over edges with its
softmax and scatter. The memory floor is NumPy gathering what a step must read at random: members, distances and tokens of the
sets. Times are the fastest of several rounds that take turns.
"""

import argparse
import sys
from collections.abc import Callable

from benchmarks.timing import fastest, matrix_peak, pin, torch_on

pin(1)

import jax  # noqa: E402
import numpy as np  # noqa: E402

from lemmata.guard import double  # noqa: E402
from lemmata.studies.graph_transformer.figures import template  # noqa: E402
from lemmata.studies.graph_transformer.network import slope  # noqa: E402
from lemmata.studies.graph_transformer.trials import GraphTraining  # noqa: E402
from lemmata.trial import random_key, with_precision  # noqa: E402

TRIAL = template()
BATCH, SET, DIM, NEURONS = 64, 61, 20, 400
# Neurons forward and backward (three products), values and queries, and four passes over the tokens of a set.
FLOPS = BATCH * (3 * 2 * DIM * NEURONS + 6 * 2 * DIM * DIM + 4 * 2 * SET * DIM)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    with double():
        trial = with_precision(TRIAL)
        state = jax.jit(lambda one, key: one.start(key))(trial, random_key(TRIAL, 0))
    contestants = (
        {
            "peak": matrix_peak(),
            "lab": lab_steps(trial, state, chosen.steps),
            "lab, the gradient alone": lab_slopes(trial, state, chosen.steps),
            "memory floor": gathers(state, chosen.steps),
        }
        | lab_draws(trial, state, chosen.steps)
        | torch_steps(state, chosen.steps)
    )
    report(fastest(contestants, chosen.rounds), chosen.steps)


def report(times: dict[str, float], steps: int) -> None:
    peak = 2 * 1500**3 / times.pop("peak") / 1e9
    print(
        f"one step: batch {BATCH}, sets of {SET}, {NEURONS} neurons, 1000 nodes; peak of one core {peak:.0f} GFLOP/s"
    )
    each = {name: seconds / steps for name, seconds in times.items()}
    floor = each.pop("memory floor")
    for name in DRAWS:
        print(f"{name:32s} {each.pop(name) * 1e3:7.3f} ms")
    print(f"memory floor {floor * 1e3:.3f} ms, {floor / each['lab']:.0%} of the lab's step")
    for name, seconds in each.items():
        rate = FLOPS / seconds / 1e9
        print(f"{name:32s} {seconds * 1e3:7.3f} ms {rate:6.1f} GFLOP/s {rate / peak:5.0%} of the peak")
    peers = [seconds for name, seconds in each.items() if name.startswith("PyTorch")]
    if peers:
        print(f"against PyTorch's best: {min(peers) / each['lab']:.1f} times faster")
    else:
        print("PyTorch is not installed here: no comparison (pip install torch).", file=sys.stderr)


def lab_steps(trial: GraphTraining, state, steps: int) -> Callable[[], object]:
    run = jax.jit(lambda state: jax.lax.fori_loop(0, steps, lambda _, one: trial.step(one), state).fit.params)

    def work() -> object:
        with double():
            return jax.block_until_ready(run(state))

    return work


def lab_slopes(trial: GraphTraining, state, steps: int) -> Callable[[], object]:
    """Gradient and update on sets drawn once: what is left when nothing is sampled."""
    nodes, batch = state.world.nodes, state.data[:BATCH]
    with double():
        seen = jax.jit(lambda: trial.seen(batch, state.world, jax.random.key(0)))()

    def step(_, weights):
        _, moved = slope(weights, state.world.signs, nodes.features[batch], seen, nodes.label[batch])
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, moved)

    run = jax.jit(lambda weights: jax.lax.fori_loop(0, steps, step, weights))

    def work() -> object:
        with double():
            return jax.block_until_ready(run(state.params))

    return work


DRAWS = ("lab, drawing the sets alone", "lab, the order of labels alone")


def lab_draws(trial: GraphTraining, state, steps: int) -> dict[str, Callable[[], object]]:
    """What a step draws: the sets of a batch with their tokens, and the labelled nodes of the batch."""
    way, batch = jax.random.wrap_key_data(state.key), state.data[:BATCH]

    def sets(step, total):
        found = trial.seen(batch, state.world, jax.random.fold_in(way, step))
        return total[0] + found.tokens, total[1] + found.distance

    def order(step, total):
        return total + trial.batch(way, step, state.data, state.world)

    def looped(part: Callable, like) -> Callable[[], object]:
        run = jax.jit(lambda total: jax.lax.fori_loop(0, steps, part, total))

        def work() -> object:
            with double():
                return jax.block_until_ready(run(like))

        return work

    begun = (
        (np.zeros((BATCH, SET, DIM), np.float32), np.zeros((BATCH, SET), np.int32)),
        np.zeros(BATCH, np.int32),
    )
    return {name: looped(part, like) for name, part, like in zip(DRAWS, (sets, order), begun, strict=True)}


def gathers(state, steps: int) -> Callable[[], object]:
    """The random reads of a step and nothing else."""
    rng, nodes = np.random.default_rng(0), state.world.nodes
    members, distance, features = (
        np.array(part).reshape(-1, width)
        for part, width in ((nodes.lists.members, 1), (nodes.distance, 1), (nodes.features, DIM))
    )
    row = rng.integers(0, TRIAL.data.nodes, (BATCH, 1)) * TRIAL.data.nodes
    places = row + rng.integers(0, 500, (steps, BATCH, SET))

    def work() -> None:
        for place in places:
            found = members.take(place)
            distance.take(row + found)
            features.take(found, axis=0)

    return work


def torch_steps(state, steps: int) -> dict[str, Callable[[], object]]:
    try:
        import torch
    except ModuleNotFoundError:
        return {}
    nodes = state.world.nodes
    features, signs = (torch.from_numpy(np.array(part)) for part in (nodes.features, state.world.signs))
    distance = torch.from_numpy(np.array(nodes.distance)).long()
    near = ((distance == 1) | (distance == 2)).float()
    label, order = (torch.from_numpy(np.array(part)).long() for part in (nodes.label, state.data))
    start = [torch.from_numpy(np.array(part)) for part in state.params]

    def plainly(tokens, asking, away, query, key, bias):
        logits = ((tokens @ key.T) @ (asking @ query.T)[:, :, None])[..., 0] + bias[away]
        return (torch.softmax(logits, 1)[:, None, :] @ tokens)[:, 0]

    def by_edges(tokens, asking, away, query, key, bias):
        ends, tokens = torch.arange(BATCH).repeat_interleave(SET), tokens.flatten(0, 1)
        logits = ((tokens @ key.T) * (asking @ query.T)[ends]).sum(1) + bias[away.flatten()]
        weight = geometric.softmax(logits, ends, num_nodes=BATCH)
        return geometric.scatter(weight[:, None] * tokens, ends, 0, BATCH)

    def work(mix: Callable) -> None:
        weights = [part.clone().requires_grad_() for part in start]
        for _ in range(steps):
            query, key, value, hidden, bias = weights
            batch = order[torch.randperm(TRIAL.data.labelled)[:BATCH]]
            chosen = (torch.rand(BATCH, TRIAL.data.nodes) * near[batch]).topk(SET - 1).indices
            members = torch.cat([batch[:, None], chosen], 1)
            away = distance[batch[:, None], members]
            mixed = mix(features[members], features[batch], away, query, key, bias)
            output = torch.relu(mixed @ value.T @ hidden) @ signs
            loss = torch.relu(1 - label[batch] * output).mean()
            slopes = torch.autograd.grad(loss, weights)
            with torch.no_grad():
                weights = [(w - 0.1 * g).requires_grad_() for w, g in zip(weights, slopes, strict=True)]

    def on(threads: int, mix: Callable) -> Callable[[], object]:
        return torch_on(threads, lambda: work(mix))

    found = {"PyTorch eager, one thread": on(1, plainly), "PyTorch eager, two threads": on(2, plainly)}
    try:
        import torch_geometric.utils as geometric
    except ModuleNotFoundError:
        return found
    return found | {"Geometric, one thread": on(1, by_edges), "Geometric, two threads": on(2, by_edges)}


if __name__ == "__main__":
    main()
