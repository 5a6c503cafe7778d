"""Measures inside a training that is not the lab's: in PyTorch, NumPy or JAX.

    hook = lm.Hook({"on_relevant": lambda weights, batch: attention_share(batch["attention"], batch["relevant"])}, every=10)
    for step, batch in enumerate(batches):
        ...  # one step of your own training
        hook(step, weights=model.state_dict(), batch=batch)
    lm.picture(hook.results())

A measure is a function of weights and a batch. Both reach it as NumPy arrays, whatever they are in the training.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from lemmata.arguments import checks_arguments
from lemmata.errors import BadInput, require, shortened
from lemmata.results import Results
from lemmata.status import CONVERGED

Measure = Callable[[Any, Any], Any]


@checks_arguments
class Hook:
    """Records measures at some steps of a training.

    `measures`: functions of weights and a batch, by name. Each returns a number, or an array of the same shape at every step.
    `every`: how many steps lie between two records.

    >>> hook = Hook({"norm": lambda weights, batch: np.linalg.norm(weights["w"])}, every=2)
    >>> for step in range(4):
    ...     hook(step, weights={"w": np.full(4, step)})
    >>> hook.results().norm_curve.values.tolist()
    [0.0, 4.0]
    """

    def __init__(self, measures: Mapping[str, Measure], every: int = 1):
        require(bool(measures), "a hook needs at least one measure.")
        require(every > 0, f"a hook records every 1 or more steps, not every {every}.")
        self._measures, self._every = dict(measures), every
        self._steps: list[int] = []
        self._found: dict[str, list[np.ndarray]] = {name: [] for name in measures}

    def __call__(self, step: int, weights: Any = None, batch: Any = None) -> None:
        """Record all measures, if it is the turn of this step. Steps must increase."""
        if step % self._every:
            return
        require(
            not self._steps or step > self._steps[-1], f"step {step} does not come after {self._steps[-1:]}."
        )
        own, data = as_numpy(weights), as_numpy(batch)
        found = {name: np.asarray(measure(own, data), float) for name, measure in self._measures.items()}
        for name, value in found.items():
            before = self._found[name]
            if before and before[0].shape != value.shape:
                raise BadInput(
                    f"the measure '{name}' gave {value.shape} numbers, and {before[0].shape} before."
                )
        self._steps.append(int(step))
        for name, value in found.items():
            self._found[name].append(value)

    def results(self) -> xr.Dataset:
        """Return what was recorded: a curve over `step` for each measure, with names as the lab's own curves have."""
        require(bool(self._steps), "the hook has recorded nothing yet; call it in your training.")
        curves = {
            f"{name}_curve": (
                ("step", *(f"{name}_{i}" for i in range(values[0].ndim))),
                np.stack(values),
                {"long_name": name.replace("_", " "), "units": "1"},
            )
            for name, values in self._found.items()
        }
        steps = ("step", self._steps, {"long_name": "step of the training", "units": "steps", "symbol": "t"})
        return Results({**curves, "status": ((), float(CONVERGED))}, {"step": steps})


def as_numpy(tree: Any) -> Any:
    """Return weights or a batch with every array as one of NumPy; dicts, lists and tuples keep their form."""
    if isinstance(tree, Mapping):
        return {name: as_numpy(one) for name, one in tree.items()}
    if isinstance(tree, list | tuple):
        return [as_numpy(one) for one in tree]
    if hasattr(tree, "detach"):  # a tensor of PyTorch, maybe with a gradient, maybe on a GPU
        tree = tree.detach().cpu()
        tree = tree.float() if str(tree.dtype) == "torch.bfloat16" else tree  # NumPy has no bfloat16
    try:
        return tree if tree is None or isinstance(tree, str) else np.asarray(tree)
    except (TypeError, ValueError):
        raise BadInput(f"{shortened(tree)} is no array.") from None


# Measures that many want -----------------------------------------------------------------------------------------------


def attention_share(attention: Any, target: Any) -> float:
    """Return the mean attention that queries pay to target tokens.

    `attention`: rows that sum to one, (..., queries, keys).
    `target`: 1 for a target and 0 else, (..., keys), or with a row for each query.

    >>> attention_share([[0.9, 0.1], [0.5, 0.5]], [1, 0])
    0.7
    """
    rows, marks = np.asarray(attention, float), np.asarray(target, float)
    require(
        rows.shape[-1:] == marks.shape[-1:],
        f"attention of shape {rows.shape} and targets of shape {marks.shape} do not have the same keys.",
    )
    marks = marks if marks.ndim == rows.ndim else marks[..., None, :]
    return float((rows * marks).sum(-1).mean())


def attended_tokens(attention: Any) -> float:
    """Return among how many tokens attention is spread: the exponential of the mean entropy of its rows.

    >>> attended_tokens([[0.25, 0.25, 0.25, 0.25]])
    4.0
    """
    rows = np.asarray(attention, float)
    entropy = -(rows * np.log(np.where(rows > 0, rows, 1.0))).sum(-1)
    return float(np.exp(entropy.mean()))


def along_patterns(matrix: Any, patterns: Any) -> np.ndarray:
    """Return ||W mu_j|| for every pattern, a row of `patterns`; `matrix` is W, of shape (out, dim).

    >>> along_patterns([[3.0, 0.0], [4.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]).tolist()
    [5.0, 0.0]
    """
    return np.linalg.norm(np.asarray(matrix, float) @ np.asarray(patterns, float).T, axis=0)
