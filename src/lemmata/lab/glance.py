"""How far a store has come, at once: from its manifest and its rows alone, without building its cells or loading JAX."""

from collections.abc import Mapping

from lemmata.lab.store import Store
from lemmata.source import as_it_is


def glance(store: Store) -> dict[str, int] | None:
    """How many cells the order of a store has, and how those ended that the code as it is now has run.

    Nothing where the manifest cannot tell: the store also holds cells of other orders, or was made before this was noted.
    """
    manifest = store.manifest
    cells, sources = manifest.get("cells"), manifest.get("sources")
    if manifest.get("alone") is not True or type(cells) is not int or cells < 1:
        return None
    if not isinstance(sources, dict) or not all(isinstance(digest, str) for digest in sources.values()):
        return None
    return tally(cells, store.counts(as_it_is(sources)))


def tally(cells: int, found: Mapping[str, int]) -> dict[str, int]:
    """The number of cells, of those that are done, and of those among them that need a remark."""
    ended = {name: found.get(name, 0) for name in ("failed", "diverged", "capped")}
    return {"cells": cells, "done": sum(found.values()) - ended["failed"], **ended}
