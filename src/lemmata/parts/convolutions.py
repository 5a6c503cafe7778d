"""A small convolutional network for pictures: stages of convolution, normalisation, ReLU and pooling, then an affine map.

A convolution of 3 x 3 pixels is one product of the nine shifted pictures with its weights. On a CPU this is as fast as the
compiler's own convolution or faster, also backward.
"""

from math import sqrt

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.parts.transformers import Dense, LayerNorm, dense, layer_norm
from lemmata.trial import Key

Images = Float[Array, "n row column channel"]


class Stage(eqx.Module):
    """A convolution, a normalisation over the channels of each pixel, ReLU, and the mean of 2 x 2 pixels."""

    weight: Float[Array, "nine_channels fan_out"]
    norm: LayerNorm

    def __call__(self, x: Images) -> Float[Array, "n half_row half_column fan_out"]:
        x = jax.nn.relu(self.norm(convolved(x, self.weight)))
        n, rows, columns, channels = x.shape
        return jnp.mean(x.reshape(n, rows // 2, 2, columns // 2, 2, channels), axis=(2, 4))


class Stages(eqx.Module):
    """A convolutional network."""

    stages: tuple[Stage, ...]
    head: Dense

    def __call__(self, images: Images) -> Float[Array, "n label"]:
        """Return the logits of the classes."""
        for one in self.stages:
            images = one(images)
        return self.head(images.reshape(images.shape[0], -1))


def convolved(
    x: Images, weight: Float[Array, "nine_channels fan_out"]
) -> Float[Array, "n row column fan_out"]:
    """Convolve pictures with weights of 3 x 3 pixels; zeros surround the picture."""
    rows, columns = x.shape[1:3]
    wide = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifted = [wide[:, i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
    return jnp.concatenate(shifted, axis=-1) @ weight


def convolutional(key: Key, side: int, channels: int, widths: tuple[int, ...], classes: int) -> Stages:
    """Draw a network with a stage for each width. Each stage halves the side."""
    last, *each = jax.random.split(key, 1 + len(widths))

    def stage(key: Key, fan_in: int, fan_out: int) -> Stage:
        weight = jax.random.normal(key, (9 * fan_in, fan_out), jnp.float32) * sqrt(2 / (9 * fan_in))
        return Stage(weight, layer_norm(fan_out))

    pairs = zip(each, (channels, *widths[:-1]), widths, strict=True)
    left = side // 2 ** len(widths)
    return Stages(tuple(stage(*one) for one in pairs), dense(last, left * left * widths[-1], classes))
