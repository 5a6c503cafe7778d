"""The layer, its derivatives, its invariants, and the small GPT-2 style model."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata import kernels
from lemmata.guard import double
from lemmata.parts.votes import Weights
from lemmata.studies.in_context_learning import network
from lemmata.studies.in_context_learning.data import Contexts, pattern_frame, tokens
from lemmata.studies.in_context_learning.network import deep
from lemmata.studies.in_context_learning.trials import testing
from lemmata.studies.in_context_learning.trials.layer import Layer, World, fresh_slope
from lemmata.threefry import new_key
from lemmata.trial import put_all
from tests.kernels import forms, needs_compiler


class Given(NamedTuple):
    weights: Weights
    votes: jax.Array
    prompts: object
    seen: tuple
    relevant: jax.Array


@pytest.fixture(scope="module")
def given():
    """Weights that are not at their start, twelve prompts with one to eight contexts."""
    data = Contexts(relevant=4, irrelevant=3, feature_dim=7, label_dim=2, room=8, examples=8)

    @jax.jit
    def drawn():
        prompts = data.draw(new_key(1), *data.table(new_key(0)), 12)
        prompts = prompts._replace(shown=jnp.arange(8)[None] < 1 + jnp.arange(12)[:, None] % 8)
        frame = pattern_frame(data, jnp.float64)
        context, query = tokens(frame, prompts)
        keys = jax.random.split(new_key(2), 5)
        square = [0.2 * jax.random.normal(k, (1, 8, 8)) for k in keys[:2]]
        value, hidden = 0.3 * jax.random.normal(keys[2], (1, 9, 8)), jax.random.normal(keys[3], (9, 10))
        votes = jnp.where(jax.random.bernoulli(keys[4], 0.5, (10,)), 0.1, -0.1)
        return Given(
            Weights(*square, value, hidden), votes, prompts, (context, prompts.shown, query), frame.relevant
        )

    with double():
        return drawn()


def plain(weights, votes, context, shown, query):
    """(6.2) word by word for one prompt, in NumPy."""
    logits = np.stack([(weights.key[0] @ p) @ (weights.query[0] @ query) for p in context])
    share = np.exp(logits) * shown / np.sum(np.exp(logits) * shown)
    mixed = sum(s * (weights.value[0] @ p) for s, p in zip(share, context, strict=True))
    return votes @ np.maximum(weights.hidden.T @ mixed, 0)


def total(weights, given):
    return jnp.sum(network.outputs(network.fold(weights), given.votes, *given.seen))


slopes_of = jax.jit(jax.grad(total))


def test_the_output_is_that_of_the_displayed_equation(given):
    found = jax.jit(network.outputs)(network.fold(given.weights), given.votes, *given.seen)
    weights, votes, seen = jax.tree.map(np.asarray, (given.weights, given.votes, given.seen))
    wanted = [plain(weights, votes, *(part[n] for part in seen)) for n in range(12)]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


SIZES = {
    "usual": (Contexts(), 120, 60, 1, "hinge"),
    "small": (
        Contexts(relevant=4, irrelevant=3, feature_dim=7, label_dim=2, room=5, examples=3, task_shifts=2),
        *(17, 33, 2, "logistic"),
    ),
    "many": (Contexts(relevant_fraction=0.3, irrelevant=12, feature_dim=18), 200, 40, 2, "logistic"),
    "smallest": (
        Contexts(
            relevant=2, irrelevant=1, feature_dim=3, label_dim=1, relevant_fraction=1, room=1, examples=1
        ),
        *(1, 3, 1, "hinge"),
    ),
}
"""Data, prompts, neurons, heads and loss."""


@needs_compiler
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", SIZES)
def test_the_kernel_draws_the_same_prompts_and_gives_their_slope(name, precision):
    whole, count, neurons, heads, loss = SIZES[name]
    dtype, dim, values = jnp.dtype(precision), whole.relevant + whole.irrelevant + 1, whole.label_dim + 8
    data = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype if isinstance(leaf, float) else int), whole)
    data = eqx.tree_at(lambda one: one.relevant_fraction, data, jnp.asarray(whole.relevant_fraction, dtype))
    rng, runs = np.random.default_rng(4), 3
    shapes = *[(runs, heads, dim, dim)] * 2, (runs, heads, values, dim), (runs, heads * values, neurons)
    weights = Weights(*(jnp.asarray(0.3 * rng.normal(size=shape), dtype) for shape in shapes))
    votes = jnp.asarray(rng.choice([-1, 1], (runs, neurons)) / neurons**0.5, dtype)
    tasks, keys = jnp.asarray(whole.trained), jax.random.split(new_key(5), runs)
    trial = put_all(Layer(data=data, test=TEST), {"descent.loss": loss})

    def slope(form, weights, votes, key):
        return form(trial, weights, world_of(data, votes, tasks, jnp.asarray(len(tasks) - 1)), key, count)

    found, wanted = (
        jax.jit(jax.vmap(partial(slope, form)))(weights, votes, keys) for form in forms(fresh_slope)
    )
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert one.dtype == precision
        np.testing.assert_allclose(one, other, atol=50 * np.finfo(dtype).eps)


TEST = testing.Testing(irrelevant=1, kinds=())


def world_of(data, votes, tasks, trained):
    """What training knows of a task, in the basis of patterns; nothing of what only tests need."""
    frame = pattern_frame(data, votes.dtype)
    return World(frame, frame, tasks, trained, votes, None, None, None, None)


@needs_compiler
@pytest.mark.parametrize(
    ("other", "known"), [({}, True), ({"per_class": 2}, False), ({"extra_noise": 0.1}, False)]
)
def test_only_prompts_that_the_kernel_knows_go_through_it(other, known):
    data = put_all(Contexts(relevant=6, irrelevant=3, feature_dim=9, label_dim=9), other)
    trial = Layer(data=data, test=TEST, precision="float64", neurons=5)
    state = jax.eval_shape(trial.start, new_key(0))
    jax.eval_shape(trial.step, state)
    assert (kernels.choices["in_context_fresh.fresh_slope"] == "C++") == known


@pytest.fixture(scope="module")
def slopes(given):
    with double():
        return jax.tree.map(np.asarray, slopes_of(given.weights, given))


def test_gradients_are_the_closed_forms_of_the_proofs(given, slopes):
    """(E.110), (E.160), (E.167), (E.189), W_Q^T p_query read as W_Q p_query."""
    w, votes, seen = jax.tree.map(np.asarray, (given.weights, given.votes, given.seen))
    q, k, v, o = w.query[0], w.key[0], w.value[0], w.hidden.T
    wanted = [np.zeros_like(part) for part in (q, k, v, o)]
    for n in range(12):
        context, shown, query = (part[n] for part in seen)
        context = context[shown]
        s = np.exp(context @ k.T @ (q @ query))
        s = s / s.sum()
        h = s @ context
        gate = votes * (o @ v @ h > 0)
        wanted[3] += np.outer(gate, v @ h)
        wanted[2] += np.outer(o.T @ gate, h)
        pull = s * (context @ v.T @ o.T @ gate)
        wanted[0] += sum(a * np.outer(k @ (p - h), query) for a, p in zip(pull, context, strict=True))
        wanted[1] += sum(a * np.outer(q @ query, p - h) for a, p in zip(pull, context, strict=True))
    for found, right in zip(
        (slopes.query[0], slopes.key[0], slopes.value[0], slopes.hidden.T), wanted, strict=True
    ):
        np.testing.assert_allclose(found, right, atol=1e-12)


def test_queries_learn_nothing_of_labels(slopes):
    """(E.153), (E.156): the query's label part is zero."""
    assert np.abs(slopes.query[..., -1]).max() == 0
    assert np.abs(slopes.key[..., -1]).max() > 0


def test_keys_of_the_sum_of_patterns_never_move(given, slopes):
    """Every context has one relevant pattern, and the softmax pulls sum to zero: W_K sum_j mu_j is conserved."""
    moved = slopes.key[0] @ np.repeat([1.0, 0.0], 4)
    assert np.abs(moved).max() < 1e-13
    assert np.abs(slopes.key[0, :, 0]).max() > 1e-3


def test_updates_of_values_lie_in_the_span_of_neurons(given, slopes):
    """Lemma E.4.6: W_V moves by sums of rows of W_O only."""
    basis = np.linalg.qr(np.asarray(given.weights.hidden)[:, :5])[0]
    few = slopes_of(given.weights, given._replace(votes=np.asarray(given.votes) * (np.arange(10) < 5)))
    value = np.asarray(few.value)[0]
    assert np.abs(value - basis @ (basis.T @ value)).max() < 1e-12


def test_contexts_that_are_not_shown_do_not_matter(given):
    context, shown, query = given.seen
    other = jnp.where(shown[..., None], context, 77.0)
    folded = network.fold(given.weights)
    for look in (network.attention, network.values):
        np.testing.assert_array_equal(look(folded, context, shown, query), look(folded, other, shown, query))


def test_attention_sums_to_one_and_makes_the_values(given):
    folded = network.fold(given.weights)
    share = network.attention(folded, *given.seen)
    np.testing.assert_allclose(share.sum(-1), 1, atol=1e-12)
    np.testing.assert_allclose(
        jnp.einsum("bl,bld->bd", share[0], given.seen[0]), network.values(folded, *given.seen), atol=1e-12
    )


def test_equal_heads_are_one_head_with_their_neurons_added(given):
    w = given.weights
    hidden = jnp.concatenate([w.hidden, 2 * w.hidden])
    two = Weights(*(jnp.concatenate([part, part]) for part in w[:3]), hidden)
    found = network.outputs(network.fold(two), given.votes, *given.seen)
    alone = network.outputs(network.fold(w._replace(hidden=3 * w.hidden)), given.votes, *given.seen)
    np.testing.assert_allclose(found, alone, atol=1e-12)


def test_weights_in_the_basis_of_patterns_act_as_those_on_tokens(given):
    carry = jnp.linalg.qr(jax.random.normal(new_key(7), (12, 12)))[0][:, :8]
    whole = Weights(
        *(jnp.einsum("dr,hrs,es->hde", carry, one, carry) for one in given.weights[:2]),
        jnp.einsum("hvr,dr->hvd", given.weights.value, carry),
        given.weights.hidden,
    )
    for found, wanted in zip(
        network.along_basis(network.on_basis(whole, carry), carry), given.weights, strict=True
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


# GPT-2 -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    with double():
        return jax.jit(lambda: deep.start(new_key(0), 8, 12, 2, 0, jnp.float64))()


def test_the_deep_model_reads_prompts_of_any_length_alike(given, small):
    context, shown, query = given.seen
    read = jax.jit(lambda *given: deep.outputs(small, 2, *given))
    found = read(context, shown, query)
    for n in (3,):
        count = int(shown[n].sum())
        alone = read(context[n : n + 1, :count], shown[n : n + 1, :count], query[n : n + 1])
        np.testing.assert_allclose(found[n], alone[0], atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("positions", [0, 9])
def test_the_deep_model_is_that_of_torch(given, positions):
    torch = pytest.importorskip("torch")
    params = deep.start(new_key(3), 8, 12, 2, positions, jnp.float64)
    shake = iter(jax.random.split(new_key(4), 40))
    params = jax.tree.map(lambda p: p + 0.3 * jax.random.normal(next(shake), p.shape), params)
    context, shown, query = given.seen
    everything = jnp.ones_like(shown)
    found = deep.outputs(params, 3, context, everything, query)
    np.testing.assert_allclose(found, torch_outputs(torch, params, 3, context, query), atol=1e-9)


def torch_outputs(torch, params, heads, context, query):
    """The same model from PyTorch's own layers."""

    def t(array):
        return torch.from_numpy(np.array(array))

    functional = torch.nn.functional
    x = torch.cat([t(context), t(query)[:, None]], 1) @ t(params.read_in)
    columns, width = x.shape[1:]
    if len(params.positions):
        x = x + t(params.positions)[:columns]
    for layer in range(params.blocks.up.shape[0]):
        b = deep.Block(*(t(part[layer]) for part in params.blocks))
        attend = torch.nn.MultiheadAttention(width, heads, batch_first=True, dtype=torch.float64)
        with torch.no_grad():
            attend.in_proj_weight.copy_(b.attend.T)
            attend.in_proj_bias.copy_(b.attend_bias)
            attend.out_proj.weight.copy_(b.project.T)
            attend.out_proj.bias.copy_(b.project_bias)
            seen = functional.layer_norm(x, (width,), b.scale1, b.shift1)
            later = torch.triu(torch.ones(columns, columns, dtype=torch.bool), 1)
            x = x + attend(seen, seen, seen, attn_mask=later, need_weights=False)[0]
            seen = functional.layer_norm(x, (width,), b.scale2, b.shift2)
            x = x + functional.gelu(seen @ b.up + b.up_bias, approximate="tanh") @ b.down + b.down_bias
    last = functional.layer_norm(x[:, -1], (width,), t(params.scale), t(params.shift))
    return (last @ t(params.read_out)).numpy()
