"""A step of the three-layer graph convolution at width 500 with 1500 labels, the graph sampled anew, and Figure 5.1.

A step costs what the batch looks at, not what the graph has: growth over nodes goes to a million. Peers are given the small
dense matrices of the batch's field and its dropout, cut out beforehand; the extra lines have PyTorch make them, from sparse
matrices of the whole graph, as a plain program has them, and from rows that it cuts out of these in every step. By `whole` the
lab computes every node in every step, with dense matrices of the graph, and is measured on smaller ones.
"""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sparse

from benchmarks.peers import lab
from benchmarks.timing import Contestant, in_turns, torch_on
from benchmarks.workload import Arrays, Command, Measure, Plain, Simulator, Step, Work, Workload, changed
from lemmata.parts.graphs import adjacency, normalised
from lemmata.studies.gcn_sampling.data import DegreeGroups
from lemmata.studies.gcn_sampling.network.fields import hidden, in_field, matrix, rooms_for
from lemmata.studies.gcn_sampling.trials import Training
from lemmata.studies.gcn_sampling.trials.samplers import factors
from lemmata.threefry import key_of
from lemmata.trial import put_all

BATCH, FEATURES, LABELS, SIZES = 5, 10, 1500, (100, 1900)


def trial(steps: int, nodes: int, width: int, high_degree: int) -> Training:
    """A twentieth of the nodes has the high degree, the others degree 1."""
    graph = DegreeGroups(degrees=(high_degree, 1), sizes=(nodes // 20, nodes - nodes // 20))
    labels = min(LABELS, nodes // 2)
    return put_all(
        Training(graph=graph, labels=labels),
        {"width": width, "budget": steps, "descent.steps": steps, "descent.logs": 2},
    )


def plain(trial: Training, key: Any, state: Any, count: int) -> Plain:
    """The field of each batch as matrices; those of a small field may be filled up with zeros to be like others."""
    weights = state.weights
    frozen = {"readout": weights.readout, "bias1": weights.bias1, "bias2": weights.bias2}
    batches = [{**_field(trial, state, number), **frozen} for number in range(count)]
    rate = float(trial.descent.learning_rate)
    return Plain({"w1": weights.w1, "w2": weights.w2}, batches, {"w1": rate, "w2": rate})


def _field(trial: Training, state: Any, number: int) -> dict[str, np.ndarray]:
    """What the step of this number draws, and where it looks, as `Training.step` and `Training.objective` do."""
    world, graph = state.world, state.world.graph
    way = key_of(state.key)
    of_batch, own = jax.random.split(jax.random.fold_in(way, number))
    of_graph, _, of_dropout = jax.random.split(own, 3)
    batch = world.order[jax.random.randint(of_batch, (trial.descent.batch,), 0, trial.labels)]
    widest = max(trial.graph.degrees) + 1
    rooms = rooms_for(trial.descent.batch, widest, trial.graph.nodes)
    middle = np.asarray(in_field(graph, batch, widest, rooms[-1:], lambda field: field.middle))
    middle = middle[middle < trial.graph.nodes]
    below = int(np.asarray(graph.count)[middle].sum())
    room = next((r for r in rooms[:-1] if len(middle) <= r.middle and below <= r.lower), rooms[-1])

    def seen(field: Any) -> Arrays:
        sampled = factors(trial.sampler, of_graph, field, graph, trial.sampling())
        given = world.features[jnp.minimum(field.first.column, trial.graph.nodes - 1)]
        ones, keys = jnp.ones((1, trial.width), trial.dtype), jax.random.split(of_dropout)
        many, most = field.middle.shape[0], field.lower.shape[0]
        return {
            "third": matrix(field.third, sampled.third, many),
            "second": matrix(field.second, sampled.second, most),
            "below": jnp.einsum("us,usf->uf", field.first.weight * sampled.first, given),
            "kept1": hidden(jnp.repeat(ones, most, 0), trial.dropout, keys[0]),
            "kept2": hidden(jnp.repeat(ones, many, 0), trial.dropout, keys[1]),
            "labels": world.labels[batch],
        }

    found = in_field(graph, batch, widest, (room,), seen)
    return {name: np.asarray(part) for name, part in found.items()}


def jax_loss(weights: Arrays, batch: Arrays) -> Any:
    first = jax.nn.relu(batch["below"] @ weights["w1"] + batch["bias1"]) * batch["kept1"]
    second = jax.nn.relu(batch["second"] @ first @ weights["w2"] + batch["bias2"]) * batch["kept2"]
    errors = (batch["third"] @ (second @ batch["readout"]) - batch["labels"]) ** 2
    return jnp.mean(jnp.sum(errors, axis=1)) / 2


def torch_loss(weights: Arrays, batch: Arrays) -> Any:
    import torch

    first = torch.relu(batch["below"] @ weights["w1"] + batch["bias1"]) * batch["kept1"]
    second = torch.relu(batch["second"] @ first @ weights["w2"] + batch["bias2"]) * batch["kept2"]
    errors = (batch["third"] @ (second @ batch["readout"]) - batch["labels"]) ** 2
    return errors.sum(dim=1).mean() / 2


def work(nodes: int, width: int, high_degree: int) -> Work:
    """With mean degree d and that of a neighbour e: b (1 + d) nodes below the batch, b (1 + d + d e) below those; W, V and
    their derivatives there, and the weights read, moved and written. Rows of the sampled matrices are sparse: a node below the
    batch adds up itself and its neighbours. Dropout takes a random word for every entry of both hidden layers."""
    mean = (high_degree + 19) / 20
    neighbour = (high_degree**2 + 19) / 20 / mean
    middle, lower = BATCH * (1 + mean), BATCH * (1 + mean + mean * neighbour)
    slots = BATCH * (1 + mean + mean * (1 + neighbour))  # entries of the rows of the nodes below the batch
    operations = 4 * lower * FEATURES * width + 6 * middle * width**2 + 4 * slots * width
    return Work(operations, 4 * 4 * width * (width + FEATURES), words=(middle + lower) * width)


def whole_work(nodes: int, width: int, high_degree: int) -> Work:
    """The same with all nodes in both layers. Rows of the graph are sparse here, too, where the lab makes dense matrices of
    them: their products are no part of the formulas."""
    slots = nodes * (1 + (high_degree + 19) / 20)
    operations = 4 * nodes * FEATURES * width + 6 * nodes * width**2 + 4 * slots * width
    touched = 4 * 4 * width * (width + FEATURES) + 4 * nodes * (FEATURES + 4 * width)
    return Work(operations, touched, words=2 * nodes * width)


# Against PyTorch with sparse matrices ------------------------------------------------------------------------------------


def extra(paper: bool) -> dict[str, Measure]:
    one = trial(1_000_000, sum(SIZES), 500, 10)
    contestants = {
        "lab": lab(one),
        "sparse matrices of the whole graph": Contestant(torch_on(1, eager(whole=True))),
        "rows cut out in every step": Contestant(torch_on(1, eager(whole=False))),
    }
    times = in_turns(contestants, 3)
    return {
        f"PyTorch eager with {name}, over the lab": Measure(
            times[name].best / times["lab"].best, "times", "5" if "sparse" in name else ""
        )
        for name in list(contestants)[1:]
    }


def eager(whole: bool):
    """The same training in PyTorch: dropout 0.4, 0.9 of each group sampled, SGD, width 500."""
    import torch

    warnings.filterwarnings("ignore", message="Sparse")  # sparse rows are called a beta there
    rng, nodes, width = np.random.default_rng(0), sum(SIZES), 500
    stubs = rng.permutation(np.repeat(np.arange(nodes), np.repeat((10, 1), SIZES)))
    graph = normalised(adjacency(stubs[: len(stubs) // 2 * 2].reshape(-1, 2), nodes))
    scale = np.repeat((0.7, 0.3), SIZES) / 0.9
    x, y = (torch.tensor(rng.normal(size=(nodes, k)).astype(np.float32)) for k in (FEATURES, 2))
    w = torch.nn.Parameter(torch.randn(FEATURES, width) / width**0.5)
    v = torch.nn.Parameter(torch.randn(width, width) / width**0.5)
    c, b1, b2 = torch.randn(width, 2), *(torch.randn(width) / width**0.5 for _ in range(2))
    optimiser = torch.optim.SGD([w, v], lr=1e-3)

    def tensor(part: sparse.csr_array) -> torch.Tensor:
        parts = part.indptr, part.indices, part.data.astype(np.float32)
        return torch.sparse_csr_tensor(*map(torch.tensor, parts), size=part.shape)

    def matrices(batch: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        factor = np.zeros(nodes)
        for start, size in ((0, SIZES[0]), SIZES):
            factor[start + rng.choice(size, round(0.9 * size), replace=False)] = 1
        sampled = sparse.csr_array(graph @ sparse.diags_array(factor * scale))
        if whole:
            full = tensor(sampled)
            return tensor(sampled[batch]), full, full, x
        top = sampled[batch]
        middle = np.unique(top.indices)
        second = sampled[middle]
        lower = np.unique(second.indices)
        first = sampled[lower]
        inputs = np.unique(first.indices)
        return tensor(top[:, middle]), tensor(second[:, lower]), tensor(first[:, inputs]), x[inputs]

    def run(count: int) -> None:
        for _ in range(count):
            batch = rng.integers(0, LABELS, BATCH)
            third, second, first, given = matrices(batch)
            hidden = torch.nn.functional.dropout(torch.relu(first @ given @ w + b1), 0.4)
            upper = torch.nn.functional.dropout(torch.relu(second @ hidden @ v + b2), 0.4)
            loss = 0.5 * ((third @ (upper @ c) - y[batch]) ** 2).sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return run


WORKLOAD = Workload(
    about=__doc__ or "",
    figure="gcn-sampling/fig5-1",
    short=Command(
        ("--scale", "quick", "--seeds", "1"), sizes={"width": 100}, along=("high_degree", (2, 5, 20))
    ),
    paper=Command(("--scale", "paper"), along=("high_degree", (2, 10, 50))),
    step=Step(
        trial=trial,
        sizes={"nodes": 2000, "width": 500, "high_degree": 10},
        tiny={"nodes": 100, "width": 8, "high_degree": 4},
        plain=plain,
        jax_loss=jax_loss,
        torch_loss=torch_loss,
        work=work,
        growth={"nodes": (2000, 20_000, 1_000_000), "width": (125, 500, 2000), "high_degree": (5, 10, 20)},
        loss=lambda trial, state: (
            trial.step(state).loss
        ),  # the state has the loss of the batch before its step
        runs=4,
        simulator="field",
        others={
            "whole": Simulator(
                changed(trial, {"engine": "whole"}),
                {"nodes": 1000, "width": 200, "high_degree": 10},
                whole_work,
                {"nodes": (500, 1000, 2000), "width": (100, 200, 400), "high_degree": (5, 10, 20)},
            )
        },
    ),
    extra=extra,
)
