"""Functions of manifests: the history of starts, and the copy that segments carry."""

import json
from collections.abc import Mapping
from typing import Any

from lemmata.lab.disk import sealed_page

LARGEST_COPY = 1 << 20
"""The largest manifest that is copied into every segment, in bytes."""


def same(one: Mapping[str, Any] | None, other: Mapping[str, Any]) -> bool:
    """Whether two manifests are equal. NaN equals NaN."""
    return one is not None and json.dumps(one) == json.dumps(other)


def copied(manifest: Mapping[str, Any]) -> str:
    """Return the copy of a manifest for segments. It leaves out the history of starts, which grows with every run."""
    if not manifest:
        return ""
    page = sealed_page({word: value for word, value in manifest.items() if word != "starts"}).decode()
    return page if len(page) <= LARGEST_COPY else ""


def starts_in(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the history of starts in a manifest, without malformed entries, as users may have changed the file."""
    starts = manifest.get("starts")
    return (
        [one for one in starts if isinstance(one, dict) and "at" in one] if isinstance(starts, list) else []
    )
