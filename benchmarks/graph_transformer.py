"""One SGD step of the graph transformer at the reference setting (1000 nodes, sets of 60, batch 64, 400 neurons), its node sets
drawn anew, and Figure 3.3 (a).

Peers are given their sets; the extra lines have PyTorch draw them too, by the largest of random numbers, and PyTorch
Geometric's way, which makes an edge of every node of a set and sums over edges with its softmax and scatter. What a step of
the lab has beyond its gradient: drawing 3840 places without replacement and gathering what they name, the order of the labels,
the keys and the update. The gradient is short products of 20 columns, which do not reach the peak of a large one. By `patterns`
a set is how often each of ten patterns is at each of five distances, which is the same training where features have no noise.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers import lab
from benchmarks.timing import Contestant, in_turns, torch_on
from benchmarks.workload import (
    Arrays,
    Command,
    Measure,
    Plain,
    Simulator,
    Step,
    Work,
    Workload,
    batch_keys,
    changed,
)
from lemmata.studies.graph_transformer.figures import template
from lemmata.studies.graph_transformer.network import slope_of_sets
from lemmata.studies.graph_transformer.trials import GraphTraining
from lemmata.threefry import key_of, new_key
from lemmata.trial import put_all, random_key, with_precision


def trial(steps: int, nodes: int, batch: int, sampled: int, neurons: int) -> GraphTraining:
    """The graph's degrees, labels and tests are in proportion to its nodes. It learns so slowly that every node keeps losing
    something: the lab leaves the others out of the gradient, and a trained network has few that are left."""
    sizes = {"data.nodes": nodes, "descent.batch": batch, "sampled": sampled, "network.neurons": neurons}
    share = {"data.labelled": 400, "data.degree": 120, "data.inner_degree": 60, "tested": 200}
    scaled = {path: max(4, value * nodes // 1000) for path, value in share.items()}
    endless = {"descent.steps": steps, "descent.logs": 2, "descent.learning_rate": 1e-4}
    return put_all(template(), {**sizes, **scaled, **endless})


def plain(trial: GraphTraining, key: Any, state: Any, count: int) -> Plain:
    way, numbers = batch_keys(state, count)
    nodes = state.world.nodes

    @jax.jit
    def seen(number: Any) -> Arrays:
        batch = trial.batch(way, number, state.data, state.world)
        own = jax.random.fold_in(jax.random.fold_in(way, number), 1)  # the key of a step's own choices
        sets = trial.seen(batch, state.world, own)
        label = nodes.label[batch].astype(nodes.features.dtype)
        return {"asking": nodes.features[batch], "label": label, "signs": state.world.signs, **sets._asdict()}

    weights = state.params._asdict()
    rates = dict.fromkeys(weights, float(trial.descent.learning_rate))
    return Plain(weights, [seen(number) for number in numbers], rates)


def jax_loss(weights: Arrays, batch: Arrays) -> Any:
    x = batch["tokens"]
    asked = (batch["asking"] @ weights["query"].T)[:, :, None]
    logits = ((x @ weights["key"].T) @ asked)[..., 0] + weights["bias"][batch["distance"]]
    share = jax.nn.softmax(jnp.where(batch["many"] > 0, logits, -jnp.inf), axis=1)
    mixed = (share[:, None] @ x)[:, 0]
    output = jax.nn.relu(mixed @ weights["value"].T @ weights["hidden"]) @ batch["signs"]
    return jnp.mean(jax.nn.relu(1 - batch["label"] * output))


def torch_loss(weights: Arrays, batch: Arrays) -> Any:
    import torch

    x = batch["tokens"]
    asked = (batch["asking"] @ weights["query"].T)[:, :, None]
    logits = ((x @ weights["key"].T) @ asked)[..., 0] + weights["bias"][batch["distance"].long()]
    share = torch.softmax(torch.where(batch["many"] > 0, logits, -torch.inf), dim=1)
    mixed = (share[:, None] @ x)[:, 0]
    output = torch.relu(mixed @ weights["value"].T @ weights["hidden"]) @ batch["signs"]
    return torch.relu(1 - batch["label"] * output).mean()


DIM, PATTERNS, BUCKETS = (getattr(template().data, name) for name in ("dim", "patterns", "buckets"))


def work(nodes: int, batch: int, sampled: int, neurons: int) -> Work:
    """Neurons forward and backward (three products), values and queries, and four passes over the tokens of a set; a set is
    gathered from the lists of members, distances and features. A random word for every node of a set and for every node of the
    batch, an exponential for every slot. All of it is counted for all nodes, and all lose something (see `trial`)."""
    dim, held = DIM, sampled + 1
    operations = batch * (6 * dim * neurons + 12 * dim**2 + 8 * held * dim)
    return Work(
        operations,
        4 * batch * held * (2 + dim) + 8 * dim * neurons,
        words=batch * (sampled + 1),
        exponentials=batch * held,
    )


def pattern_work(nodes: int, batch: int, sampled: int, neurons: int) -> Work:
    """The same, but that attention and its four passes are over patterns at distances, however large the sets; these are
    drawn and counted, and the members and distances of their nodes are what is gathered."""
    dim, held, kinds = DIM, sampled + 1, BUCKETS * PATTERNS
    return Work(
        batch * (6 * dim * neurons + 12 * dim**2 + 8 * kinds * dim),
        4 * batch * (2 * held + kinds) + 4 * PATTERNS * dim + 8 * dim * neurons,
        words=batch * (sampled + 1),
        exponentials=batch * kinds,
    )


# With sets that peers draw themselves ------------------------------------------------------------------------------------


GRADIENT, SETS, ORDER = "gradient and update alone", "drawing the sets alone", "order of the labels alone"


def extra(paper: bool) -> dict[str, Measure]:
    one = template()
    given = with_precision(one)
    state = jax.jit(lambda trial, key: trial.start(key))(given, random_key(one, 0))
    contestants = {
        "lab": lab(put_all(one, {"descent.steps": 1_000_000, "descent.logs": 2})),
        GRADIENT: gradients(given, state),
        **draws(given, state),
        **drawing_peers(one, state),
    }
    times = {name: t.best for name, t in in_turns(contestants, 5).items()}
    alone = (GRADIENT, SETS, ORDER)
    found = {f"{what}, of the lab's step": Measure(times[what] / times["lab"], "") for what in alone}
    for who in ("PyTorch", "PyTorch Geometric"):
        both = [times[name] for name in times if name.startswith(f"{who},")]
        if both:
            found[f"{who} eager with its own draws, best of one and two threads, over the lab"] = Measure(
                min(both) / times["lab"], "times", "5" if who == "PyTorch" else ""
            )
    return found


def gradients(trial: GraphTraining, state: Any) -> Contestant:
    """What is left of a step when nothing is sampled."""
    nodes, batch = state.world.nodes, state.data[: trial.descent.batch]
    sets = jax.jit(lambda: trial.sets(batch, state.world, new_key(0)))()

    def step(_: Any, weights: Any) -> Any:
        _, moved = slope_of_sets(weights, state.world.signs, batch, sets, nodes.label)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, moved)

    run = jax.jit(lambda weights, count: jax.lax.fori_loop(0, count, step, weights))
    return Contestant(lambda count: jax.block_until_ready(run(state.params, count)))


def draws(trial: GraphTraining, state: Any) -> dict[str, Contestant]:
    """What a step draws: the sets of a batch, and the labelled nodes of the batch."""
    way, batch = key_of(state.key), state.data[: trial.descent.batch]

    def sets(number: Any) -> Any:
        found = trial.sets(batch, state.world, jax.random.fold_in(way, number))
        return found.members, found.distance

    def looped(drawn: Callable[[Any], Any]) -> Contestant:
        def added(number: Any, total: Any) -> Any:
            return jax.tree.map(jnp.add, total, drawn(number))

        run = jax.jit(lambda total, count: jax.lax.fori_loop(0, count, added, total))
        begun = jax.tree.map(jnp.zeros_like, drawn(0))
        return Contestant(lambda count: jax.block_until_ready(run(begun, count)))

    return {
        SETS: looped(sets),
        ORDER: looped(lambda number: trial.batch(way, number, state.data, state.world)),
    }


def drawing_peers(trial: GraphTraining, state: Any) -> dict[str, Contestant]:
    import torch

    size, held, nodes = trial.descent.batch, trial.sampled + 1, state.world.nodes
    features, signs = (torch.from_numpy(np.array(part)) for part in (nodes.features, state.world.signs))
    distance = torch.from_numpy(np.array(nodes.distance)).long()
    near = ((distance == 1) | (distance == 2)).float()
    label, order = (torch.from_numpy(np.array(part)).long() for part in (nodes.label, state.data))
    start = {name: torch.from_numpy(np.array(part)) for name, part in state.params._asdict().items()}

    def by_edges(weights: Arrays, batch: Arrays) -> Any:
        import torch_geometric.utils as geometric

        ends, tokens = torch.arange(size).repeat_interleave(held), batch["tokens"].flatten(0, 1)
        logits = ((tokens @ weights["key"].T) * (batch["asking"] @ weights["query"].T)[ends]).sum(1)
        share = geometric.softmax(logits + weights["bias"][batch["distance"].flatten()], ends, num_nodes=size)
        mixed = geometric.scatter(share[:, None] * tokens, ends, 0, size)
        output = torch.relu(mixed @ weights["value"].T @ weights["hidden"]) @ batch["signs"]
        return torch.relu(1 - batch["label"] * output).mean()

    def drawn() -> Arrays:
        batch = order[torch.randperm(trial.data.labelled)[:size]]
        chosen = (torch.rand(size, trial.data.nodes) * near[batch]).topk(held - 1).indices
        members = torch.cat([batch[:, None], chosen], 1)
        away = distance[batch[:, None], members]
        there = torch.ones(size, held)
        sets = {"tokens": features[members], "distance": away, "many": there}
        return {"asking": features[batch], "label": label[batch], "signs": signs, **sets}

    def steps(loss: Callable[[Arrays, Arrays], Any]) -> Callable[[int], object]:
        def work(count: int) -> None:
            weights = {name: part.clone().requires_grad_() for name, part in start.items()}
            for _ in range(count):
                slopes = torch.autograd.grad(loss(weights, drawn()), list(weights.values()))
                with torch.no_grad():
                    for part, moved in zip(weights.values(), slopes, strict=True):
                        part.sub_(moved, alpha=0.1)

        return work

    ways = {"PyTorch": torch_loss} | (
        {"PyTorch Geometric": by_edges} if find_spec("torch_geometric") is not None else {}
    )
    return {
        f"{who}, {threads}": Contestant(torch_on(threads, steps(loss)))
        for who, loss in ways.items()
        for threads in (1, 2)
    }


SIZES = {"nodes": 1000, "batch": 64, "sampled": 60, "neurons": 400}
GROWTH = {
    "nodes": (500, 1000, 2000),
    "batch": (64, 128, 256),
    "sampled": (30, 60, 120),
    "neurons": (400, 1600, 6400),
}
BY_PATTERNS = {"simulator": "patterns", "data.feature_noise": 0.0}

WORKLOAD = Workload(
    about=__doc__ or "",
    figure="graph-transformer/fig3-3a",
    short=Command(("--scale", "quick", "--seeds", "1"), sizes={"nodes": 500, "batch": 32, "neurons": 200}),
    paper=Command(("--scale", "paper")),
    step=Step(
        trial=trial,
        sizes=SIZES,
        tiny={"nodes": 100, "batch": 8, "sampled": 6, "neurons": 16},
        plain=plain,
        jax_loss=jax_loss,
        torch_loss=torch_loss,
        work=work,
        growth=GROWTH,
        runs=4,
        simulator="nodes",
        others={"patterns": Simulator(changed(trial, BY_PATTERNS), SIZES, pattern_work, GROWTH)},
    ),
    extra=extra,
)
