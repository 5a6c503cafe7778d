"""The command line: parser, exit codes, and the workers that a command starts.

`commands` and `store_commands` define what each command does.
"""

import argparse
import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lemmata import __version__, commands, device, ending, store_commands
from lemmata.completion import SCRIPTS, candidates
from lemmata.errors import BadInput, clipped, note
from lemmata.study import studies

EXAMPLES = {
    "list": ("list", "list benign-overfitting"),
    "show": ("show benign-overfitting", "show benign-overfitting/fig1"),
    "run": ("run benign-overfitting/fig1", "run benign-overfitting/fig1 --set samples=4,8,12 --seeds 3"),
    "check": ("check benign-overfitting/fig1", "check multihead/margin-order-everywhere --verbose"),
    "refute": (
        "refute chain-of-thought/cot-to-zero --budget 200",
        "refute multihead --budget 10m --frontier",
    ),
    "plan": (
        "plan chain-of-thought --want 'cot_error<0.05' --vary length",
        "plan benign-overfitting/fig1 --want 'test_loss<0.1' --vary signal_norm",
    ),
    "predict": (
        "predict benign-overfitting --set samples=50",
        "predict benign-overfitting --set samples=10,20,50 --plot needs.png",
        "predict shallow-vit --solve relevant_fraction",
    ),
    "figure": (
        "figure benign-overfitting/fig1 --format pdf",
        "figure runs/benign-overfitting/fig1 --venue neurips",
    ),
    "status": ("status runs/benign-overfitting/fig1", "status benign-overfitting/fig1 --json"),
    "verify": ("verify runs/benign-overfitting/fig1", "verify runs/benign-overfitting/fig1/quick"),
    "repair": ("repair runs/benign-overfitting/fig1", "repair runs/benign-overfitting/fig1/quick"),
    "work": ("work runs/benign-overfitting/fig1/quick", "work /shared/fig1"),
    "export": (
        "export benign-overfitting/fig1 --to results.nc",
        "export runs/benign-overfitting/fig1 --to claims.json",
    ),
    "report": ("report", "report benign-overfitting --to benign.html"),
    "ledger": ("ledger benign-overfitting", "ledger multihead --json"),
    "lock": ("lock benign-overfitting", "lock --check"),
    "new": ("new double-descent", "new my-study"),
    "data": ("data", "data get mnist --from mnist.npz"),
    "cite": ("cite benign-overfitting", "cite multihead"),
    "complete": ("complete bash", "complete zsh"),
    "bench": ("bench multihead", "bench --only steps --rounds 3"),
}
"""Two examples of each command, for its `--help`."""


EXPORTED = (
    ".nc (everything), .parquet, .csv (a row a run), .json, .tex (verdicts), .pdf, .png, .svg (picture)"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command and return the exit code.

    0: done; 1: failed under --strict; 2: bad input; 130: interrupted; 143: ended by a signal.
    """
    if arguments is None:
        ending.install_signal_handlers()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--complete"]:  # asked by a shell, see `lemmata complete`
        print("\n".join(candidates(command_parser(), words[1:])))
        return 0
    options = command_parser().parse_args(words)
    try:
        with _workers_started(options):
            code = options.command(options) or 0
        sys.stdout.flush()  # write now, while an error can still be reported
        return code
    except BadInput as error:
        note(str(error))
    except BrokenPipeError:
        _throw_output_away()
        return 0
    except OSError as error:
        _throw_output_away()
        where = f" '{error.filename}'" if error.filename else ""
        note(f"the system refuses{where}: {error.strerror or error}.")
    except MemoryError:
        note("this takes more memory than there is; choose a smaller scale, fewer workers or fewer seeds.")
    return 2


def _throw_output_away() -> None:
    """Send the rest of the output to the null device. Otherwise Python would write it again at exit, and fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _workers_started(options: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Start the workers of a command that trains, before this process loads what it needs itself.

    Kernels that are not compiled yet are compiled meanwhile, so that two workers do not wait for one of them to do it.
    """
    if not hasattr(options, "device"):
        return contextlib.nullcontext()
    _select_device(options)
    if options.on != "local":
        return contextlib.nullcontext()
    from lemmata import kernels
    from lemmata.lab.pool import require_capacity
    from lemmata.lab.process import prestart_workers

    require_capacity(commands.workers(options))
    own = studies().get(options.name.partition("/")[0])
    if own is not None:
        threading.Thread(target=kernels.prepare, args=(own.folder,), daemon=True).start()
    return prestart_workers(commands.workers(options), "lemmata.lab.work")


def _select_device(options: argparse.Namespace) -> None:
    """Choose the device of the workers, and the CPU for this process if it only drives them."""
    if options.device:
        os.environ["LEMMATA_DEVICE"] = options.device
    os.environ["LEMMATA_DEVICE"] = device.chosen()  # workers inherit it, whichever device this process uses
    if not device.on_cpu():
        if options.on.startswith("dask"):
            raise BadInput("the workers of a Dask cluster train on the CPU: leave out --device, or --on.")
        note(device.NOTE)
    if options.on == "local" and commands.workers(options) == 0:
        device.select(os.environ)
    else:
        os.environ["JAX_PLATFORMS"] = "cpu"


class _Parser(argparse.ArgumentParser):
    """Reports an error in one sentence, as the rest of the lab does."""

    def error(self, message: str) -> Any:
        note(f"{clipped(message, 400)} (see '{self.prog} --help').")
        sys.exit(2)


def command_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="lemmata", description="A laboratory for theorems about how attention models train."
    )
    parser.add_argument("--version", action="version", version=f"lemmata {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    def command(word: str, function: Any, help: str, /, **positional: str) -> argparse.ArgumentParser:
        examples = "\n".join(("examples:", *(f"  lemmata {line}" for line in EXAMPLES.get(word, ()))))
        raw = argparse.RawDescriptionHelpFormatter
        sub = subparsers.add_parser(word, help=help, description=help, epilog=examples, formatter_class=raw)
        sub.set_defaults(command=function)
        for argument, meaning in positional.items():
            sub.add_argument(argument, help=meaning)
        return sub

    def searching(sub: argparse.ArgumentParser) -> None:
        where(sub)
        sub.add_argument("--out", help="folder of the search (default: runs/STUDY/refute)")
        sub.add_argument("--json", action="store_true", help="one JSON object on standard output")
        sub.add_argument("--strict", action="store_true", help="exit code 1 if a claim is refuted")

    def printing(sub: argparse.ArgumentParser) -> None:
        about = "what to print in place of text; a pipe gets rows separated by tabs"
        sub.add_argument("--format", choices=("json", "csv", "md"), help=about)
        about = "the same as --format json"
        sub.add_argument("--json", dest="format", action="store_const", const="json", help=about)

    def where(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--workers", type=int, help="worker processes (default: one a core; 0: none but this one)"
        )
        sub.add_argument(
            "--on", default="local", help="local, dask, dask://HOST:PORT, slurm, or spool (lemmata work DIR)"
        )
        sub.add_argument(
            "--device",
            choices=device.DEVICES,
            help="what workers train on (default: LEMMATA_DEVICE, or the CPU)",
        )
        sub.add_argument("--limit", type=float, metavar="SECONDS", help="how long a cell may take")

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
        where(sub)
        sub.add_argument("--fail-fast", action="store_true", help="stop at the first cell that fails")
        sub.add_argument("--out", help="folder of the results (default: runs/STUDY/FIGURE/SCALE)")
        printing(sub)
        sub.add_argument("--strict", action="store_true", help="exit code 1 if a cell or a claim failed")
        sub.add_argument("--all", action="store_true", help="list all claims, not only the main results")
        sub.add_argument("--verbose", action="store_true", help="with statements, conditions and a legend")

    sub = command("list", commands.list_studies, "The studies; the figures and claims of one")
    sub.add_argument("name", nargs="?", default="", metavar="STUDY", help="list its figures and claims")
    sub.add_argument("--all", action="store_true", help="all claims of a study, not only the main results")
    printing(sub)
    sub = command("show", commands.show, "What a study or figure says, its notation, decisions and cost")
    sub.add_argument("name", nargs="?", default="", help="STUDY or STUDY/FIGURE")
    sub.add_argument("--system", action="store_true", help="what trains here: compiler, kernels, JAX, device")
    about = "Run a figure, or a sweep file; resumes by itself"
    sub = command("run", commands.run, about, name="STUDY/FIGURE, FILE.toml or DIR")
    running(sub, None)
    sub.add_argument("--reading", default="", help="one of the figure's readings (see show)")
    sub.add_argument(
        "--adaptive", action="store_true", help="train only near the boundary that the figure shows"
    )
    sub.add_argument("--width", type=float, help="how wide the interval of its exponent may be (0.2)")
    sub.add_argument(
        "--budget", type=int, help="most trainings of an adaptive run (default: those of the full grid)"
    )
    sub = command(
        "check",
        commands.check,
        "Run what is missing and judge the claims",
        name="STUDY, STUDY/FIGURE or STUDY/CLAIM",
    )
    running(sub, "quick")
    sub.add_argument(
        "--inside", action="store_true", help="judge only cells that satisfy the theorem's conditions"
    )
    sub.add_argument("--until-decided", action="store_true", help="add seeds until every claim is decided")
    sub.add_argument(
        "--budget", type=int, help="most trainings that --until-decided adds (default: as many again)"
    )
    about = "Search inside a theorem's conditions for a counter-example"
    sub = command("refute", commands.refute, about, name="STUDY, STUDY/FIGURE or STUDY/CLAIM")
    sub.add_argument(
        "--budget",
        default="10m",
        help="a time (90s, 10m, 1h), a number of points, or both (200,10m) (default: 10m)",
    )
    sub.add_argument(
        "--constants", type=float, default=1.0, metavar="C", help="margin asked of order-wise conditions (1)"
    )
    sub.add_argument("--frontier", action="store_true", help="which conditions the claims need")
    sub.add_argument(
        "--to", metavar="FILE.json", help="add the answers to a record, such as searches.json of a study"
    )
    searching(sub)
    about = "How much of something it takes: theory first, then a few trainings"
    sub = command("plan", commands.plan, about, name="STUDY or STUDY/FIGURE")
    sub.add_argument("--want", required=True, metavar="Q<V", help="a record, < or >, and a value")
    sub.add_argument(
        "--vary", required=True, metavar="FIELD", help="what to vary: an axis, or a dimension such as length"
    )
    sub.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="change a field")
    sub.add_argument("--budget", type=int, help="most trainings (default: up to 20 seeds a value)")
    where(sub)
    sub.add_argument("--out", help="folder of the trainings (default: runs/STUDY/plan)")
    sub.add_argument("--json", action="store_true", help="one JSON object on standard output")
    sub = command(
        "predict", commands.predict, "Conditions with margins and predictions, without training", name="STUDY"
    )
    about = "set a field; several values give a table: samples=10,20,50"
    sub.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help=about)
    about = "find the smallest value of a field at which the study predicts success"
    sub.add_argument("--solve", metavar="FIELD", help=about)
    sub.add_argument("--plot", metavar="FILE", help="draw a table: .png, .pdf or .svg")
    sub.add_argument("--all", action="store_true", help="all predictions in a table, not only the main ones")
    printing(sub)
    sub = command(
        "figure", store_commands.figure, "Draw again from stored results", name="STUDY/FIGURE or DIR"
    )
    sub.add_argument("--format", choices=("png", "pdf", "svg"), help="png is the default")
    about = "a PDF at the width of its page, with the numbers as CSV beside it"
    sub.add_argument("--venue", choices=("neurips", "icml", "iclr"), help=about)
    sub.add_argument("--scale")
    sub.add_argument("--out", help="folder of the results")
    sub.add_argument("--to", help="folder of the picture (default: beside the results)")
    printing(command("status", store_commands.status, "What a store holds", dir="DIR"))
    command("verify", store_commands.verify, "Is a store whole", dir="DIR")
    command(
        "repair", store_commands.repair, "Rebuild what is damaged in a store from what is whole", dir="DIR"
    )
    command(
        "work",
        store_commands.work,
        "Work on what a run with --on spool or slurm offers in its folder",
        dir="DIR",
    )
    sub = command("export", store_commands.export, "Results, verdicts or the picture as a file", dir="DIR")
    sub.add_argument("--to", required=True, metavar="FILE", help=EXPORTED)
    about = "One self-contained HTML page from what is stored, or only its verdicts (FILE.md, FILE.json)"
    sub = command("report", commands.report, about)
    sub.add_argument("studies", nargs="*", metavar="STUDY", help="default: all that have results")
    sub.add_argument("--scale", default="quick")
    sub.add_argument("--to", default="report.html", metavar="FILE")
    sub = command(
        "ledger",
        commands.ledger,
        "Every numbered statement of the paper and what it is held against",
        name="STUDY",
    )
    printing(sub)
    sub = command("lock", commands.lock, "Register what the claims measure; changed claims get fresh seeds")
    sub.add_argument("studies", nargs="*", metavar="STUDY", help="a study or its package (default: all)")
    sub.add_argument(
        "--check", action="store_true", help="write nothing; say what has changed and what cannot work"
    )
    about = "Write a package with a working study of your own"
    command("new", commands.new, about, name="name of the study and of the folder, such as double-descent")
    sub = command("data", commands.data, "Real data sets: list them, get one, verify those that are here")
    printing(sub)
    verbs = sub.add_subparsers(dest="verb", metavar="get|verify", parser_class=_Parser)
    verb = verbs.add_parser("get", help="Download a data set, or read it with --from")
    verb.add_argument("set", metavar="NAME", help="a data set (see lemmata data)")
    about = "an official archive, a folder with its files, or an .npz file"
    verb.add_argument("--from", dest="source", type=Path, metavar="PATH", help=about)
    verb = verbs.add_parser("verify", help="Check the data sets that are here")
    verb.add_argument("set", nargs="?", metavar="NAME", help="a data set (default: all that are here)")
    about = "What to add to ~/.bashrc or ~/.zshrc, so that Tab completes"
    sub = command("complete", commands.complete, about)
    sub.add_argument("shell", choices=tuple(SCRIPTS))
    command("cite", commands.cite, "BibTeX of the paper", name="STUDY")
    sub = command(
        "bench", commands.bench, "Measure speed against PyTorch and JAX by hand (from a clone of the project)"
    )
    sub.add_argument("workload", nargs="?", help="a study, or swarm (default: all of them)")
    sub.add_argument("--only", metavar="PART", help="steps, chunk, figure, growth or extra (default: all)")
    sub.add_argument("--paper", action="store_true", help="figures at the size of the paper")
    sub.add_argument("--rounds", type=int, default=5, help="turns of each contestant (default: 5)")
    sub.add_argument("--readme", action="store_true", help="write benchmarks/README.md from the kept results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
