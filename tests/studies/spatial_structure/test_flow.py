"""Gradient flow at one rate is what small steps of the direct descent tend to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata import guard
from lemmata.descent import Descent
from lemmata.loop import train
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.network import PositionalNetwork, Weights
from lemmata.studies.spatial_structure.trials import IdealisedDescent, IdealisedFlow, ImageDescent, SampleFlow
from lemmata.studies.spatial_structure.trials.flow import LogitFlow, Risk
from lemmata.studies.spatial_structure.trials.images import as_images
from lemmata.threefry import new_key
from lemmata.trial import random_key

DATA = Structured(patches=16, spurious_rate=0.6, dimension=4)
NETWORK = PositionalNetwork(linear=1e-3, diagonal=1.0, init=1e-3)


def stepped(rate: float, time: float, attention_rate: float = 1.0) -> Descent:
    steps = round(time / rate)
    return Descent(learning_rate=rate, attention_rate=attention_rate, stop="cap", steps=steps, logs=2)


def test_three_numbers_tend_to_the_flow_as_the_step_size():
    """Half the step size, half the distance: the flow is the limit of plain descent on the same draws."""
    key, time = new_key(7), 20.0
    flow = IdealisedFlow(DATA, NETWORK, alignment=0.05, last=time, logs=5, draws=50, test_draws=5)
    with guard.double():
        limit = flow.compute(key)
    apart = []
    for rate in (4e-3, 2e-3):
        descent = IdealisedDescent(DATA, NETWORK, stepped(rate, time), alignment=0.05, draws=50, test_draws=5)
        run = train(descent, key=key)
        apart.append([run["same"] - limit["same"], run["alignment"] - limit["alignment"]])
    first, second = np.array(apart)
    assert limit["same"] > 0.005
    assert np.all(np.abs(second) < 0.01 * np.array([limit["same"], limit["alignment"]]))
    assert np.allclose(first / second, 2, atol=0.2)


def test_flow_has_the_events_of_its_curves():
    key = new_key(7)
    flow = IdealisedFlow(draws=100, test_draws=5, logs=301)
    with guard.double():
        run = flow.compute(key)
    for event, curve, level in (("same_unit", "same", 1.0), ("event3", "loss", 0.05)):
        crossed = flow.times[np.argmax((run[f"{curve}_curve"] >= level) == (event == "same_unit"))]
        assert run[event] <= crossed <= 1.2 * run[event]
    assert run["alignment_power"] == pytest.approx(
        np.trapezoid(
            (run["alignment_curve"] ** 3)[flow.times <= run["event3"]],
            flow.times[flow.times <= run["event3"]],
        ),
        rel=0.1,
    )


def test_sample_flow_is_the_limit_of_slow_logits():
    """Descent with slower and slower logits tends to the flow at the same time of the logits, from the same minimum."""
    time, apart = 60.0, []
    images = ImageDescent(DATA, NETWORK, samples=400, test_samples=50, precision="float64")
    flow = SampleFlow(
        DATA, NETWORK, last=time, target_loss=0.0, logs=3, samples=400, test_samples=50, precision="float64"
    )
    key = random_key(images, 3)
    with guard.double():
        limit = flow.compute(key)["logits"]
        start, sample, _ = jax.jit(lambda key: images.draw(key))(key)
        begin = Weights(start.logits, jnp.asarray(Risk(images, sample).settled(start)))
    for slow in (0.4, 0.1):
        descent = stepped(2e-3, 2e-3 * time / slow, attention_rate=500 * slow)
        trial = ImageDescent(DATA, NETWORK, descent, samples=400, test_samples=50, precision="float64")
        run = train(trial, key=key, data=as_images(*sample), weights=begin)
        apart.append(np.max(np.abs(run["logits"] - limit)))
    moved = np.max(np.abs(limit - np.asarray(start.logits)))
    assert apart[1] < 0.4 * apart[0]
    assert apart[1] < 0.1 * moved


def test_value_vector_sits_at_a_minimum_of_the_risk():
    images = ImageDescent(DATA, NETWORK, samples=400, test_samples=50, precision="float64")
    with guard.double():
        start, sample, _ = jax.jit(lambda key: images.draw(key))(random_key(images, 3))
        risk = Risk(images, sample)
        logits = np.asarray(start.logits)
        flow = LogitFlow(risk, risk.settled(start))
        flow.settle(logits)
        _, _, pull = risk.gradient(logits, flow.value)
        hessian = risk.hessian(logits, flow.value)
    assert np.linalg.norm(np.linalg.solve(hessian, pull)) < 1e-6 * np.linalg.norm(flow.value)
    assert np.all(np.linalg.eigvalsh(hessian) > 0)
