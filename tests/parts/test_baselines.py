"""Classic learners on small sets."""

import sys

import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.parts.baselines import classify


@pytest.mark.parametrize("method", ["logistic", "svm-gaussian", "svm-linear", "1-nn", "3-nn"])
def test_every_learner_tells_two_clouds_apart(method):
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    labels = np.tile([1.0, -1.0], (4, 5))
    inputs = 3 * labels[..., None] + rng.normal(size=(4, 10, 2))
    asked = np.array([[3.0, 3], [-3, -3], [3, 3], [-3, -3]])
    np.testing.assert_array_equal(classify(method, inputs, labels, asked), [1, -1, 1, -1])


def test_contexts_of_one_class_give_that_class_and_few_are_all_neighbours():
    pytest.importorskip("sklearn")
    np.testing.assert_array_equal(
        classify("3-nn", np.zeros((1, 1, 2)), -np.ones((1, 1)), np.ones((1, 2))), [-1]
    )
    two = classify("3-nn", np.array([[[0.0], [5.0]]]), np.array([[1.0, -1.0]]), np.array([[0.0]]))
    assert two.shape == (1,)


def test_without_scikit_learn_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(BadInput, match="lemmata\\[baselines\\]"):
        classify("svm-linear", np.zeros((1, 2, 2)), np.array([[1.0, -1.0]]), np.zeros((1, 2)))
