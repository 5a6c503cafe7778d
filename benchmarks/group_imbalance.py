"""Figure 4.2 of group imbalance (20 starts a cell): the lab against a PyTorch loop and NumPy, start after start; and the
tensor initialisation at n = 2e5, d = 50 against one pass over its moments.

Peers descend by gradient steps 1 / lambda_max, timed per step and charged the steps that the curvature at the limit asks for
(to a gradient of 1e-8, at most 20000). The lab is timed twice: the same gradient steps for all starts at once, in turns with
the peers, and its own Newton searches from start to end. Both are said, for the second compares algorithms and not only
programs. All in double precision, on one thread.
"""

import sys
from collections.abc import Callable

import numpy as np

from benchmarks.timing import fastest

CELLS = ((5, 2000), (20, 8000), (50, 20_000))
STARTS, NEURONS, MOST = 20, 3, 20_000


Work = Callable[[], object]


def torch_steps(inputs: np.ndarray, labels: np.ndarray, start: np.ndarray, step: float, rounds: int) -> Work:
    """Gradient steps of one start, by automatic differentiation."""
    import torch

    torch.set_num_threads(1)
    x, y = torch.tensor(inputs), torch.tensor(labels)
    weights = torch.tensor(start, requires_grad=True)

    def some() -> None:
        for _ in range(rounds):
            chance = torch.sigmoid(x @ weights).mean(-1)
            loss = torch.nn.functional.binary_cross_entropy(chance, y)
            (gradient,) = torch.autograd.grad(loss, weights)
            float(gradient.norm())  # the stop rule needs it
            with torch.no_grad():
                weights.sub_(step * gradient)

    return some


def numpy_steps(inputs: np.ndarray, labels: np.ndarray, start: np.ndarray, step: float, rounds: int) -> Work:
    """Gradient steps of one start, derivatives by hand."""
    weights = start.copy()

    def some() -> None:
        for _ in range(rounds):
            p = 1 / (1 + np.exp(-inputs @ weights))
            chance = p.mean(-1)
            pull = (labels - chance) / (chance * (1 - chance))
            gradient = -inputs.T @ (pull[:, None] * p * (1 - p)) / (NEURONS * len(labels))
            np.linalg.norm(gradient)
            weights[:] -= step * gradient

    return some


def cell(dim: int, samples: int) -> tuple[float, float, float, float]:
    """Seconds of one cell: lab (Newton), lab (descent), PyTorch, NumPy."""
    import jax
    import jax.numpy as jnp

    from lemmata.loop import Lanes, fill, read, run_block
    from lemmata.studies.group_imbalance.data import Population
    from lemmata.studies.group_imbalance.trials import Starts
    from lemmata.trial import put_all, random_key, with_precision

    here, none = jnp.ones(1, bool), jnp.asarray(0, jnp.int32)

    def begun(one: Starts) -> Lanes:
        alone = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], with_precision(one))
        return fill(alone, random_key(one, 0)[None], None, here)

    trial = Starts(population=Population(dim=dim, neurons=NEURONS, samples=samples), starts=STARTS)
    ended: list[Lanes] = []

    def newton() -> None:
        ended[:] = [run_block(begun(trial), jnp.asarray(trial.steps, jnp.int32), none)]
        jax.block_until_ready(read(ended[0], here))

    whole = fastest({"lab": newton}, 2)["lab"]
    state = jax.tree.map(lambda leaf: np.asarray(leaf[0]), ended[0].state)
    spectrum = np.linalg.eigvalsh(state.search.here.hessian[0])
    steps = int(min(MOST, np.log(1e6) / max(spectrum[0] / spectrum[-1], 1e-9)))
    rounds = max(10, 200_000 // samples)
    lanes = begun(put_all(trial, {"solver": "descent", "most_steps": MOST, "tolerance": 0.0}))
    given = (state.data.inputs, state.data.labels, state.world.teacher + 0.02, float(state.step_size), rounds)
    times = fastest(
        {
            "lab": lambda: jax.block_until_ready(run_block(lanes, jnp.asarray(rounds, jnp.int32), none)),
            "torch": torch_steps(*given),
            "numpy": numpy_steps(*given),
        },
        5,
    )
    step, torch, plain = (times[name] / rounds for name in ("lab", "torch", "numpy"))
    print(
        f"d = {dim}, n = {samples}: {steps} gradient steps; a step of one start: PyTorch {1e3 * torch:.2f} ms, NumPy "
        f"{1e3 * plain:.2f} ms, lab {1e3 * step / STARTS:.3f} ms "
        f"(ratios {STARTS * torch / step:.1f}, {STARTS * plain / step:.1f}); "
        f"the whole cell: lab {whole:.2f} s, PyTorch {steps * STARTS * torch:.0f} s, NumPy {steps * STARTS * plain:.0f} s",
        flush=True,
    )
    return whole, steps * step, steps * STARTS * torch, steps * STARTS * plain


def initialisation(samples: int = 200_000, dim: int = 50, neurons: int = 2) -> None:
    """Subroutine 1 against one pass over the moments (scores, Q_1, Q_2 of all samples)."""
    from lemmata.studies.group_imbalance.data import Samples, mixture, scores
    from lemmata.studies.group_imbalance.trials import tensor, tensor_initialisation

    rng = np.random.default_rng(0)
    mixed = mixture([0.5, 0.5], [-0.3 * np.ones(dim), np.zeros(dim)], [np.eye(dim)] * 2)
    groups = (rng.random(samples) < 0.5).astype(int)
    inputs = mixed.means[groups] + rng.normal(size=(samples, dim))
    chance = (1 / (1 + np.exp(-inputs @ rng.uniform(-0.1, 0.1, (dim, neurons))))).mean(-1)
    data = Samples(inputs, (rng.random(samples) < chance).astype(float), groups)

    def one_pass() -> None:
        parts = scores(mixed, data.inputs)
        tensor.first_moment(parts, data.labels)
        tensor.second_moment(parts, data.labels)

    times = fastest({"pass": one_pass, "whole": lambda: tensor_initialisation(mixed, data, neurons)}, 3)
    once, whole = times["pass"], times["whole"]
    print(
        f"tensor initialisation, n = {samples}, d = {dim}: {whole:.2f} s; one pass over the moments {once:.2f} s; ratio "
        f"{whole / once:.2f} (to stay under: 5)"
    )


def main() -> None:
    from lemmata.guard import double

    with double():
        initialisation()
        times = np.array([cell(*one) for one in CELLS[: int(sys.argv[1]) if len(sys.argv) > 1 else None]])
    newton, descent, torch, plain = times.sum(0)
    print(f"all cells: lab {newton:.1f} s, PyTorch {torch:.0f} s, NumPy {plain:.0f} s; ratios {torch / newton:.0f} and "
          f"{plain / newton:.0f} (to reach: 10)")  # fmt: skip
    print(
        f"the same gradient steps: lab {descent:.0f} s; ratios {torch / descent:.1f} and {plain / descent:.1f}"
    )


if __name__ == "__main__":
    main()
