"""What a user has set in JAX changes no record under an unchanged identity."""

import json
import os
import subprocess
import sys
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lemmata as lm
from lemmata import guard
from lemmata.trial import Computed, Descending, Precision, fixed, random_key

OTHER = {
    "jax_random_seed_offset": 5,
    "jax_threefry_partitionable": False,
    "jax_default_prng_impl": "rbg",
    "jax_high_dynamic_range_gumbel": True,
    "jax_safer_randint": False,
    "jax_default_dtype_bits": "32",
    "jax_default_matmul_precision": "bfloat16",
    "jax_softmax_custom_jvp": True,
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_debug_nans": True,
    "jax_debug_infs": True,
    "jax_disable_jit": True,
}
KNOWN = [name for name in OTHER if hasattr(jax.config, name)]
CHANGING = ("jax_random_seed_offset", "jax_default_prng_impl")
RAISING = ("jax_numpy_dtype_promotion", "jax_numpy_rank_promotion", "jax_debug_nans", "jax_debug_infs")


class Sensitive(Descending):
    """Draws and computes in ways that the settings of JAX change."""

    name: ClassVar = "toys/sensitive"
    dims: ClassVar = {"point": ("place",), "own": ("place",), "gumbel": ("place",)}

    precision: Precision = fixed(default="float32")
    steps: int = fixed(default=2)
    log_steps: tuple[int, ...] = fixed(default=(0,))

    def start(self, key):
        whole = jax.random.randint(key, (), 0, 1 << 20)
        own = jax.random.uniform(jax.random.key(0), (3,), self.precision)
        gumbel = jax.random.gumbel(key, (3,), self.precision)
        return {
            "x": jax.random.normal(key, (3,), self.precision),
            "own": own,
            "gumbel": gumbel,
            "whole": whole,
        }

    def step(self, state):
        slope = jax.grad(lambda x: jnp.sum(jax.nn.softmax(jnp.outer(x, x) @ x) ** 2))(state["x"])
        return state | {
            "x": state["x"] - jnp.mean(slope + jnp.ones((2, 3), self.precision) * jnp.arange(3), 0)
        }

    def loss(self, state):
        return jnp.sum(state["x"] ** 2)

    def finished(self, state):
        return jnp.asarray(False)

    def watch(self, state):
        return {"whole": state["whole"]}

    def record(self, state):
        drawn = {name: state[name] for name in ("own", "gumbel", "whole")}
        return {"point": state["x"], "far": jnp.exp(1000 + state["x"][0] ** 2), **drawn}


class Drawn(Computed):
    name: ClassVar = "toys/drawn"

    def compute(self, key):
        return {"x": jax.random.uniform(key), "whole": jax.random.randint(key, (), 0, 1 << 20)}


def record() -> dict[str, list]:
    found = lm.train(Sensitive(), seed=3)
    results = lm.run(lm.Sweep(Drawn(), (), (0, 1)))
    return {name: np.asarray(value).tolist() for name, value in {**found, "swept": results["x"]}.items()}


@pytest.fixture
def setting(request):
    name = request.param
    before = getattr(jax.config, name)
    jax.clear_caches()  # a program that was compiled under other settings may be found for these
    jax.config.update(name, OTHER[name])
    yield name
    jax.config.update(name, before)
    jax.clear_caches()


def test_every_setting_has_another_value_here():
    assert OTHER.keys() == guard.SETTINGS.keys()
    assert all(OTHER[name] != value for name, value in guard.SETTINGS.items())


@pytest.fixture(scope="module")
def expected():
    return record()


@pytest.mark.parametrize("setting", KNOWN, indirect=True)
def test_no_setting_of_jax_changes_a_record(expected, setting):
    assert getattr(jax.config, setting) == OTHER[setting]
    assert record() == expected
    assert getattr(jax.config, setting) == OTHER[setting], "users keep what they have set"


@pytest.mark.parametrize("setting", [name for name in KNOWN if hasattr(jax, name.removeprefix("jax_"))])
def test_no_setting_made_by_a_context_manager_changes_a_record(expected, setting):
    with getattr(jax, setting.removeprefix("jax_"))(OTHER[setting]):
        assert record() == expected


@pytest.mark.parametrize("setting", CHANGING + RAISING, indirect=True)
def test_without_the_guard_these_would(expected, setting, monkeypatch):
    """The test above can fail."""
    monkeypatch.setattr(guard, "SETTINGS", {})
    if setting in RAISING:
        with pytest.raises((ValueError, TypeError, FloatingPointError)):
            record()
    else:
        assert record() != expected


def test_environment_variables_change_no_record(expected):
    settings = {name.upper(): str(OTHER[name]) for name in KNOWN if name != "jax_disable_jit"}
    code = "import json; from tests.test_settings import record; print(json.dumps(record()))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **settings, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])},
        capture_output=True,
        text=True,
    )
    assert not found.returncode, found.stderr
    assert json.loads(found.stdout) == expected


def test_the_key_of_a_cell_does_not_depend_on_an_offset():
    before = jax.random.key_data(random_key(Drawn(), 0)).tolist()
    jax.config.update("jax_random_seed_offset", 5)
    try:
        assert jax.random.key_data(random_key(Drawn(), 0)).tolist() == before
    finally:
        jax.config.update("jax_random_seed_offset", 0)
