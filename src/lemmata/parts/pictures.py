"""Pictures with labels from real data sets, and made ones of the same shapes for tests."""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8
from numpy import ndarray

from lemmata.data import load
from lemmata.errors import require
from lemmata.trial import Key

Pictures = Literal["mnist", "fashion-mnist", "cifar10", "made"]
"""A data set, or made grey pictures of the size of MNIST."""


class Labelled(NamedTuple):
    """Pictures as bytes, and their classes."""

    images: UInt8[Array | ndarray, "n row column channel"]
    labels: Int[Array | ndarray, " n"]


class Split(NamedTuple):
    """Pictures for training and for the test."""

    train: Labelled
    test: Labelled


def sets_of(pictures: Pictures) -> tuple[str, ...]:
    """Return the data sets that pictures are read from."""
    return () if pictures == "made" else (pictures,)


def read_pictures(pictures: Pictures, key: Key, train: int, test: int) -> Split:
    """Return `train` pictures, drawn without repetition, and the first `test` test pictures of a data set."""
    held = load(pictures)
    total = len(held["train_labels"])
    require(train <= total, f"{pictures} has {total} pictures for training, fewer than {train}.")
    require(test <= len(held["test_labels"]), f"{pictures} has fewer than {test} pictures for the test.")
    drawn = np.asarray(jax.random.permutation(key, total))[:train]
    return Split(
        _labelled(held["train_images"][drawn], held["train_labels"][drawn]),
        _labelled(held["test_images"][:test], held["test_labels"][:test]),
    )


def _labelled(images: ndarray, labels: ndarray) -> Labelled:
    return Labelled(images.reshape(*images.shape[:3], -1), labels.astype(np.int32))


def made_pictures(key: Key, train: int, test: int, side: int = 28, channels: int = 1) -> Split:
    """Draw pictures of ten classes: a blurred pattern for each class, and noise."""
    pattern, one, other = jax.random.split(key, 3)
    coarse = jax.random.uniform(pattern, (10, side // 4, side // 4, channels))
    means = jnp.repeat(jnp.repeat(coarse, 4, axis=1), 4, axis=2)

    def drawn(key: Key, count: int) -> Labelled:
        label, noise = jax.random.split(key)
        labels = jax.random.randint(label, (count,), 0, 10, jnp.int32)
        grey = means[labels] + 0.1 * jax.random.normal(noise, (count, side, side, channels))
        return Labelled(jnp.clip(255 * grey, 0, 255).astype(jnp.uint8), labels)

    return Split(drawn(one, train), drawn(other, test))


def unit(images: UInt8[Array | ndarray, "*n"]) -> Float[Array, "*n"]:
    """Return pictures with values from 0 to 1."""
    return jnp.asarray(images, jnp.float32) / 255


def in_parts(count: int, most: int) -> int:
    """Return the size of the largest equal parts of `count` pictures with at most `most` in each.

    >>> in_parts(10_000, 600)
    500
    """
    return next(size for size in range(min(count, most), 0, -1) if count % size == 0)
