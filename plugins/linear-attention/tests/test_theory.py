"""Facts of the theory: two ways to each result agree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lemmata_linear_attention import network, theory
from lemmata_linear_attention.answer import ANSWER
from lemmata_linear_attention.data import Prompts, Regression
from lemmata_linear_attention.figures.common import descent
from lemmata_linear_attention.trials import Training
from scipy.integrate import solve_ivp

from lemmata.errors import BadInput
from lemmata.loop import train
from lemmata.trial import put_all

DATA = Regression(dim=3, context=5)
RNG = np.random.default_rng(1)
WEIGHTS = {
    "merged": network.Merged(RNG.normal(size=2), RNG.normal(size=(2, 3, 3))),
    "separate": network.Separate(RNG.normal(size=2), RNG.normal(size=(2, 2, 3)), RNG.normal(size=(2, 2, 3))),
}
ARMS = pytest.mark.parametrize("arm", WEIGHTS)


@ARMS
def test_the_loss_of_prompts_is_the_error_of_the_attention_layer(arm):
    weights, prompts = WEIGHTS[arm], DATA.draw(jax.random.key(0), 7)
    errors = []
    for inputs, query, task in zip(*map(np.asarray, prompts), strict=True):
        tokens = np.c_[np.r_[inputs, [query]], np.r_[inputs @ task, 0]]
        errors.append((query @ task - float(network.answer(weights, jnp.asarray(tokens)))) ** 2)
    np.testing.assert_allclose(network.loss(weights, prompts.moments), np.mean(errors), rtol=1e-4)


def test_the_moments_of_many_prompts_are_those_of_15():
    drawn, exact = DATA.draw(jax.random.key(0), 200_000).moments, DATA.moments
    for one, other in zip(drawn, exact, strict=True):  # relative to the largest, 5 standard errors
        np.testing.assert_allclose(one, other, atol=0.03 * float(jnp.max(other)))


@ARMS
def test_the_flow_is_minus_half_the_slope_of_the_loss(arm):
    with jax.enable_x64(True):
        weights = jax.tree.map(jnp.asarray, WEIGHTS[arm])
        slope = jax.grad(network.loss)(weights, DATA.moments)
        for flow, part in zip(network.flow(weights, DATA.moments), slope, strict=True):
            np.testing.assert_allclose(flow, -part / 2, rtol=1e-9, atol=1e-12)


def test_the_heights_of_the_plateaus_are_the_losses_of_their_heads():
    own = theory.eigenvalues(Training())
    sizes = theory.head_sizes(own, 31)
    for m, height in enumerate(theory.plateaus(own, 31)):
        vectors = jnp.eye(4)[:m, None] * sizes[:m, None, None]
        heads = network.Separate(jnp.asarray(sizes[:m]), vectors, vectors)
        np.testing.assert_allclose(network.loss(heads, Regression().moments), height, rtol=1e-5)


def slope_at(direction: np.ndarray, power: float) -> float:
    """The largest slope of the loss where one head has learned this unit vector."""
    data = Regression(power=power)
    size = theory.head_sizes(theory.eigenvalues(Training(data=data)), 31)[0]
    one = jnp.asarray(size * direction)[None, None]
    flow = network.flow(network.Separate(jnp.asarray([size]), one, one), data.moments)
    return max(float(jnp.max(jnp.abs(part))) for part in flow)


def test_with_equal_eigenvalues_every_direction_is_a_fixed_point_and_else_only_eigenvectors_are():
    """The counter-example to the 2^D fixed points."""
    anywhere = np.full(4, 0.5)
    assert slope_at(anywhere, power=0.0) < 1e-6
    assert slope_at(anywhere, power=1.0) > 0.01
    assert slope_at(np.eye(4)[0], power=1.0) < 1e-6


def test_an_aligned_merged_start_follows_10():
    trial = Training(data=Regression(power=0.0), layer="merged", heads=1, descent=descent("paper", 200, 4000))
    start = 1e-3
    weights = network.Merged(np.array([start]), start * np.eye(4)[None] / 2)
    half = theory.half_time(theory.eigenvalues(trial), 31, start)
    assert abs(train(trial, weights=weights)["half"] * 0.05 - half) < 0.1


def test_the_size_of_a_head_solves_21():
    own, a = 0.3, 2.0

    def growth(time, v):
        return own**2 * v**2 * (1 - v**3 / a)

    times = np.linspace(0, 60, 30)
    found = solve_ivp(growth, (0, 60), [0.2 * np.cbrt(a)], t_eval=times, rtol=1e-9, atol=1e-12).y[0]
    np.testing.assert_allclose(theory.size_at(times, own, a, 0.0, 0.2), found / np.cbrt(a), atol=1e-4)


@pytest.mark.parametrize("start", [(0.7, 0.5, 0.3), (0.7, -0.5, 0.3), (-0.2, -0.9, -0.4)])
def test_the_blow_up_time_is_that_of_the_equations(start):
    def growth(time, w):
        return [w[1] * w[2], w[0] * w[2], w[0] * w[1]]

    def large(time, w):
        return np.abs(w).max() - 1e6

    large.terminal = True
    found = solve_ivp(growth, (0, 100), start, events=large, rtol=1e-9, atol=1e-12).t[-1]
    assert float(theory.blow_up(*np.array(start)[:, None])[0]) == pytest.approx(found, rel=1e-4)


def test_ends_of_plateaus_go_as_one_over_the_start_and_the_answer_tells_them():
    ends = theory.plateau_ends(Training(init=0.01))
    np.testing.assert_allclose(theory.plateau_ends(Training(init=0.001)), 10 * ends)
    assert f"3 at {ends[3]:.3g}" in ANSWER.sentence(Training())
    assert ANSWER.success(Training())
    assert not ANSWER.success(Training(init=1e-4))


def test_prompts_of_ones_own_set_the_moments_and_none_are_taken_without_a_sample():
    short = descent("paper", 4, 2)
    prompts = DATA.draw(jax.random.key(3), 4)
    own = Prompts(*(np.asarray(part, float) for part in prompts))
    trial = Training(data=DATA, prompts=4, descent=short)
    drawn, given = train(trial), train(trial, data=own)
    assert given["error_curve"][0] == pytest.approx(
        float(np.mean(np.sum(own.query * own.task, 1) ** 2)), rel=1e-2
    )
    assert given["error_curve"][0] != drawn["error_curve"][0]
    with pytest.raises(BadInput, match="takes no prompts"):
        train(put_all(trial, {"prompts": 0}), data=own)
