"""Builds the site: `python -m docs.site.build [FOLDER]`.

It stages pages with their links, runs the tutorials, builds, and checks the links of the result.

`--draft` leaves the tutorials unexecuted.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from docs.site import gallery, links, tutorials
from docs.site.pages import api_page, studies_page, study_page

ROOM = Path(__file__).parent
ROOT = ROOM.parents[1]
PAGES = ROOT / "docs"
KATEX = ROOT / "src" / "lemmata" / "report" / "katex"
OTHERS = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    "plugins/linear-attention/lemmata_linear_attention/README.md": "linear-attention.md",
}
"""Pages outside of the folder `docs` that the site shows, and their names in it."""

LINK = re.compile(r"(\[[^\]]*\])\(([^)\s]+)\)")


def build(folder: Path, run: bool = True) -> Path:
    """Build the site below a folder, and return the folder of the finished pages."""
    stage = folder / "docs"
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    for path in sorted(PAGES.glob("*.md")):
        _write(stage / path.name, path.read_text(encoding="utf-8"), path)
    for name, target in OTHERS.items():
        _write(stage / target, (ROOT / name).read_text(encoding="utf-8"), ROOT / name)
    for study, text in study_page():
        _write(stage / "studies" / f"{study.id}.md", text, study.folder / "README.md")
    (stage / "studies" / "index.md").write_text(studies_page(), encoding="utf-8")
    (stage / "api.md").write_text(api_page(), encoding="utf-8")
    (stage / "gallery.md").write_text(gallery.page(), encoding="utf-8")
    shutil.copytree(gallery.ROOM, stage / "gallery", dirs_exist_ok=True)
    shutil.copytree(PAGES / "images", stage / "images")
    shutil.copytree(KATEX, stage / "assets" / "katex")
    for name in ("formulas.js", "site.css", "iframe-worker.js"):
        shutil.copy(ROOM / name, stage / "assets" / name)
    for script in tutorials.scripts():
        tutorials.write_page(script, stage / "tutorials", run)
    text = (ROOM / "mkdocs.yml").read_text(encoding="utf-8")
    (folder / "mkdocs.yml").write_text(
        text.replace("SOURCES", str(ROOT / "src")).replace("ROOM", str(ROOM)), encoding="utf-8"
    )
    shutil.rmtree(folder / "site", ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", "mkdocs.yml"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "site"


def staged(path: Path) -> str | None:
    """Return the name in the site of a file of the project; None if the site does not show it."""
    for study, _ in study_page():
        if path == study.folder / "README.md":
            return f"studies/{study.id}.md"
    if path == ROOT / "README.md":
        return "index.md"
    if path.is_relative_to(PAGES) and path.suffix in (".md", ".png"):
        return path.relative_to(PAGES).as_posix()
    if path.parent == tutorials.ROOM:
        return f"tutorials/{path.stem}.md"
    return OTHERS.get(path.relative_to(ROOT).as_posix()) if path.is_relative_to(ROOT) else None


def relinked(text: str, source: Path, depth: int = 0) -> str:
    """Return a page whose links lead to pages of the site. A link to a file that is not in the site becomes plain text."""

    def replaced(found: re.Match[str]) -> str:
        place, mark, anchor = found[2].partition("#")
        if "://" in place or not place or place.startswith("mailto:"):
            return found[0]
        target = staged((source.parent / place).resolve())
        return f"{found[1]}({'../' * depth}{target}{mark}{anchor})" if target else found[1][1:-1]

    return LINK.sub(replaced, text)


def _write(path: Path, text: str, source: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    depth = 1 if path.parent.name == "studies" else 0
    path.write_text(relinked(text, source, depth), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Build the site and check its links."""
    given = [one for one in arguments if not one.startswith("--")]
    site = build(Path(given[0] if given else ROOT / "build").resolve(), run="--draft" not in arguments)
    print(site)
    return links.main(site)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
