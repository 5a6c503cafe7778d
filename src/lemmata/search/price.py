"""Finds what one point of a search costs: the fewest cells and seeds that give a claim a number."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import xarray as xr

from lemmata.figure import Claim, Made
from lemmata.measure.margin import margin
from lemmata.study import Study

SEEDS = (2, 3, 6)
"""Numbers of seeds that are tried, before all of the figure's."""


@dataclass(frozen=True)
class Price:
    """What one point takes.

    `labels`: the labels of every axis of the figure; an axis that the claim does not need has one.
    `seeds`: the number of seeds.
    """

    labels: dict[str, tuple[Any, ...]]
    seeds: int

    @property
    def kept(self) -> tuple[str, ...]:
        """The axes that the claim needs."""
        return tuple(name for name, labels in self.labels.items() if len(labels) > 1)

    @property
    def trainings(self) -> int:
        return prod(map(len, self.labels.values())) * self.seeds


def price(study: Study, claim: Claim) -> Price | None:
    """Return the price of a point for a claim; None if made results on which it holds give it no number at all.

    Smaller grids are tried first, on made results: one cell, then one axis with three labels, with all labels, and so on.
    """
    if claim.upheld_by is None:
        return None
    results = _made(study, claim.figure, claim.upheld_by)
    spoken = _spoken(claim, results)
    counts = [count for count in SEEDS if count < results.sizes["seed"]] + [results.sizes["seed"]]
    for labels in _grids(results, spoken):
        chosen = results.isel({dim: list(places) for dim, places in labels.items()})
        for count in counts:
            if bool(np.any(~np.isnan(margin(claim, chosen.isel(seed=slice(count)))))):
                named = {dim: tuple(_plain(results[dim].values[list(at)])) for dim, at in labels.items()}
                return Price(named, count)
    return None


@lru_cache(maxsize=32)
def _made(study: Study, figure: str, made: Made) -> xr.Dataset:
    return made.results(study.figure(figure), "quick")


def _plain(values: np.ndarray) -> list[Any]:
    return values.tolist()


def _spoken(claim: Claim, results: xr.Dataset) -> np.ndarray:
    """Mark the grid points that the claim speaks of; all of them where that cannot be said."""
    ran = results["status"].notnull()
    dims = [dim for dim in ran.dims if dim != "seed"]
    try:
        mask = ran if claim.cells is None else ran & claim.cells(results)
    except Exception:
        mask = ran
    return mask.any("seed").transpose(*dims).values


def _grids(results: xr.Dataset, spoken: np.ndarray) -> Iterator[dict[str, tuple[int, ...]]]:
    """Yield places of labels along the axes, the cheapest grids first."""
    dims = [str(dim) for dim in results["status"].dims if dim != "seed"]
    sizes = dict(zip(dims, spoken.shape, strict=True))
    long = [dim for dim in dims if sizes[dim] > 1]
    for many in range(len(long) + 1):
        for most in (3, max(sizes.values(), default=1)):
            for kept in combinations(long, many):
                for rank in range(2 if many else 4):
                    found = _places(dims, sizes, spoken, kept, most, rank)
                    if found is not None:
                        yield found
            if not many:
                break


def _places(
    dims: list[str], sizes: dict[str, int], spoken: np.ndarray, kept: tuple[str, ...], most: int, rank: int
) -> dict[str, tuple[int, ...]] | None:
    """The places of a grid that keeps some axes: on the others the labels with the most cells that the claim speaks of.

    Of several equal ones the `rank`-th nearest to the middle of the figure is taken.
    """
    along = tuple(i for i, dim in enumerate(dims) if dim in kept)
    counts = spoken.sum(along) if along else spoken.astype(int)
    best = np.argwhere(counts == counts.max()) if counts.max() else np.empty((0, 0), int)
    if len(best) <= rank:
        return None
    others = [dim for dim in dims if dim not in kept]
    middle = np.array([(sizes[dim] - 1) / 2 for dim in others])
    order = np.argsort(np.abs(best - middle).sum(1), kind="stable") if others else np.arange(len(best))
    at = dict(zip(others, best[order[rank]].tolist(), strict=True))
    chosen: dict[str, tuple[int, ...]] = {}
    for dim in dims:
        if dim in at:
            chosen[dim] = (at[dim],)
        else:
            index = tuple(slice(None) if d == dim else at.get(d, slice(None)) for d in dims)
            line = spoken[index]
            mine = [d for d in dims if d in kept].index(dim)
            known = np.flatnonzero(line.any(tuple(i for i in range(line.ndim) if i != mine)))
            spread = np.unique(np.linspace(0, len(known) - 1, min(most, len(known))).round().astype(int))
            chosen[dim] = tuple(known[spread].tolist())
    return chosen
