"""Attention maps and attention over tokens."""

import numpy as np
import pytest

from lemmata.draw import attention
from lemmata.draw.style import canvas


@pytest.fixture
def axes():
    return canvas()[1]


def test_groups_stand_together_and_the_diagonal_is_blank(axes):
    group_of = np.array([0, 1, 0, 1])
    shown = attention.true_mask(axes, group_of).get_array()
    assert shown[0, 1] == shown[2, 3] == 1
    assert shown[0, 2] == 0
    assert np.isnan(np.asarray(np.ma.filled(shown, np.nan))[0, 0])


def test_a_mosaic_has_a_tile_at_every_place(axes):
    logits = np.arange(16.0).reshape(4, 4)
    shown = np.ma.filled(attention.mosaic(axes, logits, (2, 2)).get_array(), np.nan)
    assert shown.shape == (5, 5)
    assert shown[3, 0] == logits[2, 0]
    assert np.isnan(shown[2]).all()


def test_maps_of_nothing_have_a_range():
    assert attention.logit_range(np.full((3, 3), np.nan)) == (-0.5, 0.5)


def test_blocks_are_as_wide_as_the_attention_and_coloured_by_group(axes):
    weights = np.array([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0]])
    attention.over_tokens(axes, weights, [0, 1, 0], ["first", "last"], ["same", "other"], ["a", "b", "c"])
    blocks = axes.patches[:6]
    assert [block.get_width() for block in blocks] == pytest.approx(weights.ravel())
    assert [block.get_x() for block in blocks[:3]] == pytest.approx([0, 0.5, 0.8])
    assert blocks[0].get_facecolor() == blocks[2].get_facecolor() != blocks[1].get_facecolor()
    assert [text.get_text() for text in axes.texts] == ["a", "b", "c", "b"]
    assert axes.get_legend_handles_labels()[1] == ["same", "other"]
