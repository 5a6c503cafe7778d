"""Command lines, sweep files, overrides, stores and calls that nobody would write: a right answer, or one sentence (exit code 2
or `BadInput`).

Every example is judged by the same rule: nothing but the exit codes 0, 1 and 2, and with 2 exactly one line on standard error.
Trainings are replaced by nothing at all, and so is the painting of finished pictures: what is tried is everything around them.
`LEMMATA_EXAMPLES` says how many examples of each kind are tried (10 000), `LEMMATA_SEED` which (0): many can be
tried in turns."""

import contextlib
import functools
import io
import json
import math
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from lemmata.cli import main
from lemmata.draw.style import Picture
from lemmata.errors import BadInput
from lemmata.lab import run as run_module
from lemmata.lab.disk import sealed_page
from lemmata.lab.outcome import Outcome, failed_record
from lemmata.lab.work import run_chunk
from lemmata.scale import SCALES
from lemmata.study import studies, study
from lemmata.trial import fields
from tests.test_calls import DOORS, SAMPLES

pytestmark = pytest.mark.slow

FIGURE = "benign-overfitting/fig1"
STORED = "benign-overfitting/fig4"
"""A figure with few cells and claims: thousands of its stores are damaged."""


def tried_often(test):
    often = settings(
        max_examples=int(os.environ.get("LEMMATA_EXAMPLES", "10000")),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    return seed(int(os.environ.get("LEMMATA_SEED", "0")))(often(test))


VALUES = (
    *(
        "",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "-1",
        "0",
        "1",
        "2",
        "0.5",
        "1e-320",
        "1e300",
        "-0.0",
        "999999999999",
    ),
    *(
        "true",
        "None",
        "[1]",
        "[",
        "[[1]]",
        "[1, 2",
        "{}",
        "1,2",
        ",",
        "1,1",
        "1,nan",
        "9" * 400,
        "1_0",
        "0x10",
    ),
    *(
        "a",
        "\u202e",
        "\udcff",
        "one two",
        "gram",
        "float32",
        "=",
        "--",
        "'",
        '"',
        "\n",
        "2 ",
        "1e3",
        "\u0663",
    ),
)
words = st.text(st.characters(exclude_characters="\0"), max_size=12)
values = st.sampled_from(VALUES) | st.integers().map(str) | st.floats().map(str) | words


def mutated(names):
    """Names that exist, most of the time."""
    known = st.sampled_from(sorted(names))
    return known | known | known.map(lambda name: name[:-1]) | known.map(str.upper) | words


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder to be in, with a finished store whose trainings were never run."""
    home = tmp_path_factory.mktemp("home")
    before = Path.cwd()
    os.chdir(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            run_module, "run_chunk", lambda chunk: iter([[imagined(c, chunk) for c in chunk.cells]])
        )
        patch.setattr(Picture, "savefig", lambda picture, path, **_: Path(path).write_bytes(b"painted"))
        yield home
    os.chdir(before)


def imagined(cell, chunk):
    return Outcome(cell.id, failed_record(), 0.0, "it was only imagined", "", chunk.source)


def tried(words):
    """Carry out a command and hold what it says against the rule."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    said = [line for line in error.getvalue().splitlines() if line.startswith("lemmata")]
    assert code in (0, 1, 2), (words, code)
    assert "Traceback" not in error.getvalue() + out.getvalue(), words
    if code == 2:
        assert len(said) == 1, (words, error.getvalue())
    return code


@functools.cache
def paths(figure=FIGURE):
    """What can be set in a figure: fields of its trial, and axes by their names."""
    id, _, name = figure.partition("/")
    sweep = study(id).figure(name).sweep("smoke")
    return [*fields(sweep.template), *(axis.name for axis in sweep.axes)]


options = st.one_of(
    st.tuples(st.just("--set"), st.builds("{}={}".format, mutated(paths()), values)),
    st.tuples(st.just("--set"), words),
    st.tuples(st.just("--seeds"), values),
    st.tuples(st.just("--workers"), st.sampled_from(("0", "-1", "x", "1e9", "99999999999"))),
    st.tuples(st.just("--on"), st.sampled_from(("local", "slrum", "dask://x", "dask://:1", ""))),
    st.tuples(st.just("--scale"), mutated(SCALES)),
    st.tuples(st.just("--out"), words | st.just("x" * 300) | st.just("a/../b") | st.just("/proc/none")),
    st.tuples(st.just("--reading"), mutated(study("benign-overfitting").figure("fig1").readings or ["x"])),
    st.tuples(st.just("--limit"), values),
    st.tuples(st.just("--budget"), values),
    st.tuples(st.just("--width"), values),
    st.tuples(st.sampled_from(("--adaptive", "--json", "--strict", "--fail-fast", "--inside", "--what"))),
    st.tuples(words),
)
COMMANDS = (
    "list",
    "show",
    "predict",
    "figure",
    "status",
    "verify",
    "repair",
    "export",
    "report",
    "ledger",
    "cite",
)


@tried_often
@given(
    command=st.sampled_from((*COMMANDS, "run", "run", "run", "check")) | words,
    name=mutated([*studies(), FIGURE, "benign-overfitting/boundary-exponent", "runs", "."]),
    options=st.lists(options, max_size=4),
)
def test_command_lines(home, command, name, options):
    begun = [command] if command in ("list", "report") else [command, name]
    small = ["--scale", "smoke", "--workers", "0"] if command in ("run", "check") else []
    tried([*begun, *small, *(word for option in options for word in option)])


# Sweep files -----------------------------------------------------------------------------------------------------------

scalars = (
    st.integers(-(2**70), 2**70)
    | st.floats()
    | st.booleans()
    | st.sampled_from(VALUES)
    | st.just(3)
    | st.just("smoke")
    | st.dates()
)
things = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
tables = st.dictionaries(mutated(paths()), things | st.lists(scalars, max_size=3), max_size=3)
files = st.fixed_dictionaries(
    {
        "study": st.just("benign-overfitting"),
        "figure": st.just("fig1"),
        "scale": st.just("smoke") | st.just("smoke") | things,
    },
    optional={
        "seeds": things,
        "out": words | things,
        "reading": things,
        "set": tables | things,
        "axes": tables | things,
        "stduy": things,
    },
)


def toml(thing):
    if isinstance(thing, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in thing.items()) + "}"
    if isinstance(thing, list):
        return f"[{', '.join(map(toml, thing))}]"
    if isinstance(thing, str):
        return json.dumps(thing)
    if isinstance(thing, float):
        return "nan" if math.isnan(thing) else str(thing)
    return str(thing).lower() if isinstance(thing, bool) else str(thing)


@tried_often
@given(file=files.map(lambda file: "\n".join(f"{k} = {toml(v)}" for k, v in file.items()).encode("utf-8", "replace"))
    | st.binary(max_size=60))  # fmt: skip
def test_sweep_files(home, file):
    (home / "sweep.toml").write_bytes(file)
    tried(["run", "sweep.toml", "--workers", "0"])


# Overrides -------------------------------------------------------------------------------------------------------------


FIELDS = {s.id: list(fields(s.template())) for s in studies().values()}


@st.composite
def overrides(draw):
    chosen = draw(st.sampled_from(sorted(FIELDS)))
    pairs = draw(st.lists(st.tuples(mutated(FIELDS[chosen]), values), min_size=1, max_size=3))
    return [chosen, *(word for path, value in pairs for word in ("--set", f"{path}={value}"))]


@tried_often
@given(given_words=overrides())
def test_overrides(home, given_words):
    tried(["predict", *given_words])


@st.composite
def changed_figures(draw):
    """A figure of any study with a few of its fields changed."""
    id = draw(st.sampled_from(sorted(FIELDS)))
    figure = draw(st.sampled_from(sorted(study(id).figures)))
    pairs = draw(st.lists(st.tuples(mutated(paths(f"{id}/{figure}")), values), min_size=1, max_size=2))
    return [f"{id}/{figure}", *(word for path, value in pairs for word in ("--set", f"{path}={value}"))]


@pytest.fixture(scope="module")
def known():
    """All figures are looked at before examples are drawn: what is imported then must not meddle with the drawing."""
    for id in FIELDS:
        for figure in study(id).figures:
            paths(f"{id}/{figure}")


@tried_often
@given(given_words=changed_figures())
def test_figures(home, known, given_words):
    shutil.rmtree(home / "changed", ignore_errors=True)
    tried(["run", *given_words, "--scale", "smoke", "--seeds", "1", "--workers", "0", "--out", "changed"])


# Calls -----------------------------------------------------------------------------------------------------------------


@st.composite
def calls(draw):
    """A public function with one or two of its arguments replaced by anything."""
    name = draw(st.sampled_from(sorted(DOORS)))
    replaced = draw(
        st.lists(st.sampled_from(sorted(DOORS[name].fitting)), min_size=1, max_size=2, unique=True)
    )
    anything = things | st.sampled_from(list(SAMPLES.values()))
    return name, {argument: draw(anything) for argument in replaced}


@tried_often
@given(call=calls())
def test_calls(home, call):
    name, replaced = call
    with contextlib.suppress(BadInput):
        DOORS[name].call(**{**DOORS[name].right, **replaced})


# Stores ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(home, tmp_path_factory):
    """A small finished store (trained for real, so that what is left of it is drawn and exported), as bytes by name."""
    folder = tmp_path_factory.mktemp("whole") / "store"
    order = ["run", STORED, "--scale", "smoke", "--workers", "0", "--out", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "run_chunk", run_chunk)
        assert main(order) == 0
    return Files(
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    )


class Files(dict):
    """The files of a store; told in a word, as Hypothesis tells every argument of a failing example."""

    def __repr__(self):
        return f"{len(self)} files"


damages = st.tuples(
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(("flip", "cut", "delete", "empty", "double", "swap", "garbage", "folder")),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 255),
)
manifests = st.dictionaries(
    st.sampled_from(("study", "figure", "scale", "reading", "draw", "looks", "changes", "added_axes", "seeds", "command",
                     "started", "starts", "trial")),
    things | st.just("benign-overfitting") | st.just("fig1") | st.just("fig4") | st.just("../..") | st.just({"data.dim": -1}),
    max_size=4,
)  # fmt: skip


def damaged(whole, damage):
    where, how, at, bits = damage
    content = dict(whole)
    name = sorted(content)[int(where * len(content))]
    data = content.pop(name)
    place = int(at * len(data))
    content[name] = {
        "flip": data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :] if data else b"x",
        "cut": data[:place],
        "delete": None,
        "empty": b"",
        "double": data + data,
        "swap": whole[sorted(whole)[bits % len(whole)]],
        "garbage": bytes((bits * k) % 256 for k in range(200)),
        "folder": ...,
    }[how]
    return content


def put(folder, content):
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if data is ...:
            path.mkdir()
        elif data is not None:
            path.write_bytes(data)


@tried_often
@given(
    damage=st.none() | damages,
    manifest=st.none() | manifests,
    commands=st.lists(
        st.sampled_from(("status", "verify", "repair", "figure", "export", "run")), min_size=1, max_size=3
    ),
)
def test_stores(home, whole, damage, manifest, commands):
    content = whole if damage is None else damaged(whole, damage)
    if manifest is not None:
        old = {k: v for k, v in json.loads(whole["manifest.json"]).items() if k != "checksum"}
        content = {
            **content,
            "manifest.json": sealed_page(json.loads(json.dumps({**old, **manifest}, default=str))),
        }
    folder = home / "damaged"
    put(folder, content)
    extra = {"run": ["--workers", "0"], "export": ["--to", "out.nc"]}
    for command in commands:
        tried([command, "damaged", *extra.get(command, [])])
