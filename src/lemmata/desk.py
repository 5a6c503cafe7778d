"""Turns names of figures, sweep files and folders into orders, and checks whole studies.

Commands and Python programs call the same functions; `cli` parses and prints.
"""

import os
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemmata.arguments import checks_arguments
from lemmata.errors import BadInput, note, require, shortened, text_of, unknown
from lemmata.lab.executors import connect_workers
from lemmata.lab.looks import until_decided
from lemmata.lab.store import MAX_PATH_LENGTH, Store
from lemmata.lab.store_status import store_folder
from lemmata.order import DEFAULT_OUT, Order, run_all
from lemmata.progress import Shown, no_bars
from lemmata.scale import scale_named
from lemmata.study import Study, studies, study

if TYPE_CHECKING:
    from lemmata.measure.compare import Verdict

WORDS = {"study": str, "figure": str, "scale": str, "seeds": int, "out": str, "reading": str}
"""The entries of a sweep file or a manifest that are not tables."""

MOST_VALUES = 10_000
"""Values of an axis in a sweep file or a manifest; every value takes some kilobytes of memory."""

MOST_DRAWS = 10**6
"""The largest number of draws, and of looks at results, that a file may name."""


@checks_arguments
def place_order(name: str, scale: str | None = None, **options: Any) -> Order:
    """An order from STUDY/FIGURE, from a sweep file (TOML), or from the folder of an earlier run (or one that holds it).

    Options: `changes`, `seeds`, `out`, `reading`.
    """
    given = {word: value for word, value in options.items() if value not in (None, "", {})}
    require(options.get("seeds") != 0, "a sweep needs at least one seed, not 0.")
    if name.endswith(".toml"):
        return _from_file(Path(name), scale, given)
    folder = store_folder(name)
    if folder is not None:
        return _again(folder, scale, given, recover=True)
    study_id, _, figure_id = name.partition("/")
    if study_id not in studies() and os.path.isdir(name):
        raise BadInput(f"'{name}' is not a store of results: it has no manifest.json.")
    chosen = study(study_id)
    require(
        figure_id != "",
        f"name a figure of '{study_id}': {', '.join(f'{study_id}/{f}' for f in chosen.figures)}.",
    )
    return chosen.figure(figure_id).order(scale or "quick", **given)


def stored_order(name: str, scale: str | None = None, out: str | None = None) -> Order:
    """The order whose results are stored for a figure (or in a folder): a store knows its order."""
    order = place_order(name, scale, out=out)
    folder = store_folder(str(order.store.path))
    if folder is None or not Store(folder).exists:
        raise BadInput(f"nothing is stored in '{order.store.path}' yet; run first: {order.command}")
    return _again(folder, None, {})


def stored_folder(name: str) -> Path:
    """The folder of the results that a folder or STUDY/FIGURE names. A name that leads to no store is returned as it is."""
    folder = store_folder(name)
    if folder is None and name.partition("/")[0] in studies() and not os.path.isdir(name):
        folder = stored_order(name).store.path
    return folder or Path(name)


def title_of(name: str) -> str:
    """STUDY/FIGURE of the results in a folder. Any other name is returned as it is."""
    folder = store_folder(name)
    old = Store(folder).recovered_manifest if folder else {}
    return f"{old['study']}/{old['figure']}" if {"study", "figure"} <= old.keys() else name


def stored_orders(chosen: Study, scale: str) -> list[Order]:
    """The orders of a study whose results are stored at a scale, figure by figure and reading by reading."""
    found = []
    for id in chosen.figures:
        figure = chosen.figure(id)
        for reading in figure.readings or [""]:
            folder = figure.order(scale, reading=reading).default_folder
            found += [_again(folder, None, {})] if Store(folder).exists else []
    return found


def own_orders(chosen: Study) -> list[Order]:
    """The orders of a study with settings of one's own (sweep files, `--out`) whose results are in a folder of `runs`."""
    found = []
    for folder in sorted(path.parent for path in DEFAULT_OUT.glob("*/manifest.json")):
        manifest = Store(folder).recovered_manifest
        if manifest.get("study") == chosen.id and manifest.get("figure") in chosen.figures:
            found.append(_again(folder, None, {}))
    return found


@checks_arguments
def check(
    name: str,
    scale: str = "quick",
    workers: int = 0,
    set: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    out: str | None = None,
    inside: bool = False,
    more: bool = False,
    budget: int | None = None,
    bars: Callable[[], AbstractContextManager[Shown]] = no_bars,
    on: str = "local",
    limit: float | None = None,
    fail_fast: bool = False,
    counted: Callable[[int, int], None] = lambda failed, cells: None,
    begun: Callable[[Sequence[Order]], None] = lambda orders: None,
) -> "list[Verdict]":
    """Run what is missing for the claims of a study (STUDY), a figure (STUDY/FIGURE) or one (STUDY/CLAIM), and judge them.

    A name that is a claim and a figure is the claim's. The folder of a run stands for that run: its figure, scale and changes.
    With `more`, seeds are added until every claim is decided or `budget` extra trainings are spent. `begun(orders)` is called
    before the first training, `counted(failed, cells)` at the end. `lemmata check` prints these verdicts, for example those of
    `check("multihead/realizability", scale="smoke", workers=2)`.

    >>> check("multihead/realisability")
    Traceback (most recent call last):
    lemmata.errors.BadInput: unknown claim or figure of multihead 'realisability'; did you mean 'realizability'? ...
    """
    study_id, _, part = title_of(name).partition("/")
    chosen = study(study_id)
    only = part if part in chosen.entries else None
    claims = [claim for claim in chosen.claims if part in ("", claim.id)]
    if not claims and part not in chosen.figures:
        raise unknown(f"claim or figure of {study_id}", part, [*chosen.entries, *chosen.figures])
    claims = claims or [claim for claim in chosen.claims if claim.figure == part]
    require(
        bool(claims),
        f"no claim of '{study_id}' is about the figure '{part}'; draw it: lemmata run {study_id}/{part}",
    )
    require(budget is None or budget > 0, f"a budget is a number of trainings, not {budget}.")
    orders: dict[tuple[str, str], Order] = {}
    if store_folder(name) is not None:
        order = place_order(name, changes=dict(set or {}), seeds=seeds, out=out)
        orders = {(order.figure.id, order.reading): order}
    for id in dict.fromkeys(claim.figure for claim in claims if not orders):
        figure = chosen.figure(id)
        for reading in figure.readings or [""]:
            order = figure.order(scale, changes=dict(set or {}), seeds=seeds, reading=reading)
            folder = Path(out) / id / reading.replace(" ", "-") if out else None
            orders[id, reading] = replace(order, out=folder)
    for order in orders.values():
        order.sweep.cells  # noqa: B018  (built now, so that bad input shows before anything is written)
    begun(list(orders.values()))
    with connect_workers(on, workers, limit) as pool, bars() as shown:
        there = {which: order for which, order in orders.items() if not order.absent}
        for order in orders.values():
            if order.absent:
                note(f"{order.name}: {order.absent}")
        found = run_all(list(there.values()), pool, shown, fail_fast)
        ran = dict(zip(there, found, strict=True))
        results = {which: ran[which] if which in ran else order.nothing() for which, order in orders.items()}
        if not more:
            _count(there.values(), counted)
            return chosen.check(*results.values(), only=only, inside=inside)

        def look(rate: float) -> "list[Verdict]":
            return chosen.check(*results.values(), only=only, rate=rate, inside=inside)

        def add(id: str, count: int) -> None:
            for which in [w for w in there if w[0] == id]:
                order = there[which]
                there[which] = replace(order, seeds=len(order.sweep.seeds) + count, looks=order.looks + 1)
                results[which] = there[which].run(pool, shown(there[which].name), fail_fast)

        sizes = {id: len(order.sweep.seeds) for (id, _), order in there.items()}
        cells = {id: sum(len(o.sweep.cells) for (i, _), o in there.items() if i == id) for id in sizes}
        prices = {id: cells[id] // sizes[id] for id in sizes}
        verdicts = until_decided(
            look, lambda claim: chosen.claim(claim).figure, sizes, prices, add, budget or sum(cells.values())
        )
        _count(there.values(), counted)
        return verdicts


def _count(orders: Iterable[Order], counted: Callable[[int, int], None]) -> None:
    counts = [order.counts() for order in orders]
    counted(sum(one["failed"] for one in counts), sum(one["cells"] for one in counts))


def _again(folder: Path, scale: str | None, given: Mapping[str, Any], recover: bool = False) -> Order:
    """Return the order that made the results in a folder, with other settings where they are given.

    With `recover`, a lost manifest is replaced by its copy in the ledger or in the rows: running the order writes it again.
    """
    store = Store(folder)
    old = store.recovered_manifest if recover and store.exists else store.manifest
    if recover and store.exists and not old:
        raise store.lost_manifest()
    require("figure" in old, f"'{folder}' holds a sweep of its own, not a figure's.")
    kinds = {**WORDS, "changes": dict, "added_axes": dict, "draw": int, "looks": int}
    for word in ("study", "figure", "scale", "changes", "added_axes", "seeds"):
        require(word in old, f"the manifest of '{folder}' does not say '{word}'.")
    _require_kinds({word: value for word, value in old.items() if word in kinds}, kinds, str(folder))
    require(
        0 <= old.get("draw", 0) <= MOST_DRAWS and 0 < old.get("looks", 1) <= MOST_DRAWS,
        f"the manifest of '{folder}' is not one of the lab.",
    )
    _require_lists(old["added_axes"], str(folder))
    figure = study(old["study"]).figure(old["figure"])
    if not given and scale is None:
        figure = replace(figure, draw_number=old.get("draw", 0))
    changes = old["changes"] | given.get("changes", {})
    return Order(
        figure,
        scale_named(scale or old["scale"]),
        changes,
        old["added_axes"],
        given.get("seeds", old["seeds"]),
        given.get("out", folder),
        given.get("reading", old.get("reading", "")),
        old.get("looks", 1),
    )


def _from_file(path: Path, scale: str | None, given: Mapping[str, Any]) -> Order:
    """A sweep file: `study`, `figure`, and optionally `scale`, `seeds`, `out`, `reading`, tables `[set]` and `[axes]`."""
    try:
        content = tomllib.loads(text_of(path))
    except OSError as error:
        raise BadInput(f"cannot read the sweep file '{path}': {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"'{path}' is not a valid TOML file: {error}.") from None
    kinds = {**WORDS, "set": dict, "axes": dict}
    for word in content:
        if word not in kinds:
            raise unknown(f"entry of {path}", word, kinds)
    _require_kinds(content, kinds, str(path))
    for word in ("study", "figure"):
        require(word in content, f"the sweep file '{path}' does not name a {word}.")
    axes = _flat(content.get("axes", {}))
    _require_lists(axes, str(path))
    _require_inside(content.get("out", ""), given, path)
    options = {word: content[word] for word in ("seeds", "out", "reading") if word in content} | dict(given)
    options["changes"] = {**_flat(content.get("set", {})), **given.get("changes", {})}
    options.setdefault("out", str(Path("runs") / path.stem))
    name = f"{content['study']}/{content['figure']}"
    return replace(place_order(name, scale or content.get("scale"), **options), axes=axes)


def _require_kinds(content: Mapping[str, Any], kinds: Mapping[str, type], where: str) -> None:
    """Raise `BadInput` for an entry of the wrong type."""
    for word, value in content.items():
        said = {str: "text", int: "a whole number", dict: "a table"}[kinds[word]]
        right = isinstance(value, kinds[word]) and not isinstance(value, bool)
        require(right, f"'{word}' in '{where}' takes {said}, not {shortened(value)}.")


def _require_lists(axes: Mapping[str, Any], where: str) -> None:
    for name, values in axes.items():
        require(
            isinstance(values, list),
            f"axis '{name}' in '{where}' takes a list of values, not {shortened(values)}.",
        )
        require(
            len(values) <= MOST_VALUES,
            f"axis '{name}' in '{where}' has {len(values)} values, more than {MOST_VALUES}; give fewer.",
        )


def _require_inside(out: str, given: Mapping[str, Any], path: Path) -> None:
    """Refuse a sweep file, which may come from others, that puts its results outside the working folder; with --out the user
    decides."""
    if not out or "out" in given or "\0" in out or len(out) > MAX_PATH_LENGTH:
        return  # the store refuses names that cannot be
    folder = os.path.realpath(out)
    require(
        Path(folder).is_relative_to(os.path.realpath(os.curdir)),
        f"'{path}' would put its results into '{folder}', outside the working folder; "
        f"if you want that, say so: --out {shlex.quote(folder)}",
    )


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested tables with dotted paths as keys, because TOML writes `data.samples` as a nested table."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
