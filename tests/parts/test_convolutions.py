"""Convolutions by shifted pictures, against the compiler's own."""

import jax
import jax.numpy as jnp
import numpy as np

from lemmata.parts.convolutions import convolutional, convolved

KEY = jax.random.key(0)


def test_shifted_pictures_give_the_convolution():
    x, weight = jax.random.normal(KEY, (2, 6, 8, 3)), jax.random.normal(KEY, (27, 5))
    kernel = weight.reshape(3, 3, 3, 5)
    wanted = jax.lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    np.testing.assert_allclose(convolved(x, weight), wanted, atol=1e-4)


def test_every_stage_halves_the_side():
    net = convolutional(KEY, 8, 3, (4, 6), 10)
    x = jnp.ones((2, 8, 8, 3))
    assert net.stages[1](net.stages[0](x)).shape == (2, 2, 2, 6)
    assert net(x).shape == (2, 10)
