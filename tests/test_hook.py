"""Measures inside trainings of others."""

import numpy as np
import pytest
import xarray as xr

import lemmata as lm
from lemmata.errors import BadInput
from lemmata.hook import along_patterns, as_numpy, attended_tokens, attention_share


class Tensor:
    """What a tensor of PyTorch with a gradient does: NumPy takes it only when it is detached and on the CPU."""

    def __init__(self, values, detached=False):
        self.values, self.detached, self.dtype = np.asarray(values, np.float32), detached, "torch.float32"

    def detach(self):
        return Tensor(self.values, True)

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        assert self.detached, "can't call numpy() on a tensor that requires grad"
        return self.values


def test_a_training_of_ones_own_is_recorded_and_drawn(tmp_path):
    def loss(weights, batch):
        return np.mean((batch["x"] @ weights["w"] - batch["y"]) ** 2)

    hook = lm.Hook({"loss": loss, "weights": lambda weights, batch: weights["w"]}, every=5)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3))
    target, w = np.array([1.0, -2.0, 0.5]), np.zeros(3)
    for step in range(21):
        hook(step, {"w": Tensor(w)}, {"x": x, "y": x @ target})
        w = w - 0.1 * x.T @ (x @ (w - target)) / 50
    found = hook.results()
    assert found.step.values.tolist() == [0, 5, 10, 15, 20]
    assert found.loss_curve[0] > 10 * found.loss_curve[-1]
    assert found.weights_curve.shape == (5, 3)
    lm.picture(found, "loss_curve").savefig(tmp_path / "loss.png")
    found.to_netcdf(tmp_path / "loss.nc")
    assert isinstance(found, xr.Dataset)


def test_arrays_of_any_kind_reach_a_measure_as_numpy():
    own = as_numpy({"a": [Tensor([1.0]), (2, 3)], "b": None})
    assert isinstance(own["a"][0], np.ndarray)
    assert own["b"] is None


def test_the_measures_are_those_of_their_formulas():
    attention = np.array([[[0.7, 0.3], [0.2, 0.8]]])
    assert attention_share(attention, [[1, 0]]) == pytest.approx(0.45)
    assert attention_share(attention, [[[1, 0], [0, 1]]]) == pytest.approx(0.75)
    assert attended_tokens(np.eye(3)) == pytest.approx(1.0)
    assert along_patterns(2 * np.eye(2), np.eye(2)).tolist() == [2.0, 2.0]


def test_misuse_is_one_sentence():
    with pytest.raises(BadInput, match="at least one measure"):
        lm.Hook({})
    with pytest.raises(BadInput, match="recorded nothing yet"):
        lm.Hook({"a": lambda w, b: 1.0}).results()
    hook = lm.Hook({"a": lambda w, b: np.ones(w)})
    hook(0, 2)
    with pytest.raises(BadInput, match="does not come after"):
        hook(0, 2)
    with pytest.raises(BadInput, match="gave"):
        hook(1, 3)
    with pytest.raises(BadInput, match="same keys"):
        attention_share(np.ones((2, 3)), np.ones(2))
