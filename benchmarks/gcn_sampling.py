"""Graph convolutions with a sampled graph: steps at width 500 with 1500 labels against PyTorch eager, and the cost of a step
over the number of nodes.

Two peers: sparse matrices of the whole graph, as a plain program has them, and the rows that the batch needs, cut out of
them in every step. Steps are timed in turns within one run; 6000 of them are counted up from those timed.

    python -m benchmarks.gcn_sampling [steps timed]
"""

import sys
import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sparse

from benchmarks.timing import fastest
from lemmata.lab.pool import one_thread

WIDTH, LABELS, STEPS, DEGREES, SIZES = 500, 1500, 6000, (10, 1), (100, 1900)


def lab(steps: int, sizes: tuple[int, ...] = SIZES, width: int = WIDTH) -> Callable[[], object]:
    """So many steps of a training, compiled; graph and start are made before."""
    import jax

    from lemmata.studies.gcn_sampling.data import DegreeGroups
    from lemmata.studies.gcn_sampling.trials import Training
    from lemmata.trial import put_all, random_key, with_precision

    trial = put_all(
        Training(graph=DegreeGroups(degrees=DEGREES, sizes=sizes), labels=LABELS), {"width": width}
    )
    one = with_precision(trial)
    state = jax.jit(lambda t, k: t.start(k))(one, random_key(trial, 0))
    run = jax.jit(lambda t, s: jax.lax.fori_loop(0, steps, lambda _, now: t.step(now), s))
    return lambda: jax.block_until_ready(run(one, state))


def drawn(rng: np.random.Generator) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """A, features and labels of the same size."""
    from lemmata.bench.graphs import adjacency, normalised

    nodes = sum(SIZES)
    stubs = rng.permutation(np.repeat(np.arange(nodes), np.repeat(DEGREES, SIZES)))
    pairs = stubs[: len(stubs) // 2 * 2].reshape(-1, 2)
    return (
        normalised(adjacency(pairs, nodes)),
        rng.normal(size=(nodes, 10)).astype(np.float32),
        rng.normal(size=(nodes, 2)).astype(np.float32),
    )


def eager(steps: int, whole: bool) -> Callable[[], object]:
    """The same training in PyTorch: dropout 0.4, 0.9 of each group sampled, SGD."""
    import torch

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Sparse")  # sparse rows are called a beta there
    rng = np.random.default_rng(0)
    matrix, features, labels = drawn(rng)
    nodes = len(features)
    group = np.repeat([0, 1], SIZES)
    scale = np.array([0.7, 0.3])[group] / 0.9
    x, y = torch.tensor(features), torch.tensor(labels)
    w = torch.nn.Parameter(torch.randn(10, WIDTH) / WIDTH**0.5)
    v = torch.nn.Parameter(torch.randn(WIDTH, WIDTH) / WIDTH**0.5)
    c, b1, b2 = torch.randn(WIDTH, 2), torch.randn(WIDTH) / WIDTH**0.5, torch.randn(WIDTH) / WIDTH**0.5
    optimiser = torch.optim.SGD([w, v], lr=1e-3)

    def tensor(part: sparse.csr_array) -> torch.Tensor:
        parts = (
            torch.tensor(part.indptr),
            torch.tensor(part.indices),
            torch.tensor(part.data.astype(np.float32)),
        )
        return torch.sparse_csr_tensor(*parts, size=part.shape)

    def matrices(batch: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        factor = np.zeros(nodes)
        for start, size in ((0, SIZES[0]), (SIZES[0], SIZES[1])):
            factor[start + rng.choice(size, round(0.9 * size), replace=False)] = 1
        sampled = sparse.csr_array(matrix @ sparse.diags_array(factor * scale))
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

    def run() -> None:
        for _ in range(steps):
            batch = rng.integers(0, LABELS, 5)
            third, second, first, given = matrices(batch)
            hidden = torch.nn.functional.dropout(torch.relu(first @ given @ w + b1), 0.4)
            upper = torch.nn.functional.dropout(torch.relu(second @ hidden @ v + b2), 0.4)
            loss = 0.5 * ((third @ (upper @ c) - y[batch]) ** 2).sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return run


def main() -> None:
    one_thread()
    from lemmata.guard import double

    timed = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with double():
        found = fastest(
            {
                "lab": lab(timed),
                "PyTorch, sparse matrices": eager(timed, whole=True),
                "PyTorch, cut out": eager(timed, whole=False),
            },
            2,
        )
        for name, seconds in found.items():
            step = seconds / timed
            ratio = seconds / found["lab"]
            print(
                f"{name}: {1e3 * step:.2f} ms a step, {STEPS} steps {STEPS * step:.0f} s; {ratio:.1f} times the lab's",
                flush=True,
            )
        print("to reach: 5 times, against sparse matrices")
        over_nodes(10 * timed)


def over_nodes(steps: int) -> None:
    """The cost of a step on graphs of 2e3, 2e4 and 1e6 nodes with the same degrees; many steps, since handing over a graph
    costs too."""
    sizes = ((100, 1900), (1000, 19_000), (50_000, 950_000))
    for name, seconds in fastest({f"{sum(s)} nodes": lab(steps, s, 100) for s in sizes}, 2).items():
        print(f"{name}: {1e6 * seconds / steps:.0f} microseconds a step (width 100)", flush=True)


if __name__ == "__main__":
    main()
