"""Attention maps: logits beside the mask they should show, as a mosaic over the grid, and growing over training; and
attention over a sequence of tokens as blocks."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.image import AxesImage

from lemmata.draw.palette import BLUE, GREEN, NOTHING, ORANGE, PURPLE, RED, SKY, YELLOW

GROUPS = ListedColormap([BLUE, ORANGE, GREEN, PURPLE, SKY, RED, YELLOW, "#666666"], "groups")


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
    return _in_order(axes, logits, group_of, "viridis", limits or logit_range(logits))


def true_mask(axes: Axes, group_of: np.ndarray) -> AxesImage:
    """Which pairs share a group, in the same order: what the heat map should look like."""
    sharing = (np.asarray(group_of)[:, None] == np.asarray(group_of)[None, :]).astype(float)
    return _in_order(axes, sharing, group_of, "Greys", (0, 1.4))


def _in_order(
    axes: Axes, values: np.ndarray, group_of: np.ndarray, cmap: str, limits: tuple[float, float]
) -> AxesImage:
    low, high = limits
    arranged = in_set_order(values, group_of)
    axes.set(xticks=[], yticks=[], facecolor=NOTHING)
    return axes.imshow(arranged, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")


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
    panels: Iterable[Axes], maps: Sequence[np.ndarray], titles: Sequence[str], group_of: np.ndarray
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


def over_tokens(
    axes: Axes,
    weights: np.ndarray,
    group_of: Sequence[int],
    rows: Sequence[str],
    groups: Sequence[str] = (),
    text: Sequence[str] | None = None,
) -> None:
    """Attention over a sequence of tokens: a row for each query (or step), a block for each token, as wide as its weight and
    in the colour of its group; what is written in a block stands where it fits.

    `weights` has the rows as first dimension and the tokens as second; `groups` names the groups for the key.
    """
    kinds = np.asarray(group_of, int)
    for place, row in enumerate(np.nan_to_num(np.asarray(weights, float))):
        starts = np.concatenate([[0.0], np.cumsum(row)[:-1]])
        shades = [GROUPS(kind % GROUPS.N) for kind in kinds]
        axes.barh(np.full(len(row), place), row, 0.8, starts, color=shades, edgecolor="white", linewidth=0.6)
        for token, label in enumerate(text or ()):
            if row[token] > 0.012 * (len(label) + 1):
                middle = starts[token] + row[token] / 2
                # Clipped: weights that sum to more than one must not widen the picture.
                axes.text(
                    middle, place, label, ha="center", va="center", fontsize=7, color="white", clip_on=True
                )
    for kind, name in enumerate(groups):
        axes.bar(0, 0, color=GROUPS(kind % GROUPS.N), label=name)
    axes.set_yticks(range(len(rows)), rows)
    axes.set(xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5))


def logit_range(logits: np.ndarray) -> tuple[float, float]:
    """Smallest and largest off-diagonal logit: the frozen diagonal would hide everything else."""
    off = np.asarray(logits, float)[~np.eye(len(logits), dtype=bool)]
    known = off[np.isfinite(off)] if np.isfinite(off).any() else np.zeros(1)
    low, high = float(known.min()), float(known.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)
