"""What each command of the command line does. Nothing heavy is imported until a command needs it."""

import argparse
import math
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemmata import device
from lemmata.errors import BadInput, few, message, note, require, text_of
from lemmata.scale import SCALES
from lemmata.study import Study, studies, study, study_or_package
from lemmata.terminal import (
    plain_verdict,
    print_as,
    print_lines,
    print_outcome,
    print_page,
    print_prose,
    print_table,
    print_verdicts,
    verdict_rows,
)

if TYPE_CHECKING:
    import xarray as xr

    from lemmata.measure.compare import Verdict
    from lemmata.order import Order


def list_studies(options: argparse.Namespace) -> None:
    chosen = [study(_study_id(options.name))] if options.name else list(studies().values())
    content = {"studies": [_title_page(s) for s in chosen]}
    if not options.name:
        head = ("study", "figures", "claims", "title")
        rows = [(s.id, str(len(s.figures)), str(len(s.entries)), s.title) for s in chosen]
        return print_lines(head, rows) if not print_as(options.format, head, rows, content) else None
    (s,), head = chosen, ("kind", "name", "says")
    figures = [("figure", f"{s.id}/{id}", title) for id, title in s.figures.items()]
    claims = [("claim", f"{s.id}/{claim.id}", claim.statement) for claim in s.entries.values()]
    kept = [claim for claim in s.entries.values() if claim.headline or options.all]
    if not print_as(options.format, head, figures + claims, content):
        print_lines(("figure", "shows"), list(s.figures.items()))
        print()
        print_lines(("claim", "says"), [(claim.id, claim.statement) for claim in kept])
        more = len(claims) - len(kept)
        print_prose(f"\n{_many(more, 'claim')} more (--all)." if more else "")
    return None


def show(options: argparse.Namespace) -> None:
    if options.system:
        return _show_system()
    require(bool(options.name), "show takes a study, STUDY/FIGURE, or --system.")
    study_id, _, figure_id = _title(options.name).partition("/")
    s = study(study_id)
    if not figure_id:
        print_prose(f"{s.title}\n\n{s.summary}\n\nNumbers refer to: {s.version}.\n\nFigures")
        for id, title in s.figures.items():
            print_prose(f"{id}: {title}", "  ")
        print("\nClaims")
        for claim in s.entries.values():
            where = f"{claim.source}: {claim.where}" if claim.where else claim.source
            print_prose(f"{claim.id} ({where}): {claim.statement}", "  ")
        readme = s.folder / "README.md"
        if readme.exists():
            print()
            print_page(readme.read_text(encoding="utf-8"))
        return
    figure = s.figure(figure_id)
    print_prose(f"{s.id}/{figure.id}: {s.figures[figure.id]}\n\nSetup: {figure.setup}\n")
    from lemmata.trial import Descending, fields

    for scale in SCALES:
        sweep = figure.sweep(scale)
        grid = ", ".join(f"{name} ({len(labels)})" for name, labels in sweep.dims.items())
        cap = f", at most {sweep.template.steps} steps each" if isinstance(sweep.template, Descending) else ""
        programs = len(sweep.cells.structures[0])
        print_prose(f"{scale}: {len(sweep.cells)} trainings in {programs} programs{cap}; {grid}")
    print("\nFields for --set, with their values at the scale 'quick':")
    for path, value in fields(figure.sweep("quick").template).items():
        print_prose(f"{path} = {value}", "  ")
    for name, changes in figure.readings.items():
        print_prose(
            f"\nReading '{name}': {', '.join(f'{path}={value}' for path, value in changes.items()) or 'as it stands'}"
        )
    print_prose(
        f"\nClaims that its results can refute: {', '.join(claim.id for claim in figure.claims) or 'none'}"
    )
    for claim in figure.claims:
        print_prose(f"{claim.id} ({claim.source.kind}: {claim.source.where}): {claim.statement}", "  ")
        print_prose(f"{claim.holds.kind}; {claim.holds.predicted}: {claim.holds.because}", "    ")


def _show_system() -> None:
    """Say what trains here: compiler, kernels, JAX, device, precision."""
    from importlib.metadata import version

    from lemmata import kernels

    device.select(os.environ)
    device.check()
    print(f"compiler: {kernels.compiler_version()}\nkernels ({kernels.SWITCH}={kernels.switch()}):")
    for source, told in kernels.report().items():
        print(f"  {source}: {told}")
    print(f"JAX {version('jax')}, jaxlib {version('jaxlib')}\ndevice: {device.used()}")
    print("precision: each trial's own, float32 or float64; JAX computes with 64 bits inside trainings")


def run(options: argparse.Namespace) -> int:
    from lemmata.lab.executors import connect_workers
    from lemmata.lab.run import reasons
    from lemmata.progress import bar

    if not options.adaptive and (options.budget, options.width) != (None, None):
        raise BadInput("--budget and --width are for adaptive runs; add --adaptive.")
    order = _order(options.name, options)
    order.sweep.cells  # noqa: B018  (built now, so that bad input shows before anything is written)
    own = study(order.figure.study)
    law = None
    if not options.adaptive:
        _announce([order], options)
    with connect_workers(options.on, workers(options), options.limit) as pool, bar(order.name) as told:
        if options.adaptive:
            width = 0.2 if options.width is None else options.width
            budget = len(order.sweep.cells) if options.budget is None else options.budget
            found = order.refine(width, budget, pool, told, options.fail_fast)
            results, law = found.results, found.boundary.exponent
        else:
            results = order.run(pool, told, options.fail_fast)
    verdicts = own.check(results)
    picture = None
    try:
        picture = order.draw(results, verdicts)
    except (
        BadInput
    ) as error:  # a full disk, or a sweep over too many axes: the verdicts are printed all the same
        note(f"no picture: {error}")
    counts = order.counts()
    report = {
        "study": own.id,
        "figure": order.figure.id,
        "scale": order.scale,
        "store": str(order.store.path),
        **counts,
        "picture": str(picture) if picture else None,
    }
    if law is not None:
        report["exponent"] = {"value": law.value, "interval": [law.low, law.high], "note": law.note}
    if options.format:
        print_as(options.format, *verdict_rows(verdicts), report)
    else:
        if options.all or options.verbose:
            print_verdicts(verdicts, options.all, options.verbose)
        else:
            print_outcome(verdicts)
        print(f"\n{_said(counts)}")
        for reason in few(reasons(order.store)) if counts["failed"] else ():
            print(f"  failed because: {message(reason)}")
        if law is not None:
            said = f"{law.value:.3g} [{law.low:.3g}, {law.high:.3g}]" if law.exists else law.note
            print(f"exponent of the boundary: {said} from {counts['done']} trainings")
        print(f"results: {order.store.path}" + (f"\npicture: {picture}" if picture else ""))
        if sys.stdout.isatty():
            print_prose(f"\nWhat to type next\n{_next_commands(order)}")
    _note_failures(counts["failed"], counts["cells"])
    return int(options.strict and (counts["failed"] > 0 or any(v.verdict == "fails" for v in verdicts)))


def check(options: argparse.Namespace) -> int:
    from lemmata import desk
    from lemmata.progress import bars

    if options.budget is not None and not options.until_decided:
        raise BadInput("--budget is for runs that add seeds; add --until-decided.")
    failures: list[tuple[int, int]] = []
    verdicts = desk.check(
        options.name,
        options.scale,
        workers(options),
        _changes(options.set),
        options.seeds,
        options.out,
        options.inside,
        options.until_decided,
        options.budget,
        bars,
        options.on,
        options.limit,
        options.fail_fast,
        lambda *counts: failures.append(counts),
        lambda orders: _announce(orders, options),
    )
    if options.format:
        claims = [plain_verdict(v) for v in verdicts]
        study_id = _study_id(options.name)
        content = {
            "study": study_id,
            "version": study(study_id).version,
            "scale": options.scale,
            "claims": claims,
        }
        print_as(options.format, *verdict_rows(verdicts), content)
    else:
        print_verdicts(verdicts, options.all, options.verbose)
    for failed, cells in failures:
        _note_failures(failed, cells)
    return int(options.strict and any(v.verdict == "fails" for v in verdicts))


def refute(options: argparse.Namespace) -> int:
    from lemmata.search.command import refute

    return refute(options, workers(options))


def plan(options: argparse.Namespace) -> None:
    from lemmata.search.command import plan

    plan(options, workers(options), _changes(options.set))


def predict(options: argparse.Namespace) -> None:
    from lemmata.answer import Forecast, outcome, solve
    from lemmata.answer import predict as forecast

    study_id, changes = _study_id(options.name), _changes(options.set)
    if options.solve:
        path, value = solve(study_id, options.solve, changes)
        changes[path] = str(value)
    found = forecast(study_id, changes)
    if options.plot:
        if isinstance(found, Forecast):
            raise BadInput("--plot draws a list of values; give one, such as --set samples=10,20,50.")
        from lemmata.session import save_picture

        note(f"picture: {save_picture(found.draw(), Path(options.plot))}")
    if isinstance(found, Forecast):
        heads = ("kind", "name", "value", "holds", "remark")
        rows = [("condition", c.name, _margin(c.margin), outcome(c.holds), "") for c in found.conditions]
        rows += [("prediction", name, value, "", why) for name, value, why in found.rows]
        content = {
            "study": found.study,
            "inputs": {path: found.inputs[path] for path in found.inputs},
            "answer": found.sentence,
            "goal": found.goal,
            "success": found.success,
            "held_against_trainings": list(found.record),
            "conditions": [{"name": c.name, "holds": c.holds, "margin": c.margin} for c in found.conditions],
            "predictions": [
                {"name": p.name, "value": p.value, "vacuous": p.name in found.vacuous}
                for p in found.predictions
            ],
        }
        if print_as(options.format, heads, rows, content):
            return
        if options.solve:
            print_prose(f"The smallest {path} at which the study predicts success ({found.goal}): {value}\n")
        if found.sentence:
            print_prose(found.sentence)
        print_prose(f"\nInputs: {found.inputs_text}")
        if found.record:
            print_prose("\nHow right such predictions were in trainings")
            for line in found.record:
                print_prose(line, "  ")
        everything = options.all or not found.sentence
        conditions = [c for c in found.conditions if everything or c.holds is False]
        met = len(found.conditions) - len(conditions)
        rows = [row for row in found.rows if everything or row[2] or row[0].startswith(found.main)]
        print()
        if conditions:
            shown = [(outcome(c.holds), _margin(c.margin), c.name) for c in conditions]
            print_table("Conditions", ("", "margin", "condition (margin 1: just met)"), shown)
        if met:
            print_prose(
                f"{_many(met, 'condition')} {'more ' if conditions else ''}met, or without constants (--all)"
            )
        print()
        print_table("Predictions", ("value", "what", ""), [(value, name, why) for name, value, why in rows])
        if not everything:
            print_prose(f"{_many(len(found.rows) - len(rows), 'prediction')} more (--all)")
        return
    content = {
        "study": study_id,
        "settings": [dict(zip(found.table(True)[0], row, strict=True)) for row in found.table(True)[1]],
    }
    if print_as(options.format, *found.table(True), content):
        return
    head, rows = found.table(options.all)
    print_table(f"{study_id}: {' x '.join(found.axes)}", head, rows)
    if any(cell.endswith("*") for row in rows for cell in row):
        print_prose("* says nothing here: it holds without any theorem, or no training has so many")


def report(options: argparse.Namespace) -> None:
    from lemmata.desk import own_orders, stored_orders
    from lemmata.lab.disk import replace_file
    from lemmata.report import chapters, page
    from lemmata.report.record import markdown, record

    path = Path(options.to)
    chosen = _able([study(id) for id in options.studies])
    if path.suffix == ".json" and len(chosen) > 1:
        raise BadInput("a record of verdicts is of one study: name it.")
    parts, written = [], []
    only_verdicts = path.suffix in (".json", ".md")
    for s in chosen:
        orders = stored_orders(s, options.scale)
        if only_verdicts:  # those of a figure that is only half run are not for publication
            orders = [order for order in orders if order.whole]
        results = [order.results() for order in orders]
        verdicts = s.check(*results)
        if orders and only_verdicts:
            found = record(s, verdicts, options.scale, _minutes(s, orders))
            written.append(found if path.suffix == ".json" else markdown(s, verdicts))
            continue
        shown = []
        for order, one in zip(orders, results, strict=True):
            reading = one.attrs["reading"]
            own = [v for v in verdicts if s.entries[v.id].figure == order.figure.id and v.reading == reading]
            shown.append((order.figure, order, one, own, order.draw(one, own), order.store.manifest))
        found = chapters(s, shown)
        for order in own_orders(s):
            one = order.results()
            own = s.check(one)
            shown = (order.figure, order, one, own, _picture(order, one, own), order.store.manifest)
            found += chapters(s, [shown], own=True)
        if found:
            parts.append((s, found))
    if not parts and not written:
        raise BadInput(
            f"nothing is stored at scale '{options.scale}' yet; run a figure or check a study first."
        )
    try:
        replace_file(path, ("\n".join(written) or page(parts)).encode(errors="replace"))
    except OSError as error:
        raise BadInput(f"cannot write '{path}': {error.strerror}.") from None
    print(path)


def _picture(order: "Order", results: "xr.Dataset", verdicts: "list[Verdict]") -> Path | None:
    """Return the picture of a run with settings of one's own; None where these have too many axes for one."""
    try:
        return order.draw(results, verdicts)
    except BadInput as error:
        note(f"{order.name}: {message(str(error))}")
        return None


def _minutes(s: Study, orders: "Sequence[Order]") -> float | None:
    """The time of one core, in minutes, that the trainings of all figures took; None where some figure is not stored."""
    needed = [s.figure(id) for id in s.figures if s.bearing_on(id)]
    if {figure.id for figure in needed} - {order.figure.id for order in orders}:
        return None
    seconds: dict[str, float] = {}  # by cell, as two figures may have one in common
    for order in orders:
        known = order.store.entries()
        seconds |= {cell.id: known[cell.id].seconds for cell in order.sweep.cells if cell.id in known}
    return sum(seconds.values()) / 60


def ledger(options: argparse.Namespace) -> None:
    """Every numbered statement of a paper, as printed and as mended, and what it is held against."""
    from dataclasses import asdict

    s = study(_study_id(options.name))
    lines = [asdict(line) | {"finding": s.finding(line)} for line in s.ledger]
    rows = [(line.number, line.says, line.mended, line.held_against, s.finding(line)) for line in s.ledger]
    head = ("number", "as printed", "as mended", "held against", "finding")
    if not print_as(options.format, head, rows, {"study": s.id, "statements": lines}):
        print_table(s.title, head, rows)


def lock(options: argparse.Namespace) -> int:
    """Register what the claims of a study measure; a changed claim gets fresh seeds."""
    from lemmata import registration

    code = 0
    for s in _able([study_or_package(name) for name in options.studies]):
        if options.check:
            found = _faults(s)
            code |= int(bool(found))
            right = "as registered" if s.lock else f"no faults found; register it with: lemmata lock {s.id}"
            print(f"{s.id}: {'; '.join(found) or right}")
        else:
            changed = registration.lock(s)
            words = ", ".join(f"{id} draw {entry.draw}" for id, entry in changed.items())
            print(f"{s.id}: {words or 'as registered'}")
    return code


def _faults(s: Study) -> list[str]:
    """What the first check finds that a study does not pass. A condition that is never met is only noted."""
    from lemmata import testing

    for check in testing.BEFORE_TRAINING:
        if found := testing.problems(check, s):
            return found
    for sentence in testing.problems(testing.never_met, s):
        note(f"{s.id}: {sentence}")
    return []


def new(options: argparse.Namespace) -> None:
    from lemmata.new import write

    folder = write(options.name, Path())
    print(f"{folder} holds a package with a working study. To go on:")
    print(f"  pip install -e {folder}")
    print(f"  python -m pytest {folder}")
    print(f"  lemmata check {options.name}")


def complete(options: argparse.Namespace) -> None:
    """Print what a shell runs at its start to complete the commands."""
    from lemmata.completion import SCRIPTS

    print(SCRIPTS[options.shell])


def cite(options: argparse.Namespace) -> None:
    print(study(_study_id(options.name)).citation.strip())


def data(options: argparse.Namespace) -> int:
    from lemmata.data.command import run

    return run(options)


def bench(options: argparse.Namespace) -> None:
    """Speed against other programs; the benchmarks stand beside the package, not in it."""
    project = Path(__file__).resolve().parents[2]
    if not (project / "benchmarks" / "run.py").exists():
        raise BadInput(
            "the benchmarks are not installed with the package: clone the project and use its own lemmata."
        )
    sys.path.insert(0, str(project))
    if options.readme:
        from benchmarks.readme import written

        return print(written())
    from benchmarks.run import bench

    bench(options.workload, options.only, options.paper, options.rounds)


# What several commands need --------------------------------------------------------------------------------------------


def _title(name: str) -> str:
    """STUDY/FIGURE of a folder of results; any other name as it is."""
    if os.path.isdir(name):
        from lemmata.desk import title_of

        return title_of(name)
    return name


def _study_id(name: str) -> str:
    """The study of a name: of STUDY, STUDY/FIGURE, or a folder of results."""
    return _title(name).partition("/")[0]


def _announce(orders: "Sequence[Order]", options: argparse.Namespace) -> None:
    """Say in a terminal what a run is going to do, as the first result takes a while."""
    if not sys.stderr.isatty():
        return
    missing = [order.missing() for order in orders]
    programs, trainings = sum(p for p, _ in missing), sum(t for _, t in missing)
    count = workers(options)
    where = (
        f"on {options.on}" if options.on != "local" else f"on {_many(count, 'worker')}" if count else "here"
    )
    what = f"compiling {_many(programs, 'program')}, then {_many(trainings, 'training')} {where}"
    note(what if trainings else "every training is stored already")


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


def _next_commands(order: "Order") -> str:
    """What one may want to type after a run."""
    own, folder = order.figure, shlex.quote(str(order.store.path))
    lines = [
        f"  lemmata show {own.study}/{own.id}",
        f"  lemmata figure {folder} --format pdf",
        f"  lemmata export {folder} --to results.nc",
    ]
    if own.claims:
        lines.insert(0, f"  lemmata check {own.study}/{own.id}")
    return "\n".join(lines)


def _able(chosen: list[Study]) -> list[Study]:
    """The chosen studies; if none is, all whose figures can be loaded, with a note on the others."""
    found = []
    for s in [] if chosen else studies().values():
        try:
            s.all_figures  # noqa: B018  (those of a registered study are loaded here for the first time)
            found.append(s)
        except BadInput as error:
            note(f"the study '{s.id}' is left out: {error}.")
    return chosen or found


def _order(name: str, options: argparse.Namespace) -> "Order":
    from lemmata.desk import place_order

    return place_order(
        name,
        options.scale,
        changes=_changes(options.set),
        seeds=options.seeds,
        out=options.out,
        reading=options.reading,
    )


def _changes(pairs: Iterable[str]) -> dict[str, str]:
    changes = {}
    for pair in pairs:
        path, equals, value = pair.partition("=")
        if not equals:
            raise BadInput(f"--set takes PATH=VALUE, not '{pair}'.")
        if path in changes:
            raise BadInput(f"'{path}' is set twice.")
        changes[path] = _contents(value[1:]) if value.startswith("@") else value
    return changes


def _contents(name: str) -> str:
    """What a file holds: `--set PATH=@FILE` takes a long value from there."""
    try:
        return text_of(Path(name))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise BadInput(f"the file '{name}' cannot be read: {why}.") from None


def workers(options: argparse.Namespace) -> int:
    """How many workers a command starts: one a core unless the user says otherwise, one on a GPU."""
    if options.workers is None and not device.on_cpu():
        return 1
    if options.workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return options.workers


def _note_failures(failed: int, cells: int) -> None:
    """Say last, on standard error, that cells failed: the results are not complete."""
    if failed:
        sys.stdout.flush()
        note(
            f"WARNING: {failed} of {cells} cells FAILED, and the results lack them. "
            "Run the same command again to try them again."
        )


def _said(counts: dict[str, int]) -> str:
    ended = ", ".join(f"{counts[name]} {name}" for name in ("failed", "diverged", "capped"))
    return f"{counts['done']} of {counts['cells']} cells done; {ended}"


def _title_page(s: Study) -> dict[str, Any]:
    return {
        "id": s.id,
        "title": s.title,
        "version": s.version,
        "figures": [{"id": id, "title": title} for id, title in s.figures.items()],
        "claims": [
            {"id": one.id, "statement": one.statement, "source": one.source, "where": one.where}
            for one in s.entries.values()
        ],
    }


def _margin(margin: float) -> str:
    """How far a condition is met; in words where no number says it."""
    if math.isinf(margin):
        return "asks for nothing here"
    return f"{margin:.3g}" if margin > 0 else "out of reach here"
