"""Attention maps: logits beside the mask they should show, as a mosaic over the grid, and growing over training."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.image import AxesImage

GROUPS = ListedColormap(
    ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#666666"], "groups"
)


def in_set_order(logits: np.ndarray, group_of: np.ndarray) -> np.ndarray:
    """Rows and columns rearranged so that the positions of a group stand together, the diagonal blanked.

    >>> in_set_order(np.array([[9.0, 1, 2], [1, 9, 3], [2, 3, 9]]), np.array([0, 1, 0]))[0].tolist()
    [nan, 2.0, 1.0]
    """
    order = np.argsort(group_of, kind="stable")
    arranged = np.array(logits, float)[np.ix_(order, order)]
    np.fill_diagonal(arranged, np.nan)
    return arranged


def heat_map(
    axes: Axes, logits: np.ndarray, group_of: np.ndarray, limits: tuple[float, float] | None = None
) -> AxesImage:
    """Off-diagonal logits in the order of the sets."""
    low, high = limits or logit_range(logits)
    image = axes.imshow(
        in_set_order(logits, group_of), cmap="viridis", vmin=low, vmax=high, interpolation="nearest"
    )
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_facecolor("#dddddd")
    return image


def true_mask(axes: Axes, group_of: np.ndarray) -> AxesImage:
    """Which pairs share a group, in the same order: what the heat map should look like."""
    sharing = (np.asarray(group_of)[:, None] == np.asarray(group_of)[None, :]).astype(float)
    image = axes.imshow(
        in_set_order(sharing, group_of), cmap="Greys", vmin=0, vmax=1.4, interpolation="nearest"
    )
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_facecolor("#dddddd")
    return image


def mosaic(
    axes: Axes, logits: np.ndarray, grid: tuple[int, int], limits: tuple[float, float] | None = None
) -> AxesImage:
    """One small grid for every position, at its place: how much it attends to every other; itself is blank."""
    height, width = grid
    low, high = limits or logit_range(logits)
    tiles = np.array(logits, float)
    np.fill_diagonal(tiles, np.nan)
    canvas = np.full((height * (height + 1) - 1, width * (width + 1) - 1), np.nan)
    for position in range(height * width):
        row, column = divmod(position, width)
        top, left = row * (height + 1), column * (width + 1)
        canvas[top : top + height, left : left + width] = tiles[position].reshape(height, width)
    axes.set_facecolor("white")
    image = axes.imshow(canvas, cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
    axes.axis("off")
    return image


def small_multiples(
    panels: Sequence[Axes], maps: Sequence[np.ndarray], titles: Sequence[str], group_of: np.ndarray
) -> AxesImage:
    """The same heat map at several times, all with the colours of the last one."""
    limits = logit_range(maps[-1])
    image = None
    for axes, logits, title in zip(panels, maps, titles, strict=True):
        image = heat_map(axes, logits, group_of, limits)
        axes.set_title(title)
    assert image is not None
    return image


def partition(
    axes: Axes, group_of: np.ndarray, grid: tuple[int, int], text: Sequence[str] | None = None
) -> None:
    """The grid with each position in the colour of its group, and something written in it."""
    height, width = grid
    axes.imshow(
        np.asarray(group_of).reshape(grid) % GROUPS.N, cmap=GROUPS, vmin=-0.5, vmax=GROUPS.N - 0.5, alpha=0.75
    )
    labels = [str(j + 1) for j in range(height * width)] if text is None else text
    for position, label in enumerate(labels):
        row, column = divmod(position, width)
        axes.text(column, row, label, ha="center", va="center", fontsize=9)
    axes.set_xticks(np.arange(-0.5, width), [])
    axes.set_yticks(np.arange(-0.5, height), [])
    axes.tick_params(length=0)
    axes.grid(color="white", linewidth=2)


def logit_range(logits: np.ndarray) -> tuple[float, float]:
    """Smallest and largest off-diagonal logit: the frozen diagonal would hide everything else."""
    off = np.asarray(logits, float)[~np.eye(len(logits), dtype=bool)]
    low, high = float(off.min()), float(off.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)
