"""One description of a descent: batches, rates, stop rules and trackers do what they say."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.descent import Descent, Draw, Learner, batch_at
from lemmata.errors import BadInput
from lemmata.loop import train
from lemmata.status import CAPPED, CONVERGED, STATUS
from lemmata.threefry import key_of, new_key
from lemmata.trial import Precision, Tracks, fixed


class Line(Learner):
    """y = 2 x without noise, fitted by w through the squared loss 1/2 mean((w - 2)^2 x^2)."""

    name: ClassVar[str] = "test/line"

    descent: Descent = Descent(loss="squared", learning_rate=0.1, target_loss=1e-6, steps=200, logs=10)
    start_at: float = 0.0
    count: int = fixed(default=8)
    precision: Precision = fixed(default="float64")

    @property
    def samples(self):
        return self.count

    def draw(self, key):
        return Draw(
            {"w": jnp.asarray(self.start_at), "b": jnp.zeros(())},
            jnp.arange(1.0, self.count + 1) / self.count,
        )

    def objective(self, params, batch, world, key):
        return jnp.mean(0.5 * ((params["w"] - 2) * batch) ** 2) + 0.5 * params["b"] ** 2

    def sample_loss(self, params, sample, world):
        return jnp.maximum(jnp.abs(params["w"] - 2) * sample - 0.5, 0)

    def fresh(self, key, world, count):
        return jax.random.uniform(key, (count,))

    def rates(self, params):
        return {"w": 1.0, "b": 3.0}

    def watch(self, state):
        return {"w": state.params["w"]}

    def record(self, state):
        return {
            "w": state.params["w"],
            "batch": self.batch(key_of(state.key), state.step, state.data, None),
        }

    def track(self, state):
        w = state.params["w"]
        return Tracks(first={"past_one": w > 1}, largest={"top": w}, total={"path": w})


def line(**changes):
    return Line(
        descent=Descent(**{"loss": "squared", "steps": 200, "target_loss": 1e-6, "logs": 10} | changes)
    )


MEAN_SQUARE = np.mean((np.arange(1, 9) / 8) ** 2)


@pytest.mark.parametrize(("target", "status", "steps"), [(1.001, CONVERGED, 2), (0.999, CAPPED, 6)])
def test_the_stop_rule_epoch_looks_at_the_mean_loss_of_whole_epochs(target, status, steps):
    """Without motion that is the mean over all samples, although the two batches of an epoch have other losses."""
    level = 2 * MEAN_SQUARE * target
    still = {"batches": "epochs", "batch": 4, "stop": "epoch", "learning_rate": 1e-12}
    record = train(line(**still, target_loss=level, steps=6))
    assert (int(record["status"]), int(record["steps"])) == (status, steps)


def test_full_batch_descent_contracts_as_its_recursion_says():
    curve = train(line(log_at=(1, 5, 20), stop="cap", steps=20))["w_curve"]
    np.testing.assert_allclose(2 - curve, 2 * (1 - 0.1 * MEAN_SQUARE) ** np.array([0, 1, 5, 20]), rtol=1e-12)


def test_momentum_is_not_plain_descent_and_follows_its_recursion():
    w, speed = 0.0, 0.0
    for _ in range(5):
        speed = 0.5 * speed + (w - 2) * MEAN_SQUARE
        w -= 0.1 * speed
    ran = train(line(method="momentum", momentum=0.5, stop="cap", steps=5))
    np.testing.assert_allclose(ran["w"], w, rtol=1e-12)


def test_stop_rules_end_where_they_say():
    target = train(line(target_loss=0.01))
    assert 0.5 * MEAN_SQUARE * (2 - target["w"]) ** 2 <= 0.01
    assert STATUS[int(target["status"])] == "converged"
    fitted = train(line(stop="fitted"))
    assert 2 - fitted["w"] <= 0.5 < (2 - fitted["w"]) / (1 - 0.1 * MEAN_SQUARE)
    assert train(line(steps=3))["status"] == CAPPED
    assert train(line(steps=3, stop="cap"))["status"] == CONVERGED


def test_every_epoch_sees_every_sample_once_in_an_order_of_its_own():
    key, descent = new_key(3), Descent(batches="epochs", batch=2)
    seen = [np.asarray(batch_at(descent, key, jnp.asarray(step), 8, 2)) for step in range(8)]
    first, second = np.concatenate(seen[:4]), np.concatenate(seen[4:])
    assert sorted(first) == sorted(second) == list(range(8))
    assert first.tolist() != second.tolist()


def test_samples_drawn_with_replacement_repeat_and_fresh_ones_do_not():
    key, descent = new_key(3), Descent(batches="with-replacement", batch=8)
    drawn = np.asarray(batch_at(descent, key, jnp.asarray(0), 8, 8))
    assert len(set(drawn.tolist())) < 8
    fresh = [train(line(batches="fresh", batch=4, stop="cap", steps=n))["batch"] for n in (1, 2)]
    assert not set(fresh[0]) & set(fresh[1])


def test_a_single_pass_ends_when_every_sample_was_used():
    ran = train(line(batches="single-pass", batch=3, stop="cap"))
    assert ran["steps"] == 2


def test_groups_of_parameters_have_rates_of_their_own():
    trial = Line(descent=Descent(loss="squared", steps=1, stop="cap", learning_rate=0.1))
    weights = {"w": jnp.asarray(2.0), "b": jnp.asarray(1.0)}
    moved = jax.jit(lambda key: trial.step(trial.start_from(key, weights=weights)).params)(new_key(0))
    np.testing.assert_allclose(moved["b"], 1 - 0.3)
    np.testing.assert_allclose(moved["w"], 2.0)


def test_trackers_keep_first_times_largest_values_and_sums():
    ran = train(line(stop="cap", steps=200, log_at=tuple(range(1, 201))))
    curve = ran["w_curve"]
    assert ran["past_one"] == np.flatnonzero(curve > 1)[0]
    np.testing.assert_allclose(ran["top"], curve.max())
    np.testing.assert_allclose(ran["path"], curve.sum())
    assert train(line(stop="cap", steps=2))["past_one"] == -1


def test_own_data_and_weights_go_through_one_door():
    own = jnp.full((8,), 2.0)
    ran = train(line(stop="cap", steps=1), data=own, weights={"w": jnp.asarray(1.0), "b": jnp.zeros(())})
    np.testing.assert_allclose(ran["w"], 1 + 0.1 * 4)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"learning_rate": 0.0}, "learning rate"),
        ({"steps": 0}, "takes 1 to"),
        ({"steps": 2**31}, "takes 1 to"),
        ({"momentum": 1.0}, "momentum"),
        ({"logs": -5}, "steps are logged"),
        ({"logs": 10**9}, "steps are logged"),
        ({"learning_rate": float("inf")}, "finite"),
        ({"target_loss": float("nan")}, "must not be negative"),
        ({"log_at": (5, 2)}, "increasing"),
        ({"log_at": (500,)}, "from 0 to 200"),
        ({"target_loss": -1.0}, "target loss"),
    ],
)
def test_a_descent_that_cannot_be_is_refused_in_one_sentence(changes, says):
    with pytest.raises(BadInput, match=says):
        line(**changes)
