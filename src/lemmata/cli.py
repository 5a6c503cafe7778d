"""The commands. Nothing heavy is imported until a command needs it."""

import argparse
import contextlib
import json
import math
import os
import shlex
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemmata import ending
from lemmata.errors import BadInput, printable, text_of
from lemmata.study import SCALES, Study, studies, study

if TYPE_CHECKING:
    from lemmata.lab.order import Order
    from lemmata.measure.compare import Verdict


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; returns the exit code (0 done, 1 failed under --strict, 2 bad input, 130 interrupted,
    143 told to end)."""
    if arguments is None:
        ending.arm()
    options = _parser().parse_args(arguments)
    try:
        with _workers_on_their_way(options):
            return options.command(options) or 0
    except BadInput as error:
        print(f"lemmata: {printable(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


# Commands --------------------------------------------------------------------------------------------------------------


def list_studies(options: argparse.Namespace) -> None:
    if options.json:
        return _print_json({"studies": [_title_page(s) for s in studies().values()]})
    for s in studies().values():
        print(f"{s.id}: {s.title}")
        for id, title in s.figures.items():
            print(f"    {s.id}/{id}: {title}")
        print(f"    {len(s.claims)} claims: {', '.join(claim.id for claim in s.claims)}")


def show(options: argparse.Namespace) -> None:
    study_id, _, figure_id = options.name.partition("/")
    s = study(study_id)
    if not figure_id:
        print(f"{s.title}\n\n{s.summary}\n\nFigures")
        for id, title in s.figures.items():
            print(f"  {id}: {title}")
        print("\nClaims")
        for claim in s.claims:
            print(f"  {claim.id}: {claim.statement}")
        readme = s.folder / "README.md"
        if readme.exists():
            print(f"\n{readme.read_text()}")
        return
    figure = s.figure(figure_id)
    print(f"{s.id}/{figure.id}: {s.figures[figure.id]}\n\nReading: {figure.reading}\n")
    from lemmata.trial import Descending, fields

    for scale in SCALES:
        sweep = figure.sweep(scale)
        grid = ", ".join(f"{name} ({len(labels)})" for name, labels in sweep.dims.items())
        cap = f", at most {sweep.template.steps} steps each" if isinstance(sweep.template, Descending) else ""
        programs = len(sweep.cells.structures[0])
        print(f"{scale}: {len(sweep.cells)} trainings in {programs} programs{cap}; {grid}")
    print("\nFields for --set, with their values at the scale 'quick':")
    for path, value in fields(figure.sweep("quick").template).items():
        print(f"  {path} = {value}")
    for name, changes in figure.readings.items():
        print(
            f"\nReading '{name}': {', '.join(f'{path}={value}' for path, value in changes.items()) or 'as it stands'}"
        )
    bearing = s.bearing_on(figure.id)
    print(f"\nClaims it bears on: {', '.join(claim.id for claim in bearing) or 'none'}")
    for claim in bearing:
        print(f"  {claim.id} ({claim.reference}): {claim.statement}")
        print(
            f"    {claim.kind}; predicted {claim.predicted}; holds within {_range(claim.tolerance)}: {claim.reason}"
        )


def run(options: argparse.Namespace) -> int:
    from lemmata.lab.executors import hands
    from lemmata.lab.run import reasons
    from lemmata.progress import bar

    if not options.adaptive and (options.budget, options.width) != (None, None):
        raise BadInput("--budget and --width are for adaptive runs; add --adaptive.")
    order = _order(options.name, options)
    order.sweep.cells  # noqa: B018  (built now, so that bad input shows before anything is written)
    own = study(order.figure.study)
    law = None
    with hands(options.on, _workers(options), options.limit) as pool, bar(order.name) as told:
        if options.adaptive:
            width = 0.2 if options.width is None else options.width
            budget = len(order.sweep.cells) if options.budget is None else options.budget
            found = order.refine(width, budget, pool, told, options.fail_fast)
            results, law = found.results, found.boundary.exponent
        else:
            results = order.run(pool, told, options.fail_fast)
    verdicts = own.check(results)
    picture = None
    if not order.axes:
        try:
            picture = order.draw(results, verdicts)
        except (
            BadInput
        ) as error:  # a disk that is full or cannot be written to is no reason not to tell the verdicts
            print(f"lemmata: {printable(str(error))}", file=sys.stderr)
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
    if options.json:
        _print_json(report)
    else:
        _print_verdicts(verdicts)
        print(f"\n{_said(counts)}")
        for reason in reasons(order.store) if counts["failed"] else ():
            print(printable(f"  failed because: {reason}"))
        if law is not None:
            said = f"{law.value:.3g} [{law.low:.3g}, {law.high:.3g}]" if law.exists else law.note
            print(f"exponent of the boundary: {said} from {counts['done']} trainings")
        print(f"results: {order.store.path}" + (f"\npicture: {picture}" if picture else ""))
    return int(options.strict and (counts["failed"] > 0 or any(v.verdict == "fails" for v in verdicts)))


def check(options: argparse.Namespace) -> int:
    from lemmata import desk
    from lemmata.progress import bars

    if options.budget is not None and not options.until_decided:
        raise BadInput("--budget is for runs that add seeds; add --until-decided.")
    verdicts = desk.check(
        options.name,
        options.scale,
        _workers(options),
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
    )
    if options.json:
        study_id = options.name.partition("/")[0]
        claims = [_plain_verdict(v) for v in verdicts]
        _print_json({"study": study_id, "scale": options.scale, "claims": claims})
    else:
        _print_verdicts(verdicts)
    return int(options.strict and any(v.verdict == "fails" for v in verdicts))


def predict(options: argparse.Namespace) -> None:
    from lemmata.trial import put_all

    s = study(options.name)
    trial = put_all(s.template(), _changes(options.set))
    conditions, predictions = s.predict(trial)
    if options.json:
        return _print_json(
            {
                "study": s.id,
                "conditions": [{"name": c.name, "holds": c.holds, "margin": c.margin} for c in conditions],
                "predictions": [{"name": p.name, "value": p.value} for p in predictions],
            }
        )
    rows = [
        (c.name, {True: "met", False: "violated", None: "order only"}[c.holds], _margin(c.margin))
        for c in conditions
    ]
    _print_table("Conditions", ("condition", "", "margin (1 = just met)"), rows)
    value = [(p.name, p.value if isinstance(p.value, str) else f"{p.value:.4g}") for p in predictions]
    _print_table("Predictions", ("what", "value"), value)


def figure(options: argparse.Namespace) -> None:
    from lemmata.desk import stored_order

    order = stored_order(options.name, options.scale, options.out)
    results = order.results()
    folder = Path(options.to) if options.to else None
    print(order.draw(results, study(order.figure.study).check(results), options.format, folder))


def status(options: argparse.Namespace) -> None:
    from lemmata.lab.glance import glance
    from lemmata.lab.store import Store

    store = Store(options.dir)
    counts = glance(store) if store.exists else None
    if counts is None:
        from lemmata.desk import stored_order

        order = stored_order(options.dir)
        store, counts = order.store, order.counts()
    manifest = store.manifest
    if options.json:
        return _print_json({"store": options.dir, **counts, "manifest": manifest})
    said = {word: manifest.get(word, "") for word in ("study", "figure", "scale", "reading", "draw")}
    reading = f", {said['reading']}" if said["reading"] else ""
    name = f"{said['study']}/{said['figure']} ({said['scale']}{reading}), draw {said['draw']}"
    name = name if said["figure"] else "a sweep of its own"
    print(printable(f"{name}, started {manifest.get('started', 'some day')}"))
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    for reason in sorted(store.reasons()) if counts["failed"] else ():
        print(printable(f"  failed because: {reason}"))
    command = _own_command(manifest.get("command"))
    if command:
        print(f"to repeat or resume: {command}")


def verify(options: argparse.Namespace) -> int:
    from lemmata.lab.store import Store

    store = Store(options.dir)
    store.manifest  # noqa: B018  (says what is wrong where there is no store)
    problems = store.problems()
    for problem in problems:
        print(problem)
    print("whole" if not problems else f"{len(problems)} problems")
    return int(bool(problems))


def repair(options: argparse.Namespace) -> None:
    from lemmata.lab.store import Store

    for sentence in Store(options.dir).repair() or ["nothing to mend"]:
        print(sentence)


def work(options: argparse.Namespace) -> None:
    from lemmata.desk import stored_order
    from lemmata.lab.pool import cache_compilations, one_thread
    from lemmata.lab.spool import serve
    from lemmata.lab.store import Store
    from lemmata.lab.work import run_chunk
    from lemmata.programs import keep

    Store(options.dir).manifest  # noqa: B018  (says what is wrong where there is no store)
    one_thread()
    cache_compilations()
    keep()
    done = serve(Path(options.dir), lambda: stored_order(options.dir).sweep.cells, run_chunk)
    print(f"{done} cells done")


def export(options: argparse.Namespace) -> None:
    from lemmata.desk import stored_order
    from lemmata.lab.export import export as write

    print(write(stored_order(options.dir).results(), Path(options.to)))


def report(options: argparse.Namespace) -> None:
    from lemmata.desk import stored_orders
    from lemmata.lab.disk import replace_file
    from lemmata.report import Chapter, page
    from lemmata.report.record import markdown, record

    path = Path(options.to)
    chosen = [study(id) for id in options.studies] or list(studies().values())
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
            written.append(
                record(s, verdicts, options.scale) if path.suffix == ".json" else markdown(s, verdicts)
            )
            continue
        chapters = []
        for order, one in zip(orders, results, strict=True):
            reading = one.attrs["reading"]
            own = [v for v in verdicts if s.claim(v.id).figure == order.figure.id and v.reading == reading]
            picture = order.draw(one, own)
            said = f"{order.figure.reading} Reading: {reading}." if reading else order.figure.reading
            chapters.append(
                Chapter(order.figure.id, s.figures[order.figure.id], said, order.command, picture, own)
            )
        if chapters:
            parts.append((s, chapters))
    if not parts and not written:
        raise BadInput(
            f"nothing is stored at scale '{options.scale}' yet; run a figure or check a study first."
        )
    try:
        replace_file(path, ("\n".join(written) or page(parts)).encode(errors="replace"))
    except OSError as error:
        raise BadInput(f"cannot write '{path}': {error.strerror}.") from None
    print(path)


def ledger(options: argparse.Namespace) -> None:
    """Every numbered statement of a paper, as printed and as mended, and what it is held against."""
    from dataclasses import asdict

    s = study(options.name)
    if options.json:
        lines = [asdict(line) | {"finding": s.finding(line)} for line in s.ledger]
        return _print_json({"study": s.id, "statements": lines})
    rows = [(line.number, line.says, line.mended, line.held_against, s.finding(line)) for line in s.ledger]
    _print_table(s.title, ("number", "as printed", "as mended", "held against", "finding"), rows)


def lock(options: argparse.Namespace) -> int:
    """Register what the claims of a study measure; a changed claim gets fresh seeds."""
    from lemmata import registration

    code = 0
    for s in [study(id) for id in options.studies] or studies().values():
        if options.check:
            found = registration.disagreements(s)
            code |= int(bool(found))
            print(f"{s.id}: {'; '.join(found) or 'as registered'}")
        else:
            changed = registration.lock(s)
            print(
                f"{s.id}: "
                + (", ".join(f"{id} draw {e['draw']}" for id, e in changed.items()) or "as registered")
            )
    return code


def cite(options: argparse.Namespace) -> None:
    print(study(options.name).citation.strip())


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


# Parts of commands -----------------------------------------------------------------------------------------------------


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


def _workers(options: argparse.Namespace) -> int:
    if options.workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return options.workers


def _workers_on_their_way(options: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """For a command that needs workers: they are started before this process has loaded what it needs itself, and kernels that
    nobody has compiled yet are, before two workers wait for one of them to do it."""
    if getattr(options, "on", None) != "local":
        return contextlib.nullcontext()
    from lemmata import native
    from lemmata.lab.process import early

    own = studies().get(options.name.partition("/")[0])
    if own is not None:
        threading.Thread(target=native.prepare, args=(own.folder,), daemon=True).start()
    return early(_workers(options), "lemmata.lab.work")


def _said(counts: dict[str, int]) -> str:
    ended = ", ".join(f"{counts[name]} {name}" for name in ("failed", "diverged", "capped"))
    return f"{counts['done']} of {counts['cells']} cells done; {ended}"


def _own_command(told: object) -> str:
    """A command of the lab that a manifest tells of, fit to be copied into a shell; nothing if it is none."""
    try:
        words = shlex.split(told) if isinstance(told, str) else []
    except ValueError:
        return ""
    return printable(shlex.join(words)) if words[:2] == ["lemmata", "run"] else ""


def _title_page(s: Study) -> dict[str, Any]:
    return {
        "id": s.id,
        "title": s.title,
        "figures": [{"id": id, "title": title} for id, title in s.figures.items()],
        "claims": [{"id": claim.id, "statement": claim.statement} for claim in s.claims],
    }


def _plain_verdict(v: "Verdict") -> dict[str, Any]:
    return {
        "id": v.id,
        "statement": v.statement,
        "kind": v.kind,
        "reading": v.reading,
        "verdict": v.verdict,
        "predicted": v.predicted,
        "measured": v.measured.value,
        "interval": [v.measured.low, v.measured.high],
        "seeds": v.seeds,
        "tolerance": list(v.tolerance),
        "conditions": [
            {"name": c.name, "holds": c.holds, "margin": c.margin, "met": c.met, "cells": c.cells}
            for c in v.conditions
        ],
        "sentence": v.sentence,
        "excluded": list(v.excluded),
        "left_out": dict(v.left_out),
        "violations": v.violations.value if v.violations else None,
        "looseness": v.looseness,
        "seen": v.seen,
        "more_seeds": v.more_seeds,
        "draw": v.draw,
        "looks": v.looks,
        "note": v.note,
    }


def _print_verdicts(verdicts: "list[Verdict]") -> None:
    read = any(v.reading for v in verdicts)
    head = (
        "claim",
        *(["reading"] if read else []),
        "verdict",
        "measured [interval]",
        "holds within",
        "cells inside",
        "draw",
    )
    for title, chosen in (
        ("Verdicts", [v for v in verdicts if v.kind != "identity"]),
        ("Identities, to rounding", [v for v in verdicts if v.kind == "identity"]),
    ):
        rows = [
            (
                v.id,
                *([v.reading] if read else []),
                v.verdict,
                _interval(v),
                _range(v.tolerance),
                _met(v),
                str(v.draw),
            )
            for v in chosen
        ]
        if rows:
            _print_table(title, head, rows)
    for v in verdicts:
        said = [f"{v.statement.rstrip('.')}.", f"Predicted: {v.predicted}.", _seen(v), v.note]
        if v.more_seeds:
            said.append(f"About {v.more_seeds} more seeds would decide.")
        print(f"{v.id}{f' [{v.reading}]' if v.reading else ''} ({v.kind}): {' '.join(filter(None, said))}")
    _print_violations(verdicts)


def _met(v: "Verdict") -> str:
    """In how many cells all conditions but the hopeless ones are met: the fewest of any condition, of all cells."""
    if not v.conditions:
        return ""
    worst = min(v.conditions, key=lambda c: c.met / max(c.cells, 1))
    return f"{worst.met} of {worst.cells}"


def _seen(v: "Verdict") -> str:
    """What a reader must know beside the number: excluded predictions, range, looseness."""
    said = [f"{number} is excluded." for number in v.excluded]
    said += [f"Seen over {v.seen}."] if v.seen else []
    said += [f"The measurement lies {v.looseness}."] if v.looseness else []
    return " ".join(said)


def _print_violations(verdicts: "list[Verdict]") -> None:
    """The conditions of the theorems that were not met everywhere where the verdicts were measured, once each."""
    missed = {c.name: c for v in verdicts for c in v.conditions if c.met < c.cells}
    if missed:
        print("Conditions of the theorems that are not met in every cell (hidden constants taken as 1):")
    for c in missed.values():
        worst = f"at worst by a factor {1 / c.margin:.3g}" if c.margin > 0 else "at worst entirely"
        print(f"  {c.name}: met in {c.met} of {c.cells} cells, missed {worst}")


def _margin(margin: float) -> str:
    """How far a condition is met; in words where no number says it."""
    if math.isinf(margin):
        return "asks for nothing here"
    return f"{margin:.3g}" if margin > 0 else "out of reach here"


def _range(tolerance: tuple[float, float]) -> str:
    low, high = tolerance
    if math.isinf(low) or math.isinf(high):
        return f"at most {high:g}" if math.isinf(low) else f"at least {low:g}"
    return f"{low:g} to {high:g}"


def _interval(v: "Verdict") -> str:
    return (
        f"{v.measured.value:.3g} [{v.measured.low:.3g}, {v.measured.high:.3g}]"
        if v.measured.exists
        else "none"
    )


def _print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", padding=(0, 1), pad_edge=False)
    for name in head:
        table.add_column(name, no_wrap=name in ("claim", "verdict"))
    colours = {"holds": "green", "fails": "red", "inconclusive": "yellow", "met": "green", "violated": "red"}
    for row in rows:
        table.add_row(*(f"[{colours[text]}]{text}[/]" if text in colours else escape(text) for text in row))
    wide = Console()
    wide.width = max(wide.width, 100)
    wide.print(table)


def _print_json(content: dict[str, Any]) -> None:
    def finite(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: finite(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [finite(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    print(json.dumps(finite(content), indent=2))


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, like every other error of the lab."""

    def error(self, message: str) -> Any:
        print(f"lemmata: {message} (see '{self.prog} --help').", file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="lemmata", description="A laboratory for theorems about how attention models train."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    def command(word: str, function: Any, help: str, /, **positional: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(word, help=help, description=help)
        sub.set_defaults(command=function)
        for argument, meaning in positional.items():
            sub.add_argument(argument, help=meaning)
        return sub

    def running(sub: argparse.ArgumentParser, scale: str | None) -> None:
        sub.add_argument(
            "--scale", default=scale, help="smoke (seconds), quick (minutes, the default) or paper"
        )
        sub.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="PATH=VALUE",
            help="change a field (@FILE: to what it holds)",
        )
        sub.add_argument("--seeds", type=int, help="how many seeds")
        sub.add_argument(
            "--workers", type=int, help="worker processes (default: one a core; 0: none but this one)"
        )
        sub.add_argument(
            "--on", default="local", help="local, dask, dask://HOST:PORT, slurm, or spool (lemmata work DIR)"
        )
        sub.add_argument("--limit", type=float, metavar="SECONDS", help="how long a cell may take")
        sub.add_argument("--fail-fast", action="store_true", help="stop at the first cell that fails")
        sub.add_argument("--out", help="folder of the results (default: runs/STUDY/FIGURE/SCALE)")
        sub.add_argument("--json", action="store_true", help="one JSON object on standard output")
        sub.add_argument("--strict", action="store_true", help="exit code 1 if a cell or a claim failed")

    command("list", list_studies, "Studies, figures, claims").add_argument("--json", action="store_true")
    command(
        "show",
        show,
        "What a study or figure says, its notation, decisions and cost",
        name="STUDY or STUDY/FIGURE",
    )
    about = "Run a figure, or a sweep file; resumes by itself"
    sub = command("run", run, about, name="STUDY/FIGURE, FILE.toml or DIR")
    running(sub, None)
    sub.add_argument("--reading", default="", help="one of the figure's readings (see show)")
    sub.add_argument(
        "--adaptive", action="store_true", help="train only near the boundary that the figure shows"
    )
    sub.add_argument("--width", type=float, help="how wide the interval of its exponent may be (0.2)")
    sub.add_argument(
        "--budget", type=int, help="most trainings of an adaptive run (default: those of the full grid)"
    )
    sub = command("check", check, "Run what is missing and judge the claims", name="STUDY or STUDY/CLAIM")
    running(sub, "quick")
    sub.add_argument(
        "--inside", action="store_true", help="judge only cells that satisfy the theorem's conditions"
    )
    sub.add_argument("--until-decided", action="store_true", help="add seeds until every claim is decided")
    sub.add_argument(
        "--budget", type=int, help="most trainings that --until-decided adds (default: as many again)"
    )
    sub = command(
        "predict", predict, "Conditions with margins and predictions, without training", name="STUDY"
    )
    sub.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    sub.add_argument("--json", action="store_true")
    sub = command("figure", figure, "Draw again from stored results", name="STUDY/FIGURE or DIR")
    sub.add_argument("--format", choices=("png", "pdf", "svg"), default="png")
    sub.add_argument("--scale")
    sub.add_argument("--out", help="folder of the results")
    sub.add_argument("--to", help="folder of the picture (default: beside the results)")
    command("status", status, "What a store holds", dir="DIR").add_argument("--json", action="store_true")
    command("verify", verify, "Is a store whole", dir="DIR")
    command("repair", repair, "Rebuild what is damaged in a store from what is whole", dir="DIR")
    command("work", work, "Work on what a run with --on spool or slurm offers in its folder", dir="DIR")
    sub = command("export", export, "Results as netCDF or parquet", dir="DIR")
    sub.add_argument("--to", required=True, metavar="FILE.nc|FILE.parquet")
    about = "One self-contained HTML page from what is stored, or only its verdicts (FILE.md, FILE.json)"
    sub = command("report", report, about)
    sub.add_argument("studies", nargs="*", metavar="STUDY", help="default: all that have results")
    sub.add_argument("--scale", default="quick")
    sub.add_argument("--to", default="report.html", metavar="FILE")
    sub = command(
        "ledger", ledger, "Every numbered statement of the paper and what it is held against", name="STUDY"
    )
    sub.add_argument("--json", action="store_true")
    sub = command("lock", lock, "Register what the claims measure; changed claims get fresh seeds")
    sub.add_argument("studies", nargs="*", metavar="STUDY", help="default: all")
    sub.add_argument("--check", action="store_true", help="only say whether lock and claims agree")
    command("cite", cite, "BibTeX of the paper", name="STUDY")
    sub = command(
        "bench", bench, "Measure speed against PyTorch and JAX by hand (from a clone of the project)"
    )
    sub.add_argument("workload", nargs="?", help="a study, or swarm (default: all of them)")
    sub.add_argument("--only", metavar="PART", help="steps, chunk, figure, growth or extra (default: all)")
    sub.add_argument("--paper", action="store_true", help="figures at the size of the paper")
    sub.add_argument("--rounds", type=int, default=5, help="turns of each contestant (default: 5)")
    sub.add_argument("--readme", action="store_true", help="write benchmarks/README.md from the kept results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
