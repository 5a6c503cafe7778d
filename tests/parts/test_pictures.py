"""Pictures: which are drawn from a data set, and made ones."""

import jax
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.parts.pictures import made_pictures, read_pictures, unit

KEY = jax.random.key(0)


@pytest.fixture
def few(monkeypatch):
    images = np.arange(20, dtype=np.uint8)[:, None, None] * np.ones((1, 4, 4), np.uint8)
    held = {
        "train_images": images,
        "train_labels": np.arange(20) % 10,
        "test_images": images,
        "test_labels": np.arange(20) % 10,
    }
    monkeypatch.setattr("lemmata.parts.pictures.load", lambda name: held)


def test_fewer_pictures_are_the_first_of_more(few):
    small, large = (read_pictures("mnist", KEY, count, 5).train for count in (8, 16))
    np.testing.assert_array_equal(large.images[:8], small.images)
    assert small.images.shape == (8, 4, 4, 1)


def test_no_picture_is_drawn_twice_and_labels_stay_with_theirs(few):
    train = read_pictures("mnist", KEY, 20, 5).train
    which = np.asarray(train.images)[:, 0, 0, 0]
    assert sorted(which) == list(range(20))
    np.testing.assert_array_equal(which % 10, train.labels)


def test_more_pictures_than_there_are_is_one_sentence(few):
    with pytest.raises(BadInput, match="has 20 pictures for training, fewer than 21"):
        read_pictures("mnist", KEY, 21, 5)


def test_made_pictures_tell_their_classes_in_the_test_too():
    split = made_pictures(KEY, 200, 100, side=8)
    mean = np.stack([unit(split.train.images[split.train.labels == k]).mean(0).ravel() for k in range(10)])
    shown = unit(split.test.images).reshape(100, -1)
    nearest = ((np.asarray(shown)[:, None] - mean) ** 2).sum(-1).argmin(1)
    assert (nearest == split.test.labels).mean() > 0.9
