"""Kernels are compiled once, refuse what they do not take, and give way to JAX where they cannot run."""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lemmata as lm
from lemmata import kernels
from lemmata.errors import BadInput
from lemmata.kernels import HOME, Refused, signatures
from lemmata.threefry import new_key
from lemmata.trial import Descending, with_precision
from tests.kernels import needs_compiler, without_kernels

TWICE = """
#include "kernel.h"
template <typename T>
void twice(Call call) {
  for (int64_t n = 0; n < call.count_given(0); ++n)
    call.found<T>(0)[n] = 2 * call.given<T>(0)[n] + call.number("more");
}
KERNEL(twice, "x T[n], y T[n] -> z T[n] where more < n", twice)
"""
SOURCES = sorted(HOME.glob("*.cc"))


NUMBERS = count()


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel of its own text, name and cache: JAX takes a handler of one name only once."""
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "_failed", {})

    def written(text):
        path, name = tmp_path / "twice.cc", f"twice{next(NUMBERS)}"
        path.write_text(text.replace("KERNEL(twice", f"KERNEL({name}"))

        def plain(x, more=0):
            return x + x + more

        @kernels.kernel(path, plain)
        def doubled(x, more=0):
            return doubled.call(name, x, x, more=more)

        return doubled

    return written


@needs_compiler
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_every_kernel_of_the_lab_compiles(source):
    assert kernels.why_not(source) == ""


def test_every_function_of_a_kernel_declares_what_it_takes():
    for source in SOURCES:
        declared = re.findall(r"^(?:KERNEL|HANDLER)\(", source.read_text(), re.MULTILINE)
        assert len(signatures(source)) == len(declared) > 0


def test_kernels_need_no_function_that_gcc_11_lacks():
    """`shuffled` in `vectors.h` uses `__builtin_shufflevector` with Clang only."""
    code = {path.name: path.read_text(encoding="utf-8") for path in sorted(HOME.glob("*.[hc]*"))}
    users = [name for name, text in code.items() if "__builtin_shufflevector" in text]
    assert users == ["vectors.h"]
    assert "#if defined(__clang__)\n  return __builtin_shufflevector(" in code["vectors.h"]


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "g++-11", "clang++"])
def test_every_kernel_compiles_with_every_compiler_of_this_machine(compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    options = [*kernels.OPTIONS, "-fsyntax-only", f"-I{HOME}", f"-I{kernels.xla_headers()}"]
    if compiler != "clang++":
        options.append("-D__builtin_shufflevector=missing")
    for source in SOURCES:
        done = subprocess.run([compiler, *options, str(source)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]


@needs_compiler
def test_a_kernel_is_compiled_once_and_called_from_compiled_programs(kernel, tmp_path):
    made = kernel(TWICE)
    assert jax.jit(made)(jnp.arange(3.0)).tolist() == [0, 2, 4]
    assert kernels.choices["twice.doubled"] == "C++"
    [library] = (tmp_path / "cache" / "kernels").glob("*.so")
    before = library.stat().st_mtime_ns
    assert jax.jit(lambda x: made(x, more=1))(jnp.arange(3.0, dtype="float32")).tolist() == [1, 3, 5]
    assert kernels.compiled(made.source) == library
    assert [one.stat().st_mtime_ns for one in library.parent.glob("*.so")] == [before]


@needs_compiler
def test_kernels_prepared_by_one_process_are_found_by_others(kernel, tmp_path, monkeypatch, capsys):
    """Compile the kernels that a study names. If one does not compile, the user sees why, and the others are compiled."""
    made = kernel(TWICE)
    monkeypatch.setattr(kernels, "HOME", tmp_path)
    (tmp_path / "kernel.h").write_text(f'#include "{HOME}/kernel.h"\n')
    (tmp_path / "broken.cc").write_text("this is no C++")
    (tmp_path / "other.cc").write_text(TWICE)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "trials.py").write_text('SOURCES = "twice.cc", "broken.cc"\n')
    kernels.prepare(tmp_path / "study")
    libraries = list((tmp_path / "cache" / "kernels").glob("*.so"))
    assert [one.name.partition("-")[0] for one in libraries] == ["twice"]
    assert "the kernel broken.cc does not compile" in capsys.readouterr().err
    assert made.available
    assert list((tmp_path / "cache" / "kernels").glob("*.so")) == libraries


@pytest.fixture
def library(kernel):
    """The compiled library of a kernel."""
    return kernels.compiled(kernel(TWICE).source)


@needs_compiler
@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data[:-1] + b"x"]
)
def test_a_damaged_library_is_compiled_again(library, tmp_path, damage):
    """To load one is a bus error, a segmentation fault, or a handler that is not there."""
    library.write_bytes(damage(library.read_bytes()))
    assert kernels.compiled(tmp_path / "twice.cc") == library
    [name] = signatures(tmp_path / "twice.cc")
    assert hasattr(ctypes.CDLL(str(library)), f"{name}_float64")
    checksum, _, _ = library.with_name(f"{library.name}.sha256").read_text().partition(" ")
    assert hashlib.sha256(library.read_bytes()).hexdigest() == checksum


@needs_compiler
def test_a_library_that_others_may_write_to_is_refused(library, tmp_path):
    library.chmod(0o777)
    with pytest.raises(BadInput, match=r"other users may write to '.*twice-.*\.so'.* remove it"):
        kernels.why_not(tmp_path / "twice.cc")


def test_headers_of_xla_are_where_jax_says():
    assert kernels.xla_headers().samefile(jax.ffi.include_dir())


# Where JAX is used instead --------------------------------------------------------------------------------------------------


@needs_compiler
def test_a_kernel_that_does_not_compile_is_told_of_once_and_jax_runs(kernel, capsys):
    made = kernel(f"{TWICE}\nthis is no C++")
    for _ in range(2):
        assert made(jnp.arange(3.0)).tolist() == [0, 2, 4]
    told = capsys.readouterr().err
    assert told.count("the kernel twice.cc does not compile, and JAX runs in its place: ") == 1
    assert kernels.choices["twice.doubled"] == f"JAX: {kernels.why_not(made.source)}"
    assert kernels.why_not(made.source) in told
    assert "error:" in told
    assert kernels.state() == "on but for twice.cc"


def test_no_compiler_is_told_of_once_and_jax_runs(kernel, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    made = kernel(TWICE)
    for source in (made.source, made.source.with_name("twice2.cc")):
        shutil.copy(made.source, source) if source != made.source else None
        assert kernels.why_not(source) == "there is no C++ compiler"
    assert made(jnp.arange(3.0)).tolist() == [0, 2, 4]
    assert capsys.readouterr().err == "lemmata: there is no C++ compiler: steps run in JAX alone, slower.\n"


def test_a_kernel_is_left_out_where_nothing_can_be_written(kernel, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "file"))
    assert not kernel(TWICE).available


@needs_compiler
def test_kernels_can_be_switched_off(kernel, monkeypatch):
    made = kernel(TWICE)
    assert made.available
    with without_kernels():
        assert made(jnp.arange(2.0)).tolist() == [0, 2]
        assert kernels.choices["twice.doubled"] == "JAX: kernels are off (LEMMATA_KERNELS)"
        assert kernels.state() == "off"
    monkeypatch.setenv(kernels.SWITCH, "graph_slope.cc,twice.cc")
    assert not made.available
    assert kernels.state() == "on but for graph_slope.cc, twice.cc"
    monkeypatch.setenv(kernels.SWITCH, "on")
    lm.kernels_on(False)
    assert os.environ[kernels.SWITCH] == "off"
    lm.kernels_on()
    assert made.available


@needs_compiler
@pytest.mark.parametrize(
    ("x", "more", "reason"),
    [
        (np.zeros((2, 2)), 0, ": x has 1 dimensions, not 2"),
        (np.zeros(0), -1, ": n is 0"),
        (np.zeros(2), 2, " needs more < n, and has n = 2, more = 2"),
        (np.zeros(2, "float16"), 0, " takes float32 or float64, not float16"),
        (np.zeros(2, int), 0, " takes float32 or float64, not int64"),
    ],
)
def test_jax_runs_for_what_a_kernel_does_not_take(kernel, x, more, reason):
    made = kernel(TWICE)
    with pytest.raises(Refused, match=re.escape(reason)):
        made.native(x, more=more)
    np.testing.assert_array_equal(made(x, more=more), 2 * x + more)
    assert reason in kernels.choices["twice.doubled"]


@needs_compiler
def test_arrays_of_two_sizes_or_types_are_refused(kernel):
    made = kernel(TWICE)
    with pytest.raises(Refused, match=r": n is 2 in x and 3 in y"):
        made.call(*signatures(made.source), np.zeros(2), np.zeros(3), more=0)
    with pytest.raises(Refused, match=r"takes arrays of one type, not x float64, y float32"):
        made.call(*signatures(made.source), np.zeros(2), np.zeros(2, "float32"), more=0)


# All kernels of the lab ----------------------------------------------------------------------------------------------------

UNEQUAL = """
import itertools, sys
import numpy as np
import lemmata
from lemmata import kernels
from lemmata.guard import double
from lemmata.kernels import HOME, Refused, call, signatures

FITTING = {
    "vit_slope": {"head": 2, "dim": 3, "feature": 6, "token": 4, "place": 4},
    "in_context_fresh": {"head": 2, "value": 3, "feature": 6, "dim": 7},
    "chain_fresh": {"row": 7, "column": 5},
    "chain_outcomes": {"n": 4, "k": 3, "state": 4, "most": 2, "free": 2, "noise": 8},
    "rows_seen": {"sample": 3, "feature": 8}, "rows_moved": {"sample": 3, "feature": 8, "token": 3},
    "graph_slope": {"width": 4, "dim": 5, "row": 6},
}
NUMBERS = {
    "gcn_step": {"widest": 3}, "graph_places": {"nodes": 9, "size": 2}, "graph_sets": {"itself": 1, "slot": 5},
    "chain_fresh": {"prompts": 3, "examples": 2}, "chain_outcomes": {"spread": 1},
    "imbalance_gradients": {"speed": 1, "valued": 1},
    "in_context_fresh": {"relevant": 2, "room": 3, "prompts": 2, "logistic": 0}, "spatial_pulled": {"degree": 3},
    "vit_slope": {"linear": 0, "trained": 1},
}

def refused(source, name, shapes, kinds, numbers):
    given = [np.zeros(shape, kind) for shape, kind in zip(shapes, kinds)]
    try:
        call(source, name, *given, **numbers)
    except Refused:
        return True
    return False

with double():
    for source in sorted(HOME.glob("*.cc")):
        for name, one in signatures(source).items():
            names = sorted({dim for part in one.takes for dim in part.dims if not dim.isdecimal()})
            sizes = {dim: 2 + place for place, dim in enumerate(names)} | FITTING.get(name, {})
            shapes = [tuple(sizes.get(dim) or int(dim) for dim in part.dims) for part in one.takes]
            numbers = NUMBERS.get(name, {})
            one.sizes_of(shapes, numbers)  # these fit
            for kind in ("float32", "float64") if one.by_precision else ("",):
                kinds = [part.kind or kind for part in one.takes]
                places = [(a, d) for a, shape in enumerate(shapes) for d in range(len(shape))]
                for (a, d), (b, e) in itertools.combinations(places, 2):
                    if one.takes[a].dims[d] != one.takes[b].dims[e]:
                        continue
                    for (c, f), size in itertools.product(((a, d), (b, e)), (1, 11)):
                        wrong = [list(shape) for shape in shapes]
                        wrong[c][f] = size if size != shapes[c][f] else 12
                        told = f"{name}: {one.takes[c].name} {one.takes[c].dims[f]} = {wrong[c][f]}"
                        assert refused(source, name, wrong, kinds, numbers), told
                for a in range(len(shapes)):
                    wrong = [(*shape, 1) if n == a else shape for n, shape in enumerate(shapes)]
                    assert refused(source, name, wrong, kinds, numbers), (name, one.takes[a])
                    wrong = ["complex64" if n == a else kind for n, kind in enumerate(kinds)]
                    scalar = not one.takes[a].kind and not one.takes[a].dims
                    assert scalar or refused(source, name, shapes, wrong, numbers), (name, one.takes[a])
print("refused")
"""


@needs_compiler
def test_every_kernel_refuses_every_pair_of_unequal_dimensions():
    """Each place of a dimension that several places share is made wrong in turn; nothing reaches the C++. In a process of its
    own, which must live to its end."""
    found = subprocess.run(
        [sys.executable, "-c", UNEQUAL], capture_output=True, text=True, env=_environment()
    )
    assert (found.returncode, found.stdout) == (0, "refused\n"), found.stderr


def _environment() -> dict[str, str]:
    paths = [str(Path(lm.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


CALLED = {
    "benign-overfitting/fig1": ("row_form.seen", "row_form.moved"),
    "chain-of-thought/fig7-3a": ("chain_fresh.fresh_slope", "chain_outcomes.outcomes"),
    "gcn-sampling/fig5-1": ("gcn_step.moved",),
    "graph-transformer/fig3-3a": (
        *("graph_slope.slope_of_sets", "graph_sampling.places_of_batch"),
        "graph_sampling.sampled_with_distances",
    ),
    "group-imbalance/fig4-4a": ("imbalance_gradients.gradients",),
    "in-context-learning/fig6-2": ("in_context_fresh.fresh_slope",),
    "multihead/fig2": ("heads_slope.training_slope",),
    "shallow-vit/fig1a": ("vit_slope.mean_slope",),
    "spatial-structure/fig4": ("spatial_pulled.pulled",),
}


@needs_compiler
@pytest.mark.parametrize("figure", CALLED)
def test_the_kernels_of_a_study_take_what_its_trials_give_them(figure):
    """Otherwise JAX would be used instead, and users would not know why it is slow."""
    study, _, name = figure.partition("/")
    template = lm.study(study).figure(name).sweep("smoke").template
    assert isinstance(template, Descending)
    trial = with_precision(template)
    kernels.choices.clear()
    state = jax.eval_shape(trial.start, new_key(0))
    jax.eval_shape(lambda state: trial.record(trial.step(state)), state)
    assert {one: kernels.choices.get(one) for one in CALLED[figure]} == dict.fromkeys(CALLED[figure], "C++")


def test_every_kernel_of_the_lab_is_called_by_a_study():
    called = {name.partition(".")[0] for names in CALLED.values() for name in names} | {"threefry"}
    assert called == {source.stem for source in SOURCES}


SANITIZED = """
import sys
from lemmata import kernels
kernels.OPTIONS += ("-fsanitize=address", "-fno-omit-frame-pointer", "-g1")
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""
TESTED = (
    *(f"studies/{study}/test_network.py" for study in
      ("chain_of_thought", "group_imbalance", "in_context_learning", "multihead", "shallow_vit", "spatial_structure")),
    *("studies/benign_overfitting/test_rows_kernel.py", "studies/chain_of_thought/test_trials.py"),
    *("studies/gcn_sampling/test_trials.py", "studies/graph_transformer/test_data.py"),
    *("studies/graph_transformer/test_training.py", "test_threefry.py", "test_elementary.py"),
)  # fmt: skip


def _sanitizer() -> str:
    """What is to be loaded before Python: the library of AddressSanitizer, where the compiler has one, and that of C++, whose
    functions it replaces."""
    compiler = kernels.compiler()
    if compiler is None:
        return ""
    libraries = [
        subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    return " ".join(libraries) if all(Path(one).is_file() for one in libraries) else ""


@pytest.mark.slow
@pytest.mark.skipif(not _sanitizer(), reason="the compiler has no AddressSanitizer")
def test_no_kernel_reads_or_writes_beyond_its_arrays():
    """The tests that hold kernels against JAX, with kernels under AddressSanitizer. (Addresses that Python leaves behind do not
    count.)"""
    here = Path(__file__).parent
    code = [sys.executable, "-c", SANITIZED, "-k", "kernel or elementary or threefry or draws_from or places"]
    sanitizer = {"LD_PRELOAD": _sanitizer(), "ASAN_OPTIONS": "detect_leaks=0:detect_odr_violation=0"}
    found = subprocess.run(
        [*code, *(str(here / name) for name in TESTED)],
        capture_output=True,
        text=True,
        cwd=here.parent,
        env=_environment() | sanitizer,
    )
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-8000:]
