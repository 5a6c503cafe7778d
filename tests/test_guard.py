"""The compiler is not trusted blindly."""

import os
import subprocess
import sys

import jax
import pytest

from lemmata import guard
from lemmata.errors import BadInput


def python(code: str, tmp_path) -> subprocess.CompletedProcess:
    env = {**os.environ, "LEMMATA_CACHE": str(tmp_path), "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "xla")}
    env.pop("XLA_FLAGS", None)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)


def test_known_bad_programs_come_out_right_here():
    assert guard.unsound() == ""


def test_importing_the_lab_switches_the_faulty_pass_off_before_jax_starts(tmp_path):
    code = "import lemmata, sys; from lemmata import guard; print('jax' in sys.modules); guard.check();"
    code += "print(guard.unsound() == '')"
    assert python(code, tmp_path).stdout.split() == ["False", "True"]
    assert list(tmp_path.glob("checked/jaxlib-*"))


@pytest.mark.skipif(guard._release() < guard.FIRST_BAD, reason="the faulty pass is known from jaxlib 0.10.2")
def test_a_session_that_started_jax_without_the_guard_is_refused(tmp_path):
    code = (
        "import jax; jax.jit(lambda x: x + 1)(1.0); import lemmata; from lemmata import guard, errors\n"
        "try: guard.check()\nexcept errors.BadInput as error: print(error)"
    )
    assert "computes wrong numbers here" in python(code, tmp_path).stdout


@pytest.mark.parametrize(
    ("release", "options"),
    [
        ((0, 10, 1), None),
        ((0, 10, 2), {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}),
        ((0, 11, 0), {"xla_backend_optimization_level": 1}),
        ((0, 12, 0), {"xla_backend_optimization_level": 1}),
    ],
)
def test_a_release_is_given_only_options_that_it_knows(monkeypatch, release, options):
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(guard, "_release", lambda: release)
    assert guard.brief() == options


def test_the_options_for_this_release_are_taken_by_it(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    compiled = jax.jit(lambda x: x + 1).lower(1.0).compile(guard.brief())
    assert compiled(1.0) == 2.0


def test_a_wrong_program_is_refused_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path))
    monkeypatch.setattr(guard, "unsound", lambda: "a product, then its sum")
    guard.check.cache_clear()
    with pytest.raises(BadInput, match="wrong numbers here"):
        guard.check()
    assert list((tmp_path / "checked").iterdir()) == []


def test_a_session_is_looked_at_once(monkeypatch, tmp_path):
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path))
    looks = []
    monkeypatch.setattr(guard, "unsound", lambda: looks.append(1) or "")
    monkeypatch.setattr(guard, "_late", True)
    guard.check.cache_clear()
    guard.check()
    guard.check()
    assert looks == [1]


def test_float64_is_on_inside_and_as_before_outside():
    import jax.numpy as jnp

    with guard.x64(False):
        with guard.double():
            assert jnp.ones(()).dtype == jnp.float64
        assert jnp.ones(()).dtype == jnp.float32
