"""The plug-in studies of this repository, held against what every study is held against."""

import importlib
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata import testing
from lemmata.study import studies, study

FOLDER = Path(__file__).parents[1] / "plugins" / "linear-attention"
ID, PACKAGE = "linear-attention", "lemmata_linear_attention"


@pytest.fixture(autouse=True)
def _announced(monkeypatch):
    """The plug-in as if it were installed."""
    monkeypatch.syspath_prepend(FOLDER)
    points = [EntryPoint(ID, f"{PACKAGE}:STUDY", "lemmata.studies")]
    monkeypatch.setattr(sys.modules["lemmata.study"], "entry_points", lambda group: points)
    studies.cache_clear()
    yield
    studies.cache_clear()


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_linear_attention_passes_every_check(check):
    assert testing.problems(check, study(ID)) == []


def test_the_loss_at_the_learned_maps_is_the_heights_of_the_plateaus():
    network, theory = (importlib.import_module(f"{PACKAGE}.{room}") for room in ("network", "theory"))
    own = theory.eigenvalues(study(ID).template())
    sizes = theory.head_sizes(own, 31)
    for m, height in enumerate(theory.plateaus(own, 31)):
        vectors = jnp.eye(4)[:m] * sizes[:m, None]
        heads = network.Heads(jnp.asarray(sizes[:m]), vectors, vectors)
        np.testing.assert_allclose(network.loss(heads, jnp.asarray(own), 31), height, rtol=1e-12)


def test_with_equal_eigenvalues_every_direction_is_a_fixed_point_and_with_distinct_ones_only_eigenvectors_are():
    """The counter-example to the count 2^D of fixed points, which is a condition of the claims."""
    network, theory = (importlib.import_module(f"{PACKAGE}.{room}") for room in ("network", "theory"))
    direction = jnp.asarray([0.5, 0.5, 0.5, 0.5])

    def slope(own):
        size = float(theory.head_sizes(own, 31)[0])
        heads = network.Heads(jnp.asarray([size]), size * direction[None], size * direction[None])
        found = jax.grad(network.loss)(heads, jnp.asarray(own), 31)
        return max(float(jnp.max(jnp.abs(part))) for part in found)

    assert slope(np.full(4, 0.25)) < 1e-12
    assert slope(theory.eigenvalues(study(ID).template())) > 0.01
