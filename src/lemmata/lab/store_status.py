"""Finds a store, and counts its finished cells from its manifest and rows alone, without building cells or loading JAX."""

import os
from collections.abc import Mapping
from pathlib import Path

from lemmata.errors import BadInput, few
from lemmata.lab.store import Store
from lemmata.source import current_digests

PARTS = ("manifest.json", "segments")
"""What makes a folder a store."""

LEVELS = ("*", "*/*", "*/*/*")
"""How deep below a folder its only store may lie: STUDY/FIGURE/SCALE/READING."""


def store_folder(name: str) -> Path | None:
    """Return the folder of a store: `name` itself, or the only store below it. None if there is no store."""
    if not os.path.isdir(name):  # unlike Path.is_dir, never raises
        return None
    folder = Path(name)
    if any((folder / part).exists() for part in PARTS):
        return folder
    for level in LEVELS:
        found = sorted({path.parent for part in PARTS for path in folder.glob(f"{level}/{part}")})
        if len(found) > 1:
            raise BadInput(
                f"'{name}' holds {len(found)} stores; name one of them: {', '.join(few(list(map(str, found))))}."
            )
        if found:
            return found[0]
    return None


def store_status(store: Store) -> dict[str, int] | None:
    """Return the number of cells of the last order in a store, and how those ended that the present code ran.

    Returns None if the manifest does not say: the store also holds cells of other orders, or was made by an older release.
    """
    manifest = store.manifest
    cells, sources = manifest.get("cells"), manifest.get("sources")
    if manifest.get("alone") is not True or type(cells) is not int or cells < 1:
        return None
    if not isinstance(sources, dict) or not all(isinstance(digest, str) for digest in sources.values()):
        return None
    return cell_counts(cells, store.counts(current_digests(sources)))


def cell_counts(cells: int, found: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of all cells, of those that are done, and of failed, diverged and capped ones."""
    ended = {name: found.get(name, 0) for name in ("failed", "diverged", "capped")}
    return {"cells": cells, "done": sum(found.values()) - ended["failed"], **ended}
