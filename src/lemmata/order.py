"""An order to the lab: which figure, at which scale, with which changes, and where its results go."""

import contextlib
import platform
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from lemmata.arguments import checks_arguments
from lemmata.data.store import data_file
from lemmata.errors import BadInput, note, require, unknown
from lemmata.lab.adaptive import Refined, refine
from lemmata.lab.disk import replacing
from lemmata.lab.run import Job, carry_out, carry_out_all, require_some
from lemmata.lab.segment import among
from lemmata.lab.store import Store
from lemmata.lab.store_status import cell_counts
from lemmata.names import described
from lemmata.progress import Progress, Shown
from lemmata.results import assemble, place_paths
from lemmata.rows import Rows
from lemmata.source import digests
from lemmata.sweep import Sweep, axis
from lemmata.trial import describe, fields

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import matplotlib.figure

    from lemmata.figure import Figure
    from lemmata.lab.pool import Pool
    from lemmata.lab.spool import Spool
    from lemmata.measure.compare import Verdict
    from lemmata.scale import Scale

DEFAULT_OUT = Path("runs")
PACKAGES = ("lemmata", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "statsmodels", "xarray", "zarr")
DRAW = 100_000
"""Seeds of one draw number; the next number begins after them."""


@checks_arguments
@dataclass(frozen=True)
class Order:
    """Holds all options of `lemmata run`. Making one writes nothing; its `sweep` is checked when it is first used."""

    figure: "Figure"
    scale: "Scale"
    changes: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    seeds: int | None = None
    out: Path | str | None = None
    reading: str = ""
    looks: int = 1

    def __post_init__(self):
        if self.reading and self.reading not in self.figure.readings:
            raise unknown(f"reading of {self.figure.id}", self.reading, self.figure.readings)

    @property
    def name(self) -> str:
        said = f", {self.reading}" if self.reading else ""
        return f"{self.figure.study}/{self.figure.id} ({self.scale}{said})"

    @cached_property
    def sweep(self) -> Sweep:
        """The figure's sweep with the changes made; every cell is built, so that bad input shows before any work."""
        read = dict(self.figure.readings.get(self.reading or next(iter(self.figure.readings), ""), {}))
        sweep = self.figure.sweep(self.scale).with_fields(read | dict(self.changes))
        given: set[str] = set()
        for path, values in self.axes.items():
            known = next((a for a in sweep.axes if path in (a.name, a.place)), None)
            names = {path} if known is None else {path, known.name, str(known.place)}
            require(not names & self.changes.keys(), f"'{path}' is set and made an axis at the same time.")
            require(not names & given, f"the axis '{path}' is given twice.")
            given |= names
            if known is not None:
                sweep = sweep.with_fields({path: list(values)})
            else:
                sweep = replace(sweep, axes=(*sweep.axes, axis(path, values)))
        seeds = sweep.seeds
        if self.seeds is not None:
            require(0 < self.seeds < DRAW, f"a sweep takes 1 to {DRAW - 1} seeds, not {self.seeds}.")
            seeds = tuple(range(self.seeds))
        sweep = sweep.with_seeds([self.figure.draw_number * DRAW + seed for seed in seeds])
        require(len(sweep.cells) > 0, "the sweep has no cells.")
        return sweep

    @cached_property
    def store(self) -> Store:
        return Store(self.out or self.default_folder)

    @property
    def default_folder(self) -> Path:
        first = next(iter(self.figure.readings), "")
        folder = DEFAULT_OUT / (self.figure.study or "own") / self.figure.id / self.scale
        return folder if self.reading in ("", first) else folder / self.reading.replace(" ", "-")

    @property
    def command(self) -> str:
        """The command that repeats this order. The axes of a sweep file are read from the folder of its results."""
        if self.axes:
            return shlex.join(["lemmata", "run", str(self.store.path)])
        words = ["lemmata", "run", f"{self.figure.study}/{self.figure.id}", "--scale", self.scale]
        for path, value in self.changes.items():
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            words += ["--set", f"{path}={text}"]
        if self.reading:
            words += ["--reading", self.reading]
        if self.seeds is not None:
            words += ["--seeds", str(self.seeds)]
        if self.out is not None:
            words += ["--out", str(self.out)]
        return shlex.join(words)

    def manifest(self) -> dict[str, Any]:
        sweep = self.sweep
        return {
            "study": self.figure.study,
            "figure": self.figure.id,
            "scale": self.scale,
            "reading": self.reading,
            "draw": self.figure.draw_number,
            "looks": self.looks,
            "command": self.command,
            "changes": dict(self.changes),
            "axes": {name: list(values) for name, values in sweep.dims.items() if name != "seed"},
            "added_axes": {path: list(values) for path, values in self.axes.items()},
            "seeds": len(sweep.seeds),
            "cells": len(np.unique(sweep.cells.ids)),
            "trial": describe(sweep.template),
            "precision": fields(sweep.template).get("precision", "float64"),
            "versions": {name: _version(name) for name in PACKAGES} | {"python": platform.python_version()},
            "platform": f"{platform.system()} {platform.machine()}",
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }

    def run(self, pool: "Pool | Spool", told: Progress, fail_fast: bool = False) -> xr.Dataset:
        """Run the missing cells and return the results. With `fail_fast`, stop at the first cell that fails."""
        return run_all([self], pool, lambda name: told, fail_fast)[0]

    @property
    def absent(self) -> str:
        """Which real data sets this order needs and are not here, as a sentence with the command to get them, or nothing."""
        needed = {name for trial in self.sweep.cells.structures[0] for name in trial.data_sets}
        missing = sorted(name for name in needed if not data_file(name).is_file())
        return (
            f"data absent: {', '.join(f'`lemmata data get {name}`' for name in missing)}" if missing else ""
        )

    def nothing(self) -> xr.Dataset:
        """Return results in which no cell was run, because data are absent."""
        found = assemble(self.sweep, Rows(np.array([], int), {"status": np.array([])}), self._about)
        return found.assign_attrs(absent=self.absent)

    def _job(self, told: Progress) -> Job:
        require(not self.absent, self.absent)
        self._require_own_store()
        return Job(self.sweep, self.store, self.manifest(), told, self._siblings)

    def _siblings(self) -> list[Path]:
        """The other stores in the folder of the study, if the results of this order are kept there."""
        folder = DEFAULT_OUT / (self.figure.study or "own")
        own = self.store.path.resolve()
        if not own.is_relative_to(folder.resolve()):
            return []
        stores = sorted(path.parent for path in folder.glob("**/segments"))
        return [path for path in stores if path.resolve() != own]

    def refine(
        self, width: float, budget: int, pool: "Pool | Spool", told: Progress, fail_fast: bool = False
    ) -> Refined:
        """Run only what narrows the boundary of the figure, until the interval of its exponent is at most `width`."""
        question = self.figure.question
        if question is None:
            raise BadInput(
                f"'{self.figure.study}/{self.figure.id}' shows no boundary that an adaptive run could refine; "
                "leave out --adaptive."
            )
        require(budget > 0, f"a budget is a number of trainings, not {budget}.")
        self._require_own_store()
        manifest = self.manifest()
        manifest["command"] += f" --adaptive --width {width:g} --budget {budget}"

        def run(chosen: Sweep) -> xr.Dataset:
            rows = carry_out(chosen, self.store, manifest, pool, told, fail_fast, self._siblings)
            return self._completed(chosen, rows)

        return refine(self.sweep, question, run, width, budget)

    def results(self) -> xr.Dataset:
        """Return the stored results of the order's sweep that the present code made."""
        ids, sources = self.sweep.cells.ids, digests(self.sweep.cells.trials)
        others = np.unique(ids[~among(ids, self.store.finished(sources))])
        outdated = int(among(others, self.store.finished()).sum())
        said = f"{outdated} cells in '{self.store.path}' were made by other code and are not used"
        rows = self.store.read(ids, sources)
        require(
            len(rows.found) > 0,
            f"{said}; run again: {self.command}"
            if outdated
            else f"'{self.store.path}' holds no cell of its sweep.",
        )
        require_some(rows, self.store)
        if outdated:
            note(f"{said}.")
        return self._completed(self.sweep, rows)

    def counts(self) -> dict[str, int]:
        """How many cells there are (two places of a grid with the same trial are one), and how those that were run ended."""
        cells = self.sweep.cells
        return cell_counts(len(np.unique(cells.ids)), self.store.counts(digests(cells.trials), cells.ids))

    def missing(self) -> tuple[int, int]:
        """How many programs and how many trainings are missing in the store."""
        cells = self.sweep.cells
        done = self.store.finished(digests(cells.trials)) if self.store.exists else np.array([], np.uint64)
        left = np.flatnonzero(~among(cells.ids, done))
        kinds = cells.structures[1][cells.which(left)]
        return len(np.unique(kinds)), len(np.unique(cells.ids[left]))

    @property
    def whole(self) -> bool:
        """Whether every cell has been run, however it ended."""
        counts = self.counts()
        return counts["done"] + counts["failed"] == counts["cells"]

    def draw(
        self,
        results: xr.Dataset,
        verdicts: "list[Verdict]",
        format: str = "png",
        folder: Path | None = None,
    ) -> Path:
        """The picture, beside the results or in another folder."""
        path = (folder or self.store.path) / f"{self.figure.id}.{format}"
        with _no_screen():
            picture = self.picture(results, verdicts)
            try:
                with replacing(path) as temporary:
                    picture.savefig(temporary, dpi=160, bbox_inches="tight", format=format)
            except OSError as error:
                raise BadInput(f"cannot write the picture '{path}': {error.strerror or error}.") from None
        return path

    def picture(self, results: xr.Dataset, verdicts: "list[Verdict]") -> "matplotlib.figure.Figure":
        """Draw results as the figure does. Results with other axes than the figure's are drawn as any sweep."""
        from lemmata.session import picture

        return picture(results) if self.axes else self.figure.draw(results, verdicts)

    def _completed(self, sweep: Sweep, rows: Rows) -> xr.Dataset:
        results = self.figure.complete(assemble(sweep, rows, self._about))
        return described(results, paths=place_paths(sweep))

    @property
    def _about(self) -> dict[str, Any]:
        """What results say of the order that made them."""
        return {
            "study": self.figure.study,
            "figure": self.figure.id,
            "scale": self.scale,
            "reading": self.reading or next(iter(self.figure.readings), ""),
            "draw": self.figure.draw_number,
            "looks": self.looks,
            "changed": ", ".join([*self.changes, *self.axes]),
        }

    def _require_own_store(self) -> None:
        existing = self.store.recovered_manifest if self.store.exists else {}
        ours = {"study": self.figure.study, "figure": self.figure.id}
        require(
            all(existing.get(word, name) == name for word, name in ours.items()),
            f"'{self.store.path}' already holds {existing.get('study')}/{existing.get('figure')}; choose another --out.",
        )


def run_all(
    orders: Sequence[Order], pool: "Pool | Spool", shown: Shown, fail_fast: bool = False
) -> list[xr.Dataset]:
    """Run what is missing of several orders, the next one beginning while the last cells of another are at work, and return
    the results of each; with `fail_fast`, stop at the first cell that fails."""
    jobs = [order._job(shown(order.name)) for order in orders]
    found = carry_out_all(jobs, pool, fail_fast)
    results = {number: orders[number]._completed(jobs[number].sweep, rows) for number, rows in found}
    return [results[number] for number in range(len(orders))]


def run_here(
    order: Order, workers: int = 0, progress: bool | None = None, executor: "Executor | None" = None
) -> xr.Dataset:
    """Run one order with a pool of its own, and return its results."""
    from lemmata.lab.pool import Pool
    from lemmata.progress import bar, silence, wanted

    with Pool(workers, executor) as pool, bar(order.name) if wanted(progress) else silence() as told:
        return order.run(pool, told)


@contextlib.contextmanager
def _no_screen():
    """Let Matplotlib draw into files inside, restore its backend afterwards, and close the figures made inside."""
    import matplotlib
    from matplotlib import pyplot

    before = matplotlib.get_backend()
    opened = set(pyplot.get_fignums())
    matplotlib.use("Agg")
    try:
        yield
    finally:
        for number in set(pyplot.get_fignums()) - opened:
            pyplot.close(number)
        matplotlib.use(before)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return sys.modules[name].__version__ if name in sys.modules else "unknown"
