"""What `lemmata data` does: lists the data sets, gets one, verifies those that are here."""

import argparse
from typing import Any

from lemmata.data import store
from lemmata.data.catalogue import CATALOGUE, DataSet
from lemmata.terminal import print_as, print_table


def run(options: argparse.Namespace) -> int:
    """Carry out `lemmata data`, `lemmata data get` or `lemmata data verify`, and return the exit code."""
    if options.verb == "get":
        print(store.get(options.set, options.source))
        return 0
    return _verify(options.set) if options.verb == "verify" else _list(options.format)


def _list(format: str | None) -> int:
    found = [_described(one) for one in CATALOGUE.values()]
    rows = [
        (
            one["id"],
            "present" if one["file"] else "absent",
            "" if one["megabytes"] is None else f"{one['megabytes']:.1f}",
            "; ".join(f"{study}: {figures}" for study, figures in one["meant_for"]),
            one["licence"],
            one["citation"],
            one["file"] or f"`lemmata data get {one['id']}`",
        )
        for one in found
    ]
    head = ("data set", "here", "MB", "meant for figures of", "licence", "citation", "where")
    if not print_as(format, head, rows, {"folder": str(store.data_folder()), "data_sets": found}):
        print_table(f"Data sets in {store.data_folder()}", head, rows)
    return 0


def _described(one: DataSet) -> dict[str, Any]:
    """Return an entry of the list. Its size is that of the file, or of the official files if it is absent."""
    path = store.data_file(one.name)
    here = path.is_file()
    return {
        "id": one.name,
        "title": one.title,
        "file": str(path) if here else None,
        "megabytes": path.stat().st_size / 1e6 if here else one.megabytes,
        "meant_for": [list(pair) for pair in one.meant_for],
        "licence": one.licence,
        "citation": one.citation,
        "home": one.home,
    }


def _verify(name: str | None) -> int:
    names = [name] if name else store.present()
    problems = {one: store.problem(one) for one in names}
    for one, fault in problems.items():
        print(f"{one}: {fault or 'whole'}")
    if not names:
        print(f"no data set is in {store.data_folder()}")
    return int(any(problems.values()))
