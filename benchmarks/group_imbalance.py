"""Figure 4.2 of group imbalance: 20 starts a cell, each followed to its critical point, in double precision; and the tensor
initialisation at n = 2e5, d = 50 against one pass over its moments.

The step that is held against peers is a gradient step of all 20 starts on the same samples. The lab's figure goes to the same
points by Newton steps, which compares algorithms and not only programs: the extra lines charge peers, start after start, the
gradient steps that the curvature at the limit asks for (to a gradient of 1e-8, at most 20 000) and hold the lab's whole cell
against them. Single precision could not reach the gradient at which a start has arrived.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers import LONG, advanced, started
from benchmarks.timing import Contestant, fastest, in_turns, torch_on
from benchmarks.workload import Arrays, Command, Measure, Plain, Simulator, Step, Work, Workload, changed
from lemmata.loop import lane_record
from lemmata.studies.group_imbalance.data import Population, Samples, mixture, scores
from lemmata.studies.group_imbalance.network import gradients
from lemmata.studies.group_imbalance.trials import Starts, tensor, tensor_initialisation

CELLS = ((5, 2000), (20, 8000), (50, 20_000))
STARTS, NEURONS, MOST = 20, 3, 20_000


def trial(steps: int, samples: int, dim: int, starts: int) -> Starts:
    population = Population(dim=dim, neurons=NEURONS, samples=samples)
    return Starts(population=population, starts=starts, solver="descent", most_steps=steps, tolerance=0.0)


def plain(trial: Starts, key: Any, state: Any, count: int) -> Plain:
    batch = {"inputs": state.data.inputs, "labels": state.data.labels}
    return Plain({"weights": state.search.weights}, [batch], {"weights": float(state.step_size)})


def loss(trial: Starts, state: Any) -> Any:
    """The risk, summed over the starts, each of which then has a gradient of its own."""
    return jnp.sum(gradients(state.search.weights, state.data.inputs, state.data.labels)[0])


def jax_loss(weights: Arrays, batch: Arrays) -> Any:
    chance = jnp.mean(jax.nn.sigmoid(batch["inputs"] @ weights["weights"]), axis=-1)
    y = batch["labels"]
    return -jnp.sum(jnp.mean(y * jnp.log(chance) + (1 - y) * jnp.log(1 - chance), axis=-1))


def torch_loss(weights: Arrays, batch: Arrays) -> Any:
    import torch

    chance = torch.sigmoid(batch["inputs"] @ weights["weights"]).mean(dim=-1)
    y = batch["labels"]
    return -(y * torch.log(chance) + (1 - y) * torch.log(1 - chance)).mean(dim=-1).sum()


def work(samples: int, dim: int, starts: int) -> Work:
    """Logits, an exponential for each, and their way back; every sample is read once for all starts."""
    each = samples * NEURONS * starts
    return Work(operations=4 * each * dim, bytes=8 * samples * (dim + 1), exponentials=each)


def newton_work(samples: int, dim: int, starts: int) -> Work:
    """The same, and for each start and sample two logarithms for the risk, and the Hessian: K (K + 1) / 2 pairs of neurons with
    the d (d + 1) / 2 products of inputs. Then each Hessian of n = d K rows is brought to three diagonals, and eigenvectors back
    (4/3 n^3 + 2 n^3). Hessians are read and written."""
    pairs, size = NEURONS * (NEURONS + 1) / 2, dim * NEURONS
    plain = work(samples, dim, starts)
    return Work(
        plain.operations + starts * (samples * pairs * dim * (dim + 1) + 10 / 3 * size**3),
        plain.bytes + 8 * 2 * starts * size**2,
        exponentials=plain.exponentials + 2 * samples * starts,
    )


# The success map ---------------------------------------------------------------------------------------------------------


def extra(paper: bool) -> dict[str, Measure]:
    cells = CELLS if paper else CELLS[:2]
    newton, descent, torch, plain = np.sum([_cell(*one) for one in cells], axis=0)
    where = f"{len(cells)} cells of the map"
    return {
        f"{where}, the lab's Newton steps": Measure(newton, "s"),
        f"{where}, PyTorch start after start over that": Measure(torch / newton, "times", "10"),
        f"{where}, NumPy start after start over that": Measure(plain / newton, "times", "10"),
        f"{where}, PyTorch over the lab's gradient steps": Measure(torch / descent, "times"),
        f"{where}, NumPy over the lab's gradient steps": Measure(plain / descent, "times"),
        "tensor initialisation over one pass over the moments": Measure(
            _initialisation(), "times", "below 5"
        ),
    }


def _cell(dim: int, samples: int) -> tuple[float, float, float, float]:
    """Seconds of one cell: lab (Newton), lab (descent), PyTorch, NumPy."""
    by_newton = Starts(population=Population(dim=dim, neurons=NEURONS, samples=samples), starts=STARTS)
    ended: list[Any] = []

    def newton() -> None:
        ended[:] = [advanced(started(by_newton, 1), by_newton.steps)]
        lane_record(ended[0], 0)

    whole = fastest({"lab": newton}, 2)["lab"]
    state = jax.tree.map(lambda leaf: np.asarray(leaf[0]), ended[0].state)
    spectrum = np.linalg.eigvalsh(state.search.here.hessian[0])
    steps = int(min(MOST, np.log(1e6) / max(spectrum[0] / spectrum[-1], 1e-9)))
    lanes = advanced(started(trial(LONG, samples, dim, STARTS), 1), 1)
    given = (state.data.inputs, state.data.labels, state.world.teacher + 0.02, float(state.step_size))
    times = in_turns(
        {
            "lab": Contestant(lambda count: advanced(lanes, count)),
            "torch": Contestant(torch_on(1, torch_steps(*given))),
            "numpy": Contestant(numpy_steps(*given)),
        },
        5,
    )
    lab, torch, plain = (times[name].best for name in ("lab", "torch", "numpy"))
    return whole, steps * lab, steps * STARTS * torch, steps * STARTS * plain


def torch_steps(inputs: np.ndarray, labels: np.ndarray, start: np.ndarray, step: float):
    """Gradient steps of one start, by automatic differentiation."""
    import torch

    x, y = torch.tensor(inputs), torch.tensor(labels)
    weights = torch.tensor(start, requires_grad=True)

    def some(count: int) -> None:
        for _ in range(count):
            chance = torch.sigmoid(x @ weights).mean(-1)
            (gradient,) = torch.autograd.grad(torch.nn.functional.binary_cross_entropy(chance, y), weights)
            float(gradient.norm())  # the stop rule needs it
            with torch.no_grad():
                weights.sub_(step * gradient)

    return some


def numpy_steps(inputs: np.ndarray, labels: np.ndarray, start: np.ndarray, step: float):
    """Gradient steps of one start, derivatives by hand."""
    weights = start.copy()

    def some(count: int) -> None:
        for _ in range(count):
            p = 1 / (1 + np.exp(-inputs @ weights))
            chance = p.mean(-1)
            pull = (labels - chance) / (chance * (1 - chance))
            gradient = -inputs.T @ (pull[:, None] * p * (1 - p)) / (NEURONS * len(labels))
            np.linalg.norm(gradient)
            weights[:] -= step * gradient

    return some


def _initialisation(samples: int = 200_000, dim: int = 50, neurons: int = 2) -> float:
    """Subroutine 1 over one pass over the moments (scores, Q_1, Q_2 of all samples)."""
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
    return times["whole"] / times["pass"]


WORKLOAD = Workload(
    about=__doc__ or "",
    figure="group-imbalance/fig4-2",
    short=Command(("--scale", "quick", "--seeds", "2"), charged=False),
    paper=Command(("--scale", "paper"), charged=False),
    step=Step(
        trial=trial,
        sizes={"samples": 8000, "dim": 20, "starts": STARTS},
        tiny={"samples": 50, "dim": 4, "starts": 3},
        plain=plain,
        jax_loss=jax_loss,
        torch_loss=torch_loss,
        work=work,
        growth={"samples": (2000, 8000, 32_000), "dim": (5, 20, 80), "starts": (5, 20, 80)},
        loss=loss,
        runs=2,
        simulator="descent",
        others={
            "newton": Simulator(
                changed(trial, {"solver": "newton"}),
                {"samples": 4000, "dim": 10, "starts": STARTS},
                newton_work,
                {"samples": (1000, 4000, 16_000), "dim": (5, 10, 20), "starts": (5, 20, 80)},
            )
        },
    ),
    extra=extra,
)
