"""Digits with a noise ring: the inner picture times a, the ring's noise times b."""

import jax
import numpy as np
import pytest

from lemmata.studies.benign_overfitting.trials.real import RING, RealDigits, Ringed
from lemmata.trial import put

IMAGES = np.full((200, 28, 28, 1), 255, np.uint8)


@pytest.mark.parametrize(("snr", "gain"), [(0.2, 1.0), (2.0, 1.0), (2.0, 3.0)])
def test_signal_and_noise_have_the_factors_of_the_paper(snr, gain):
    shown = np.asarray(Ringed(snr=snr, gain=gain).noisy(IMAGES, jax.random.key(0)))
    a, b = gain * snr / (1 + snr), gain / (1 + snr)
    np.testing.assert_allclose(shown[:, RING:-RING, RING:-RING], a, rtol=1e-6)
    ring = shown[:, :RING]
    assert ring.mean() == pytest.approx(a, abs=0.03 * b)
    assert ring.std() == pytest.approx(b, rel=0.02)


def test_arms_share_pictures_and_start():
    one = RealDigits(data=Ringed(samples=20, tests=10, pictures="made"))
    key = jax.random.key(0)
    first, other = one.draw(key), put(one, "data.gain", 2.0).draw(key)
    np.testing.assert_allclose(2 * first.data[0], other.data[0], rtol=1e-5)
    assert all(
        (a == b).all() for a, b in zip(*map(jax.tree.leaves, (first.params, other.params)), strict=True)
    )
