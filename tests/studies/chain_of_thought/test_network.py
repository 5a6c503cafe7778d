"""Three ways to the layer agree: tokens, the basis of patterns, classes of entries; the gradient by hand is that of automatic
differentiation."""

from itertools import permutations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from lemmata.guard import double
from lemmata.parts.patterns import orthonormal
from lemmata.studies.chain_of_thought import network
from lemmata.studies.chain_of_thought.data import Chains, draw_maps, random_cycle
from lemmata.threefry import new_key
from tests.kernels import forms, needs_compiler

DATA = Chains(dim=12, patterns=6, steps=3, examples=7)


slope = jax.jit(network.slope)


@pytest.fixture(scope="module")
def drawn():
    @jax.jit
    def draw():
        frame = orthonormal(new_key(0), 12, 12, jnp.float64)
        w = 0.3 * jax.random.normal(new_key(1), (24, 24))
        prompts = DATA.draw(new_key(2), 5)
        tokens = jax.vmap(lambda p: network.tokens_of(p, frame[:6], frame[6:9]))(prompts)
        return frame, w, prompts, tokens

    with double():
        return draw()


@jax.jit
def table_of(w, frame):
    return network.table_of(network.in_frame(w, frame), 6, 3)


def test_the_table_gives_the_loss_of_the_weights(drawn):
    frame, w, prompts, tokens = drawn
    direct = jax.jit(jax.vmap(lambda t: network.direct_loss(w, t)))(tokens)
    found = jax.jit(jax.vmap(lambda p: network.loss(table_of(w, frame), p)))(prompts)
    np.testing.assert_allclose(found, direct, rtol=1e-13)


def test_the_gradient_by_hand_is_that_of_automatic_differentiation(drawn):
    frame, w, prompts, tokens = drawn
    table = table_of(w, frame)
    loss, by_hand = slope(table, prompts)

    def mean(table):
        return jnp.mean(jax.vmap(lambda p: network.loss(table, p))(prompts))

    def direct(weights):
        return jnp.mean(jax.vmap(lambda t: network.direct_loss(weights, t))(tokens))

    value, automatic = jax.jit(jax.value_and_grad(mean))(table)
    np.testing.assert_allclose(loss, value, rtol=1e-13)
    np.testing.assert_allclose(by_hand, automatic, atol=1e-14)
    np.testing.assert_allclose(by_hand, table_of(jax.jit(jax.grad(direct))(w), frame), atol=1e-14)


@needs_compiler
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    ("sizes", "prompts"),
    [
        ({"patterns": 20, "examples": 20}, 60),
        (
            {"patterns": 37, "steps": 5, "examples": 3, "match_fraction": 0.01},
            17,
        ),  # none begins as the query does
        ({"patterns": 4, "examples": 33, "match_fraction": 1.0}, 5),  # all do
        ({"patterns": 2, "steps": 1, "examples": 1}, 1),
        ({"patterns": 5, "steps": 4, "examples": 16, "match_fraction": 0.1}, 30),  # a full counter
        ({"patterns": 31, "steps": 2, "examples": 40}, 19),  # more examples than counters hold
    ],
)
def test_the_kernel_draws_the_same_prompts_and_gives_their_slope(sizes, prompts, precision):
    data = Chains(dim=42, **sizes)
    shape = 3, 2 * data.patterns + data.steps, data.patterns + data.steps
    tables = jax.random.normal(new_key(0), shape, precision)
    large = {"float32": 11, "float64": 89}[precision]  # too large for products of exponentials
    tables = tables.at[1, 0, 0].set(large)
    fractions = jnp.array([1.0, 0.5, 1.0]) * data.match_fraction

    def slopes(form):
        def one(table, key, fraction):
            drawn = eqx.tree_at(lambda one: one.match_fraction, data, fraction)
            return form(drawn, table, key, prompts)

        return jax.jit(jax.vmap(one))(tables, jax.random.split(new_key(1), 3), fractions)

    for found, wanted in zip(*map(slopes, forms(network.fresh_slope)), strict=True):
        assert found.dtype == precision
        np.testing.assert_allclose(found, wanted, atol=50 * np.finfo(precision).eps)


@needs_compiler
def test_the_last_bits_of_random_words_decide_where_the_others_do_not():
    """The kernel orders patterns without them at first. Below this key two words of a prompt differ in nothing else."""
    data, key = Chains(dim=42, patterns=20, examples=20), new_key(91182)
    table = jax.random.normal(new_key(0), (43, 23), float)
    found, wanted = network.fresh_slope(data, table, key, 60), slope(table, data.draw(key, 60))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-14)


@needs_compiler
def test_the_kernel_gives_no_finite_loss_to_a_table_that_has_none():
    data = Chains(dim=12, patterns=6, steps=3, examples=7)
    for bad in (jnp.nan, jnp.inf):
        table = jnp.zeros((15, 9)).at[0, 2].set(bad)
        assert not np.isfinite(network.fresh_slope(data, table, new_key(2), 18)[0])


@needs_compiler
@pytest.mark.parametrize(
    ("other", "known"), [({}, True), ({"generator": "random"}, False), ({"shuffled": True}, False)]
)
def test_only_prompts_that_the_kernel_knows_go_through_it(other, known):
    data = Chains(dim=12, patterns=6, steps=3, examples=7, **other)
    program = jax.make_jaxpr(lambda table, key: network.fresh_slope(data, table, key, 5))
    assert ("chain_fresh_float64" in str(program(jnp.zeros((15, 9)), new_key(2)))) == known


def test_the_sums_over_patterns_and_steps_are_conserved(drawn):
    """sum_j (mu_j; 0)^T W, sum_j (0; mu_j)^T W and sum_k c_k^T W do not move."""
    frame, w, prompts, _ = drawn
    moved = np.asarray(slope(table_of(w, frame), prompts)[1])
    for rows in (slice(0, 6), slice(6, 12), slice(12, 15)):
        np.testing.assert_allclose(moved[rows].sum(0), 0, atol=1e-14)


def test_a_table_put_back_into_the_weights_is_found_there(drawn):
    frame, w, _, _ = drawn
    table = np.random.default_rng(5).normal(size=(15, 9))

    @jax.jit
    def put_back(w):
        wide = network.in_frame(w, frame)
        changed = network.with_table(wide, jnp.asarray(table))
        return wide[:, 9:], changed[:, 9:], network.table_of(changed, 6, 3)

    before, after, found = put_back(w)
    np.testing.assert_array_equal(found, table)
    np.testing.assert_array_equal(after, before)


def test_products_of_tokens_count_what_they_share(drawn):
    """(F.71) to (F.73): same pattern, same label and same step add one each."""
    _, _, prompts, tokens = drawn
    top, bottom, step = (np.asarray(part[0]) for part in (prompts.top, prompts.bottom, prompts.step))
    columns = np.asarray(tokens.columns[0])
    shared = sum((one[:, None] == one[None]).astype(float) for one in (top, bottom, step))
    np.testing.assert_allclose(columns @ columns.T, shared, atol=1e-12)
    asked = (top == int(prompts.query[0])).astype(float) + (step == int(prompts.query_step[0]))
    np.testing.assert_allclose(columns @ np.asarray(tokens.asked[0]), asked, atol=1e-12)


def test_classes_of_entries_follow_the_mean_over_all_tasks():
    """The gradient at a table of classes, averaged over all 24 shift tasks and all queries, is the one of the single task along
    0, 1, 2, 3, class by class: the small system is closed."""
    data = Chains(dim=8, patterns=4, steps=2, examples=10)
    rng = np.random.default_rng(0)
    classes = network.Classes(
        *(jnp.asarray(rng.normal(size=s)) for s in ((2,), (2,), (2,), (2,), (2,), (2, 2)))
    )
    table = jax.jit(network.expand, static_argnums=1)(classes, 4)
    expected = jax.tree.map(np.asarray, jax.jit(data.expected)())
    _, single = slope(table, expected)

    def renamed(order):
        names = np.asarray(order)
        return expected._replace(
            top=names[expected.top],
            bottom=names[expected.bottom],
            query=names[expected.query],
            label=names[expected.label],
        )

    mean = np.mean([slope(table, renamed(order))[1] for order in permutations(range(4))], axis=0)
    in_classes = jax.jit(lambda table: network.expand(network.averaged(table), 4))
    np.testing.assert_allclose(mean, in_classes(single), atol=1e-14)
    np.testing.assert_allclose(in_classes(jnp.asarray(mean)), mean, atol=1e-14)


def test_expected_counts_are_the_mean_of_drawn_prompts():
    data = Chains(dim=8, patterns=4, steps=2, examples=10)
    expected = jax.tree.map(np.asarray, jax.jit(data.expected)())
    assert np.allclose(expected.count.sum(1), 10 * 2 + np.arange(2))
    own = expected.count[
        (expected.top == expected.query[:, None]) & (expected.step == expected.query_step[:, None])
    ]
    np.testing.assert_allclose(own, 4.0)


@pytest.mark.parametrize("generator", ["shift", "random"])
def test_steps_of_a_task_are_injective_and_shifts_have_no_fixed_point(generator):
    maps = np.asarray(jax.jit(Chains(generator=generator).maps)(new_key(0)))
    assert all(sorted(one) == list(range(20)) for one in maps)
    if generator == "shift":
        assert (maps != np.arange(20)).all()
        assert len({tuple(one) for one in maps}) == 3


@pytest.mark.parametrize("patterns", [2, 20, 1700])
def test_a_random_cycle_is_the_permutation_of_jax_with_its_places(patterns):
    key = new_key(patterns)
    cycle, place = jax.jit(lambda: random_cycle(key, patterns))()
    np.testing.assert_array_equal(cycle, jax.random.permutation(key, patterns))
    np.testing.assert_array_equal(place, np.argsort(cycle))


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_prompt_shows_the_matching_share_and_hides_what_comes_later(shuffled):
    data = Chains(dim=12, patterns=6, steps=3, examples=7, shuffled=shuffled)
    prompts = jax.tree.map(np.asarray, jax.jit(lambda key: data.draw(key, 18))(new_key(3)))
    first = prompts.top[:, : 7 * 3 : 3]
    start = np.asarray([np.arange(18)[n] // 3 % 6 for n in range(18)])
    assert ((np.asarray(first) == start[:, None]).sum(1) == round(0.4 * 7)).all()
    assert (np.asarray(prompts.count[:, 21:].sum(1)) == np.arange(18) % 3).all()
    assert sorted(zip(start.tolist(), np.asarray(prompts.query_step).tolist(), strict=True)) == [
        (i, k) for i in range(6) for k in range(3)
    ]


def test_a_layer_on_top_of_others_reads_what_it_attends_to():
    """With one layer, one head and values (0 0; 0 I) the climb is the layer itself."""
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(5, 4))
    columns[-1, 2:] = 0
    w, v = rng.normal(size=(4, 4)), np.diag([0.0, 0.0, 1.0, 1.0])
    seen = np.tril(np.ones((5, 5), bool), -1)
    seen[0, 0] = True
    layers = network.Layers(jnp.asarray(w)[None, None], jnp.asarray(v)[None, None])
    last, attention = jax.jit(network.climb)(layers, columns, seen)
    expected = scipy.special.softmax(columns[:-1] @ (w @ columns[-1]))
    np.testing.assert_allclose(attention[0, 0, :-1], expected, rtol=1e-12)
    np.testing.assert_allclose(last[2:], expected @ columns[:-1, 2:], rtol=1e-12)


def test_a_shift_goes_round_the_cycle_as_often_as_it_must():
    """Tests may have fewer patterns than a chain has steps."""
    maps = np.asarray(jax.jit(lambda key: draw_maps(key, 5, 2, "shift"))(new_key(1)))
    np.testing.assert_array_equal(maps, [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]])
