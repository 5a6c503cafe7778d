"""Numbers of a trial in double precision are double to the end: JAX makes single precision of whole numbers and flags."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.guard import double
from lemmata.studies.chain_of_thought.network import counted_softmax
from lemmata.studies.gcn_sampling.trials.samplers import Sampling
from lemmata.studies.spatial_structure.trials import HandBuilt
from lemmata.study import studies
from lemmata.sweep import buckets
from lemmata.trial import Descending, fields, put, random_key, with_precision

STUDIES = list(studies().values())


def _in_double_precision(study):
    """Trials of a study in double precision, so that every class and every choice is there; not those whose parts fix another
    precision."""
    found, seen = [], set()
    for id in study.figures:
        for bucket in buckets(study.figure(id).sweep("smoke").cells):
            trial = bucket[0].trial
            choices = {(type(trial), *one) for one in fields(trial).items() if isinstance(one[1], str | bool)}
            if not isinstance(trial, Descending) or choices <= seen:
                continue
            seen |= choices
            with contextlib.suppress(BadInput):
                made = put(trial, "precision", "float64") if "precision" in fields(trial) else trial
                found += [made] if made.precision == "float64" else []
    return found


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_what_a_trial_in_double_precision_records_is_double(study):
    trials = _in_double_precision(study)
    assert trials
    for trial in trials:
        with double():
            one = with_precision(trial)

            def seen(key, one=one):
                state = one.step(one.start(key))
                return {"record": one.record(state), "curves": one.watch(state), "tracks": one.track(state)}

            found = jax.eval_shape(seen, random_key(trial, 0))
        single = [
            jax.tree_util.keystr(path)
            for path, leaf in jax.tree_util.tree_leaves_with_path(found)
            if leaf.dtype == jnp.float32
        ]
        assert not single, (type(trial).__name__, single)


def test_the_shares_of_a_hand_built_solution_are_double():
    trial = HandBuilt(test_samples=24)
    with double():
        found = trial.compute(random_key(trial, 0))
    assert {np.asarray(one).dtype for one in found.values()} == {np.dtype("float64")}


def test_columns_of_the_sampled_graph_are_scaled_in_double_precision():
    """p* N / S of sizes whose ratio is no binary fraction."""
    sizes, samples = np.array([100, 300]), np.array([7, 11])
    with double():
        begin = jnp.asarray([0, 100], jnp.int32)
        whole = (jnp.asarray(one, jnp.int32) for one in (sizes, samples))
        found = np.asarray(Sampling(begin, *whole, jnp.asarray([0.7, 0.3])).scale())
    np.testing.assert_allclose(found, np.array([0.7, 0.3]) * sizes / samples, rtol=1e-15)


def test_columns_that_are_there_several_times_count_so_to_double_precision():
    with double():
        found = np.asarray(counted_softmax(jnp.zeros(3), jnp.asarray([3.0, 7.0, 0.0], jnp.float32)))
    np.testing.assert_allclose(found, [0.3, 0.7, 0.0], rtol=1e-15)
