"""Checks a built site: every local link leads somewhere, and no page asks the network for anything.

`python -m docs.site.links FOLDER` lists what is wrong.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

LOADED = ("stylesheet", "preconnect", "preload", "icon")
REMOTE = ("http://", "https://", "//")
LEFT_OUT = ("mailto:", "data:", "javascript:")


class _Page(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {value for key in ("id", "name") if (value := given.get(key))}
        for key in ("href", "src"):
            value = given.get(key)
            if not value or value.startswith(LEFT_OUT):
                continue
            if not value.startswith(REMOTE):
                self.links.append(value)
            elif key == "src" or (tag == "link" and set((given.get("rel") or "").split()) & {*LOADED}):
                self.loads.append(value)


def faults(folder: Path) -> list[str]:
    """Return a sentence for every link of a site that leads nowhere, and for everything that is loaded from the network."""
    pages = {
        path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))
    }
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        found += [f"{name} loads {address}" for address in page.loads]
        if path.name == "404.html":
            continue  # its links begin at the root of a server
        for link in page.links:
            place, _, anchor = link.partition("#")
            target = (path.parent / unquote(place.partition("?")[0])).resolve() if place else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name} links to {link}, which does not exist")
            elif anchor and target in pages and unquote(anchor) not in pages[target].ids:
                found.append(f"{name} links to {link}, a place that does not exist")
    return found


def main(folder: Path) -> int:
    """Print the faults of a site; return 1 if there are any."""
    found = faults(folder)
    print(
        "\n".join(found)
        or f"{len(list(folder.rglob('*.html')))} pages, no dead links, nothing loaded from the network"
    )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
