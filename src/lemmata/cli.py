"""The commands. Nothing heavy is imported until a command needs it."""

import argparse
import json
import math
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemmata.errors import BadInput
from lemmata.lab.pool import heeding_interrupts
from lemmata.study import SCALES, Study, studies, study

if TYPE_CHECKING:
    import xarray as xr

    from lemmata.lab.order import Order
    from lemmata.measure.compare import Verdict

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; returns the exit code (0 done, 1 failed under --strict, 2 bad input, 130 interrupted)."""
    options = _parser().parse_args(arguments)
    try:
        with heeding_interrupts():
            return options.command(options) or 0
    except BadInput as error:
        print(f"lemmata: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print(
            "\nlemmata: interrupted; finished chunks are kept. Run the same command again to do the rest.",
            file=sys.stderr,
        )
        return INTERRUPTED
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
        print(f"    {len(s.claims)} claims: {', '.join(s.claims)}")


def show(options: argparse.Namespace) -> None:
    study_id, _, figure_id = options.name.partition("/")
    s = study(study_id)
    if not figure_id:
        print(f"{s.title}\n\n{s.summary}\n\nFigures")
        for id, title in s.figures.items():
            print(f"  {id}: {title}")
        print("\nClaims")
        for id, statement in s.claims.items():
            print(f"  {id}: {statement}")
        readme = Path(sys.modules[s.package].__file__ or "").with_name("README.md")
        if readme.exists():
            print(f"\n{readme.read_text()}")
        return
    figure = s.figure(figure_id)
    print(f"{s.id}/{figure.id}: {s.figures[figure.id]}\n\nReading: {figure.reading}\n")
    from lemmata.sweep import buckets
    from lemmata.trial import Descending, fields

    for scale in SCALES:
        sweep = figure.sweep(scale)
        grid = ", ".join(f"{name} ({len(labels)})" for name, labels in sweep.dims.items())
        cap = f", at most {sweep.template.steps} steps each" if isinstance(sweep.template, Descending) else ""
        print(f"{scale}: {len(sweep.cells)} trainings in {len(buckets(sweep.cells))} programs{cap}; {grid}")
    print("\nFields for --set, with their values at the scale 'quick':")
    for path, value in fields(figure.sweep("quick").template).items():
        print(f"  {path} = {value}")
    bearing = [id for id in s.claims if s.claim(id).figure == figure.id]
    print(f"\nClaims it bears on: {', '.join(bearing) or 'none'}")
    for id in bearing:
        claim = s.claim(id)
        print(f"  {id} ({claim.reference}): {s.claims[id]}")
        print(f"    predicted {claim.predicted}; holds within {_range(claim.tolerance)}: {claim.reason}")


def run(options: argparse.Namespace) -> int:
    order = _order(options.name, options)
    order.sweep.cells  # noqa: B018  (built now, so that bad input shows before anything is written)
    if options.adaptive:
        return _run_adaptive(order, options)
    results = _carry_out(order, options)
    verdicts = order.study.check(results)
    picture = None if order.axes else order.draw(results, verdicts)
    counts = _counts(order)
    report = {
        "study": order.study.id,
        "figure": order.figure.id,
        "scale": order.scale,
        "store": str(order.store.path),
        **counts,
        "picture": str(picture) if picture else None,
    }
    if options.json:
        _print_json(report)
    else:
        _print_verdicts(verdicts)
        print(f"\n{counts['done']} of {counts['cells']} cells done, {counts['failed']} failed")
        print(f"results: {order.store.path}" + (f"\npicture: {picture}" if picture else ""))
    return int(options.strict and (counts["failed"] > 0 or any(v.verdict == "fails" for v in verdicts)))


def check(options: argparse.Namespace) -> int:
    study_id, _, claim_id = options.name.partition("/")
    s = study(study_id)
    chosen = [s.claim(claim_id)] if claim_id else [s.claim(id) for id in s.claims]
    figures = dict.fromkeys(claim.figure for claim in chosen)
    orders = {id: _order(f"{s.id}/{id}", options) for id in figures}
    if options.out and len(orders) > 1:
        orders = {id: replace(order, out=Path(options.out) / id) for id, order in orders.items()}
    results = {id: _carry_out(order, options) for id, order in orders.items()}
    if options.until_decided:
        verdicts = _until_decided(s, orders, results, claim_id or None, options)
    else:
        verdicts = s.check(*results.values(), only=claim_id or None)
    if options.json:
        _print_json({"study": s.id, "scale": options.scale, "claims": [_plain_verdict(v) for v in verdicts]})
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
        (c.name, {True: "met", False: "violated", None: "order only"}[c.holds], f"{c.margin:.3g}")
        for c in conditions
    ]
    _print_table("Conditions", ("condition", "", "margin (1 = just met)"), rows)
    value = [(p.name, p.value if isinstance(p.value, str) else f"{p.value:.4g}") for p in predictions]
    _print_table("Predictions", ("what", "value"), value)


def figure(options: argparse.Namespace) -> None:
    order = _order(options.name, options)
    if not order.store.exists:
        raise BadInput(f"nothing is stored in '{order.store.path}' yet; run first: {order.command}")
    results = order.results()
    print(order.draw(results, order.study.check(results), options.format))


def status(options: argparse.Namespace) -> None:
    order = _order(options.dir, options)
    manifest, counts = order.store.manifest, _counts(order)
    if options.json:
        return _print_json({"store": options.dir, **counts, "manifest": manifest})
    print(
        f"{manifest['study']}/{manifest['figure']} at scale {manifest['scale']}, started {manifest['started']}"
    )
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    reasons = {entry["reason"] for entry in order.store.entries().values() if entry["reason"]}
    for reason in sorted(reasons):
        print(f"  failed because: {reason}")
    print(f"to repeat or resume: {manifest['command']}")


def verify(options: argparse.Namespace) -> int:
    order = _order(options.dir, options)
    problems = order.store.problems()
    for problem in problems:
        print(problem)
    print("whole" if not problems else f"{len(problems)} problems")
    return int(bool(problems))


def export(options: argparse.Namespace) -> None:
    order = _order(options.dir, options)
    results = order.results()
    path = Path(options.to)
    try:
        if path.suffix == ".nc":
            results.to_netcdf(path)
        elif path.suffix == ".parquet":
            scalars = results[
                [name for name in results.data_vars if set(results[name].dims) <= set(order.sweep.dims)]
            ]
            scalars.to_dataframe().reset_index().to_parquet(path)
        else:
            raise BadInput(f"can export to .nc (netCDF) or .parquet, not to '{path.name}'.")
    except (ImportError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"cannot export to '{path.name}': {error}; install lemmata[export].") from None
    except OSError as error:
        raise BadInput(f"cannot write '{path}': {error.strerror}.") from None
    print(path)


def report(options: argparse.Namespace) -> None:
    from lemmata.lab.order import place_order
    from lemmata.report import Chapter, page

    parts = []
    for s in [study(id) for id in options.studies] or studies().values():
        orders = [place_order(f"{s.id}/{id}", options.scale) for id in s.figures]
        stored = {order.figure.id: order for order in orders if order.store.exists}
        results = {id: order.results() for id, order in stored.items()}
        verdicts = s.check(*results.values())
        chapters = []
        for id, order in stored.items():
            own = [v for v in verdicts if s.claim(v.id).figure == id]
            picture = order.draw(results[id], own)
            chapters.append(Chapter(id, s.figures[id], order.figure.reading, order.command, picture, own))
        if chapters:
            parts.append((s, chapters))
    if not parts:
        raise BadInput(
            f"nothing is stored at scale '{options.scale}' yet; run a figure or check a study first."
        )
    path = Path(options.to)
    try:
        path.write_text(page(parts), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write '{path}': {error.strerror}.") from None
    print(path)


def cite(options: argparse.Namespace) -> None:
    print(study(options.name).citation.strip())


# Parts of commands -----------------------------------------------------------------------------------------------------


def _order(name: str, options: argparse.Namespace) -> "Order":
    from lemmata.lab.order import place_order

    def given(option: str) -> Any:
        return getattr(options, option, None)

    out = given("out")
    return place_order(
        name, given("scale"), _changes(given("set") or []), given("seeds"), Path(out) if out else None
    )


def _changes(pairs: Iterable[str]) -> dict[str, str]:
    changes = {}
    for pair in pairs:
        path, equals, value = pair.partition("=")
        if not equals:
            raise BadInput(f"--set takes PATH=VALUE, not '{pair}'.")
        changes[path] = value
    return changes


def _carry_out(order: "Order", options: argparse.Namespace) -> "xr.Dataset":
    """Run what is missing, with a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from lemmata.lab.pool import cache_compilations
    from lemmata.lab.run import missing

    cache_compilations()
    workers = _workers(options)
    to_do = len(missing(order.sweep, order.store))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        name = f"{order.study.id}/{order.figure.id} ({order.scale})"
        task = bar.add_task(name, total=len(order.sweep.cells), completed=len(order.sweep.cells) - to_do)
        return order.run(min(workers, max(to_do, 1)), lambda cells: bar.advance(task, cells))


def _run_adaptive(order: "Order", options: argparse.Namespace) -> int:
    """Run only what narrows the figure's boundary; say what was found and at what price."""
    from lemmata.descent import STATUS
    from lemmata.lab.pool import cache_compilations

    cache_compilations()
    full = len(order.sweep.cells)
    done = 0

    def progress(cells: int) -> None:
        nonlocal done
        done += cells
        print(
            f"\r{order.study.id}/{order.figure.id} (adaptive): {done} trainings",
            end="",
            file=sys.stderr,
            flush=True,
        )

    found = order.refine(options.width, options.budget or full, _workers(options), progress)
    print(file=sys.stderr)
    law, verdicts = found.boundary.exponent, order.study.check(found.results)
    picture = None if order.axes else order.draw(found.results, verdicts)
    if options.json:
        _print_json(
            {
                "study": order.study.id,
                "figure": order.figure.id,
                "scale": order.scale,
                "store": str(order.store.path),
                "cells": full,
                "done": found.trainings,
                "failed": int((found.results["status"] == STATUS.index("failed")).sum()),
                "exponent": {"value": law.value, "interval": [law.low, law.high], "note": law.note},
                "picture": str(picture) if picture else None,
            }
        )
    else:
        said = f"{law.value:.3g} [{law.low:.3g}, {law.high:.3g}]" if law.exists else law.note
        print(f"exponent of the boundary: {said} from {found.trainings} trainings (the full grid has {full})")
        print(f"results: {order.store.path}" + (f"\npicture: {picture}" if picture else ""))
    return 0


def _until_decided(
    s: Study, orders: "dict[str, Order]", results: "dict[str, xr.Dataset]", only: str | None, options: Any
) -> "list[Verdict]":
    """Add seeds where claims are still open, until all are decided or the budget of extra trainings is spent.

    Looking again and again would decide wrongly more often than once, so each look gets half the error of the one
    before: 2.5 %, 1.25 %, ... of false discoveries, 5 % in all.
    """
    rate = 0.025
    left = options.budget or sum(len(order.sweep.cells) for order in orders.values())
    while True:
        verdicts = s.check(*results.values(), only=only, rate=rate)
        added = False
        for id, order in orders.items():
            seeds = len(order.sweep.seeds)
            price = len(order.sweep.cells) // seeds
            open_ = [v for v in verdicts if v.verdict == "inconclusive" and s.claim(v.id).figure == id]
            asked = max((v.more_seeds or 0 for v in open_), default=0)
            more = min(asked, seeds, left // price)  # at most twice the seeds: the estimate is rough
            if more > 0:
                orders[id] = replace(order, seeds=seeds + more)
                results[id] = _carry_out(orders[id], options)
                left, added = left - more * price, True
        if not added:
            return verdicts
        rate /= 2


def _workers(options: argparse.Namespace) -> int:
    if options.workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if options.workers < 0:
        raise BadInput(
            f"--workers takes a number of processes, or 0 for none but this one, not {options.workers}."
        )
    return options.workers


def _counts(order: "Order") -> dict[str, int]:
    entries = order.store.entries()
    found = [entries[cell.id]["status"] for cell in order.sweep.cells if cell.id in entries]
    return {
        "cells": len(order.sweep.cells),
        "done": sum(state != "failed" for state in found),
        "failed": sum(state == "failed" for state in found),
        "diverged": sum(state == "diverged" for state in found),
        "capped": sum(state == "capped" for state in found),
    }


def _title_page(s: Study) -> dict[str, Any]:
    return {
        "id": s.id,
        "title": s.title,
        "figures": [{"id": id, "title": title} for id, title in s.figures.items()],
        "claims": [{"id": id, "statement": statement} for id, statement in s.claims.items()],
    }


def _plain_verdict(v: "Verdict") -> dict[str, Any]:
    return {
        "id": v.id,
        "statement": v.statement,
        "verdict": v.verdict,
        "predicted": v.predicted,
        "measured": v.measured.value,
        "interval": [v.measured.low, v.measured.high],
        "seeds": v.seeds,
        "tolerance": list(v.tolerance),
        "conditions": [{"name": c.name, "holds": c.holds, "margin": c.margin} for c in v.conditions],
        "sentence": v.sentence,
        "more_seeds": v.more_seeds,
        "note": v.note,
    }


def _print_verdicts(verdicts: "list[Verdict]") -> None:
    rows = [(v.id, v.verdict, _interval(v), _range(v.tolerance)) for v in verdicts]
    _print_table("Verdicts", ("claim", "verdict", "measured [interval]", "holds within"), rows)
    for v in verdicts:
        more = f" About {v.more_seeds} more seeds would decide." if v.more_seeds else ""
        print(f"{v.id}: {v.statement}. Predicted: {v.predicted}. {v.note}{more}".rstrip())
    _print_violations(verdicts)


def _print_violations(verdicts: "list[Verdict]") -> None:
    """The conditions of the theorems that were not met where the verdicts were measured, once each."""
    missed = {c.name: c for v in verdicts for c in v.conditions if c.holds is False}
    if missed:
        print("The theorems' own conditions that these settings violate (hidden constants taken as 1):")
    for c in missed.values():
        print(f"  {c.name}: {f'by a factor {1 / c.margin:.3g}' if c.margin > 0 else 'entirely'}")


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
    from rich.table import Table

    table = Table(*head, title=title, title_justify="left")
    colours = {"holds": "green", "fails": "red", "inconclusive": "yellow", "met": "green", "violated": "red"}
    for row in rows:
        table.add_row(*(f"[{colours[text]}]{text}[/]" if text in colours else text for text in row))
    Console().print(table)


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
            "--set", action="append", default=[], metavar="PATH=VALUE", help="change a field; may be repeated"
        )
        sub.add_argument("--seeds", type=int, help="how many seeds")
        sub.add_argument(
            "--workers", type=int, help="worker processes (default: one a core; 0: none but this one)"
        )
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
    sub.add_argument(
        "--adaptive", action="store_true", help="train only near the boundary that the figure shows"
    )
    sub.add_argument(
        "--width", type=float, default=0.2, help="how wide the interval of its exponent may be (0.2)"
    )
    sub.add_argument(
        "--budget", type=int, help="most trainings of an adaptive run (default: those of the full grid)"
    )
    sub = command("check", check, "Run what is missing and judge the claims", name="STUDY or STUDY/CLAIM")
    running(sub, "quick")
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
    sub.add_argument("--out")
    command("status", status, "What a store holds", dir="DIR").add_argument("--json", action="store_true")
    command("verify", verify, "Is a store whole", dir="DIR")
    sub = command("export", export, "Results as netCDF or parquet", dir="DIR")
    sub.add_argument("--to", required=True, metavar="FILE.nc|FILE.parquet")
    sub = command("report", report, "One self-contained HTML page from what is stored")
    sub.add_argument("studies", nargs="*", metavar="STUDY", help="default: all that have results")
    sub.add_argument("--scale", default="quick")
    sub.add_argument("--to", default="report.html", metavar="FILE.html")
    command("cite", cite, "BibTeX of the paper", name="STUDY")
    return parser


if __name__ == "__main__":
    sys.exit(main())
