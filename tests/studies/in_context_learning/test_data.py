"""Tasks, prompts and patterns are what section 6.3.2 says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.guard import double
from lemmata.studies.in_context_learning.data import (
    LARGEST,
    Contexts,
    all_tasks,
    coverage,
    cyclic_tasks,
    mixing,
    pattern_frame,
    prompt,
    tokens,
    turned_frame,
    with_sums,
)
from lemmata.threefry import new_key


@pytest.mark.parametrize("shifts", [1, 2, 5])
def test_cyclic_tasks_map_every_pattern_to_either_label_equally_often(shifts):
    tasks = cyclic_tasks(6, shifts)
    assert len(tasks) == 6 * shifts
    assert np.all(coverage(tasks, 6) == shifts)
    assert len({one.tobytes() for one in tasks}) == len(tasks)


def test_there_are_as_many_tasks_as_ordered_pairs():
    assert len(all_tasks(6)) == 30
    assert len(all_tasks(6, 2)) == 90


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"given": ((0, 1), (1, 2), (2, 1))}, "Condition 6.3.2"),
        ({"given": ((0, 0),)}, "two different patterns"),
        ({"given": ((0, 9),)}, "counted from 0"),
        ({"irrelevant": 0}, "M_2 must be at least 1"),
        ({"relevant_fraction": 0.0}, "(0, 1]"),
        ({"relevant_fraction": 1.2}, "(0, 1]"),
        ({"feature_dim": 20}, "need as many dimensions"),
        ({"relevant": 2, "relevant_fraction": 0.8}, "alpha must be 1"),
        ({"examples": 50}, "contexts"),
        ({"task_count": 31}, "there are 30 tasks"),
        ({"task_shifts": 6}, "shifts"),
    ],
)
def test_bad_data_is_refused_in_one_sentence(given, said):
    with pytest.raises(BadInput, match=r".*\.$") as refused:
        Contexts(**given)
    assert said in str(refused.value)


def test_given_tasks_that_balance_every_pair_are_taken():
    ring = tuple((i, (i + 2) % 6) for i in range(6))
    assert np.all(coverage(Contexts(given=ring).trained, 6) == 1)


def _drawn(data, count):
    tasks, trained = data.table(new_key(0))
    return tasks, trained, data.draw(new_key(1), tasks, trained, count)


@pytest.fixture(scope="module")
def drawn():
    with double():
        data = Contexts()
        return data, *jax.tree.map(np.asarray, jax.jit(lambda: _drawn(data, 1200))())


def test_the_table_holds_every_task_once_those_of_the_training_first(drawn):
    _, tasks, trained, _ = drawn
    assert len({np.asarray(t).tobytes() for t in tasks}) == 30
    assert int(trained) == 6
    assert {np.asarray(t).tobytes() for t in tasks[:6]} == {t.tobytes() for t in cyclic_tasks(6)}


def test_a_batch_has_every_pattern_equally_often_as_query_and_both_labels(drawn):
    prompts = drawn[-1]
    assert np.all(np.bincount(prompts.query, minlength=6) == 200)
    assert float(prompts.target.sum()) == 0


def test_contexts_follow_the_fraction_of_decisive_patterns(drawn):
    prompts = drawn[-1]
    same = prompts.relevant == prompts.query[:, None]
    assert abs(float(same.mean()) - 0.4) < 4 * np.sqrt(0.24 / same.size)
    assert np.all(np.asarray(prompts.label)[np.asarray(same)] == np.repeat(prompts.target, same.sum(1)))
    assert np.abs(prompts.strength).max() <= 0.5


def test_labels_of_patterns_that_decide_nothing_are_coins(drawn):
    task = jnp.asarray(drawn[1][0])
    prompts = jax.jit(jax.vmap(lambda k: prompt(k, task, jnp.asarray(0), 0.2, 0.5, 20, 6, 24, 20)))(
        jax.random.split(new_key(3), 300)
    )
    other = ~np.isin(prompts.relevant, np.asarray(task).ravel())
    labels = np.asarray(prompts.label)[other]
    assert abs(labels.mean()) < 4 / np.sqrt(labels.size)
    assert abs(other.mean() - 0.8) < 4 * np.sqrt(0.16 / other.size)


@pytest.mark.parametrize("selection", ["exact", "opposed"])
def test_selectors_guarantee_the_share_of_matching_contexts(selection):
    task = jnp.asarray(cyclic_tasks(6)[2])
    found = jax.jit(jax.vmap(lambda k: prompt(k, task, jnp.asarray(1), 0.6, 0.5, 10, 6, 24, 12, selection)))(
        jax.random.split(new_key(0), 20)
    )
    task, found = jax.tree.map(np.asarray, (task, found))
    same = (found.relevant == found.query[:, None]) & found.shown
    assert np.all(np.sum(same, axis=1) == 3)
    opposite = found.shown & (found.label == -found.target[:, None]) & (found.relevant == task[0, 0])
    assert np.all(np.sum(opposite, axis=1) == (7 if selection == "opposed" else 3))


def test_several_patterns_may_decide_for_each_label():
    data = Contexts(per_class=2)
    _, _, prompts = jax.tree.map(np.asarray, jax.jit(lambda: _drawn(data, 240))())
    assert np.all(coverage(data.trained, 6) == 2)
    same = prompts.relevant == prompts.query[:, None]
    assert np.all(np.asarray(prompts.label)[same] == np.repeat(prompts.target, same.sum(1)))
    assert np.bincount(prompts.query, minlength=6).min() > 20


def test_few_tasks_are_drawn_from_the_cyclic_set_and_many_contain_it():
    cyclic = {t.tobytes() for t in cyclic_tasks(6)}
    few, count = jax.jit(Contexts(task_count=4).table)(new_key(2))
    assert int(count) == 4
    assert {t.tobytes() for t in np.asarray(few)[:4]} < cyclic
    many, count = jax.jit(Contexts(task_count=9).table)(new_key(2))
    assert cyclic < {t.tobytes() for t in np.asarray(many)[: int(count)]}


@pytest.mark.parametrize("kind", ["partners", "apart"])
@pytest.mark.parametrize("first", [-1.2, 0.0, 1.0, LARGEST])
def test_out_of_domain_patterns_are_orthonormal_with_the_sum_asked_for(kind, first):
    rows = np.asarray(mixing(kind, 6, first))
    np.testing.assert_allclose(rows @ rows.T, np.eye(3), atol=1e-7)
    np.testing.assert_allclose(rows.sum(1), [first, 2**0.5, 2**0.5], atol=1e-7)


def test_only_the_first_set_mixes_patterns_that_meet_in_training():
    meet = {frozenset(one.ravel().tolist()) for one in cyclic_tasks(6)}
    for kind, expected in (("partners", 3), ("apart", 0)):
        pairs = [
            frozenset(np.flatnonzero(np.asarray(row) > 0.5).tolist()) for row in mixing(kind, 6, LARGEST)
        ]
        assert sum(pair in meet for pair in pairs) == expected


def test_rows_with_given_sums_exist_up_to_the_length_of_the_ones():
    rows = np.asarray(with_sums(np.array([2.0, 1.0, 1.0]), 6))
    np.testing.assert_allclose(rows @ rows.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(rows.sum(1), [2, 1, 1], atol=1e-12)
    with pytest.raises(BadInput, match="orthonormal"):
        with_sums(np.array([5**0.5, 1.0, 1.0]), 6)


def test_tokens_in_random_directions_are_the_coordinates_carried_there(drawn):
    data, *_, prompts = drawn
    few = jax.tree.map(lambda part: jnp.asarray(part[:5]), prompts)

    @jax.jit
    def both(key):
        frame, carry = turned_frame(data, key, jnp.float64)
        return carry, tokens(frame, few), tokens(pattern_frame(data, jnp.float64), few)

    carry, wholes, reductions = jax.tree.map(np.asarray, both(new_key(5)))
    for whole, reduced in zip(wholes, reductions, strict=True):
        np.testing.assert_allclose(whole, reduced @ carry.T, atol=1e-12)
    np.testing.assert_allclose(carry.T @ carry, np.eye(31), atol=1e-12)


def test_noise_on_inputs_has_the_spread_that_was_asked_for():
    """20 * 400 columns of 10 coordinates: the relative error of a standard deviation is 1/sqrt(2 * 84000) = 0.25 %, and 1 % is
    four of them. Everything else of a prompt stays as it is without noise."""
    quiet = Contexts(irrelevant=4, feature_dim=10)
    loud = Contexts(irrelevant=4, feature_dim=10, extra_noise=0.3)
    key = new_key(5)

    def seen(data):
        table, trained = data.table(key)
        return tokens(pattern_frame(data, jnp.float32), data.draw(key, table, trained, 400))

    (still, asked), (context, query) = jax.jit(lambda: seen(quiet))(), jax.jit(lambda: seen(loud))()
    added = np.concatenate([np.asarray(context - still), np.asarray(query - asked)[:, None]], axis=1)
    assert np.abs(added[..., -1]).max() < 1e-6
    np.testing.assert_allclose(added[..., :-1].std(), 0.3, rtol=0.01)


def test_noise_needs_patterns_in_every_direction():
    with pytest.raises(BadInput, match="extra noise fills all dimensions"):
        Contexts(irrelevant=4, feature_dim=12, extra_noise=0.1)
