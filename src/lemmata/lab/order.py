"""An order to the lab: which figure, at which scale, with which changes, and where its results go."""

import platform
import shlex
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import xarray as xr

from lemmata.errors import BadInput, require, unknown
from lemmata.lab.adaptive import Refined, refine
from lemmata.lab.plan import plan
from lemmata.lab.run import Progress, carry_out
from lemmata.lab.store import Store
from lemmata.measure.compare import Verdict
from lemmata.study import Figure, Scale, Study, scale, study
from lemmata.sweep import Sweep, axis
from lemmata.trial import describe, fields

DEFAULT_OUT = Path("runs")
PACKAGES = ("lemmata", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "statsmodels", "xarray", "zarr")


@dataclass(frozen=True)
class Order:
    """Everything that `lemmata run` can be told. Building one writes nothing; its `sweep` is checked when asked for."""

    study: Study
    figure: Figure
    scale: Scale
    changes: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    seeds: int | None = None
    out: Path | None = None

    @cached_property
    def sweep(self) -> Sweep:
        """The figure's sweep with the changes made; every cell is built, so that bad input shows before any work."""
        sweep = self.figure.sweep(self.scale).with_fields(self.changes)
        for path, values in self.axes.items():
            if any(path in (a.name, a.place) for a in sweep.axes):
                sweep = sweep.with_field(path, list(values))
            else:
                sweep = replace(sweep, axes=(*sweep.axes, axis(path, values)))
        if self.seeds is not None:
            require(self.seeds > 0, f"a sweep needs at least one seed, not {self.seeds}.")
            sweep = sweep.with_seeds(range(self.seeds))
        require(len(sweep.cells) > 0, "the sweep has no cells.")
        return sweep

    @cached_property
    def store(self) -> Store:
        folder = self.out or DEFAULT_OUT / self.study.id / self.figure.id / self.scale
        return Store(folder)

    @property
    def command(self) -> str:
        """The command that gives this order again; axes of a sweep file are found in the folder of its results."""
        if self.axes:
            return shlex.join(["lemmata", "run", str(self.store.path)])
        words = ["lemmata", "run", f"{self.study.id}/{self.figure.id}", "--scale", self.scale]
        for path, value in self.changes.items():
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            words += ["--set", f"{path}={text}"]
        if self.seeds is not None:
            words += ["--seeds", str(self.seeds)]
        if self.out is not None:
            words += ["--out", str(self.out)]
        return shlex.join(words)

    def manifest(self) -> dict[str, Any]:
        sweep = self.sweep
        widths = sorted({chunk.width for chunk in plan(sweep.cells, 1)})
        return {
            "study": self.study.id,
            "figure": self.figure.id,
            "scale": self.scale,
            "command": self.command,
            "changes": dict(self.changes),
            "axes": {name: list(values) for name, values in sweep.dims.items() if name != "seed"},
            "added_axes": {path: list(values) for path, values in self.axes.items()},
            "seeds": list(sweep.seeds),
            "cells": len(sweep.cells),
            "trial": describe(sweep.template),
            "precision": fields(sweep.template).get("precision", "float64"),
            "chunk_widths": widths,
            "versions": {name: _version(name) for name in PACKAGES} | {"python": platform.python_version()},
            "platform": f"{platform.system()} {platform.machine()}",
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }

    def run(self, workers: int = 0, progress: Progress = lambda cells: None) -> xr.Dataset:
        """Run what is missing and return the results."""
        self._require_own_store()
        carry_out(self.sweep, self.store, self.manifest(), workers, progress)
        return self.results()

    def refine(
        self, width: float, budget: int, workers: int = 0, progress: Progress = lambda cells: None
    ) -> Refined:
        """Run only what narrows the boundary of the figure, until the interval of its exponent is at most `width`."""
        question = self.figure.question
        name = f"{self.study.id}/{self.figure.id}"
        if question is None:
            raise BadInput(
                f"'{name}' shows no boundary that an adaptive run could refine; leave out --adaptive."
            )
        self._require_own_store()
        manifest = self.manifest()
        manifest["command"] += f" --adaptive --width {width:g} --budget {budget}"

        def run(chosen: Sweep) -> xr.Dataset:
            carry_out(chosen, self.store, manifest, workers, progress)
            return self.results(chosen)

        return refine(self.sweep, question, run, width, budget)

    def _require_own_store(self) -> None:
        existing = self.store.manifest if (self.store.path / "manifest.json").exists() else {}
        same = existing.get("figure", self.figure.id) == self.figure.id
        same = same and existing.get("study", self.study.id) == self.study.id
        require(
            same,
            f"'{self.store.path}' already holds {existing.get('study')}/{existing.get('figure')}; choose another --out.",
        )

    def results(self, sweep: Sweep | None = None) -> xr.Dataset:
        """What is stored of the order's sweep (or of another over the same axes), completed by the figure."""
        loaded = self.store.load(sweep or self.sweep)
        loaded.attrs |= {"study": self.study.id, "figure": self.figure.id, "scale": self.scale}
        return self.figure.complete(loaded)

    def draw(self, results: xr.Dataset, verdicts: list[Verdict], format: str = "png") -> Path:
        """The picture, beside the results."""
        import matplotlib

        matplotlib.use("Agg")
        path = self.store.path / f"{self.figure.id}.{format}"
        picture = self.figure.draw(results, verdicts)
        picture.savefig(path, dpi=160, bbox_inches="tight")
        matplotlib.pyplot.close(picture)  # pyright: ignore[reportAttributeAccessIssue]
        return path


def place_order(
    name: str,
    scale_name: str | None = None,
    changes: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    out: Path | None = None,
) -> Order:
    """An order from STUDY/FIGURE, from a sweep file (TOML), or from the folder of an earlier run."""
    changes = dict(changes or {})
    if name.endswith(".toml"):
        return _from_file(Path(name), scale_name, changes, seeds, out)
    if (Path(name) / "manifest.json").exists():
        old = Store(name).manifest
        again = place_order(
            f"{old['study']}/{old['figure']}", scale_name or old["scale"], old["changes"] | changes
        )
        return replace(again, axes=old["added_axes"], seeds=seeds or len(old["seeds"]), out=Path(name))
    study_id, _, figure_id = name.partition("/")
    chosen = study(study_id)
    require(
        figure_id != "",
        f"name a figure of '{study_id}': {', '.join(f'{study_id}/{f}' for f in chosen.figures)}.",
    )
    return Order(chosen, chosen.figure(figure_id), scale(scale_name or "quick"), changes, {}, seeds, out)


def _from_file(
    path: Path, scale_name: str | None, changes: Mapping[str, Any], seeds: int | None, out: Path | None
) -> Order:
    """A sweep file: `study`, `figure`, and optionally `scale`, `seeds`, `out`, tables `[set]` and `[axes]`."""
    try:
        content = tomllib.loads(path.read_text())
    except OSError as error:
        raise BadInput(f"cannot read the sweep file '{path}': {error.strerror}.") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"'{path}' is not a valid TOML file: {error}.") from None
    known = ("study", "figure", "scale", "seeds", "out", "set", "axes")
    for word in content:
        if word not in known:
            raise unknown(f"entry of {path}", word, known)
    for word in ("study", "figure"):
        require(word in content, f"the sweep file '{path}' does not name a {word}.")
    folder = out or (Path(content["out"]) if "out" in content else None)
    order = place_order(
        f"{content['study']}/{content['figure']}",
        scale_name or content.get("scale"),
        {**_flat(content.get("set", {})), **changes},
        seeds or content.get("seeds"),
        folder,
    )
    return replace(order, axes=_flat(content.get("axes", {})))


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """TOML writes data.samples as a nested table; the lab wants the dotted path."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return sys.modules[name].__version__ if name in sys.modules else "unknown"
