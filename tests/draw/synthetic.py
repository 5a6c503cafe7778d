"""Results of any figure at smoke shape without training: numbers of the right shapes, and runs that ended badly."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr

from lemmata.figure import Figure
from lemmata.results import made
from lemmata.status import CAPPED, DIVERGED, FAILED
from lemmata.trial import Descending, Trial, random_key

COMPUTED = json.loads(Path(__file__).with_name("computed.json").read_text())
"""Shapes of what trials record that are not descents, by their names (and figure, where it matters): nothing tells them
without computing."""


def shapes(trial: Trial, figure: Figure) -> dict[str, tuple[int, ...]]:
    """The names and shapes of what a trial records."""
    if not isinstance(trial, Descending):
        found = COMPUTED.get(f"{trial.name} {figure.id}", COMPUTED.get(trial.name))
        if found is None:
            pytest.skip(f"{trial.name} would have to be computed to know its shapes")
        return {name: tuple(shape) for name, shape in found.items()}

    def all_of() -> tuple:
        state = trial.start(random_key(trial, 0))
        return trial.record(state), trial.watch(state), trial.track(state)

    record, watched, tracked = jax.eval_shape(all_of)
    found = {name: value.shape for name, value in record.items()}
    found |= {name: value.shape for kind in tracked for name, value in kind.items()}
    return found | {f"{name}_curve": (len(trial.log_steps), *v.shape) for name, v in watched.items()}


def synthetic(figure: Figure) -> xr.Dataset:
    """Results of a figure with numbers between 0.05 and 1 in place of records."""
    known: dict = {}

    def shape(trial: Trial, name: str) -> tuple[int, ...]:
        structure = jax.tree.structure(trial)
        if structure not in known:
            known[structure] = shapes(trial, figure)
        return known[structure].get(
            name, (0,) * len(names.get(name, ()))
        )  # nothing, where it records nothing

    names: dict[str, tuple[int, ...]] = {}
    for cell in figure.sweep("smoke").cells:
        shape(cell.trial, "")
    for one in known.values():
        names |= one
    variables = {
        name: lambda trial, rng, name=name: rng.uniform(0.05, 1.0, shape(trial, name)) for name in names
    }
    variables["steps"] = lambda trial, rng: rng.integers(1, 50)
    return made(figure, variables, scale="smoke")


def spoilt(results: xr.Dataset) -> xr.Dataset:
    """The same results where every second run diverged (its losses and norms infinite), hit the cap or failed, and the last
    grid point was never run."""
    status = results.status.copy(deep=True)
    flat = status.values.reshape(-1)
    flat[::2] = np.resize([DIVERGED, CAPPED, FAILED], len(flat[::2]))
    seeds = status.sizes["seed"]
    if status.size > 2 * seeds:
        flat[-seeds:] = np.nan
    status.values = flat.reshape(status.shape)
    blown = [name for name in results.data_vars if "loss" in str(name) or "norm" in str(name)]
    infinite = results.assign({name: results[name].where(status != DIVERGED, np.inf) for name in blown})
    bad = infinite.where((status != FAILED) & status.notnull())
    return bad.assign(status=status).assign_attrs(results.attrs)


def lost(results: xr.Dataset) -> xr.Dataset:
    """The same results where every run failed."""
    nothing = results.where(xr.zeros_like(results.status, bool))
    return nothing.assign(status=xr.full_like(results.status, FAILED)).assign_attrs(results.attrs)
