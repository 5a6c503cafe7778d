"""Thumbnails of every figure of every paper, from stored results: `python -m docs.site.gallery [RUNS]` refreshes them.

A thumbnail is drawn from the results at the scale `quick` in the folder of runs. Figures without stored results keep the
thumbnail that they have. The page names the command of each figure.
"""

import os
import sys
from html import escape
from pathlib import Path

from PIL import Image

from lemmata.desk import stored_order
from lemmata.errors import BadInput
from lemmata.report.maths import with_maths
from lemmata.study import Study, studies

ROOM = Path(__file__).parents[1] / "gallery"
WIDTH = 480
COLOURS = 64


def own_studies() -> list[Study]:
    """Return the studies of the lab, without those of other packages."""
    return [study for study in studies().values() if study.package.startswith("lemmata.")]


def refresh(runs: Path) -> int:
    """Draw the thumbnails of all figures whose results are stored below a folder of runs; return how many."""
    os.chdir(runs.parent)
    return sum(_drawn(study) for study in own_studies())


def thumbnail(study: Study, figure: str) -> Path | None:
    """Return the thumbnail of a figure, if there is one."""
    path = ROOM / study.id / f"{figure}.png"
    return path if path.exists() else None


def page() -> str:
    """Return the gallery as Markdown: a card for each figure."""
    parts = ["# Gallery", ""]
    found = sum(thumbnail(study, id) is not None for study in own_studies() for id in study.figures)
    total = sum(len(study.figures) for study in own_studies())
    parts.append(
        f"Every figure of every paper with the command that makes it. {found} of {total} have a picture here, drawn from "
        "stored results at the scale `quick`. `python -m docs.site.gallery` draws those whose results are in `runs`."
    )
    for study in own_studies():
        cards = "\n".join(_card(study, id) for id in study.figures)
        parts += [
            "",
            f"## {study.title}",
            "",
            f"[The study](studies/{study.id}.md)",
            "",
            f'<div class="gallery">\n{cards}\n</div>',
        ]
    return "\n".join(parts) + "\n"


def _card(study: Study, id: str) -> str:
    picture = thumbnail(study, id)
    title = study.figures[id]
    image = f"gallery/{study.id}/{id}.png"
    shown = (
        f'<a href="{image}"><img loading="lazy" alt="{escape(title)}" src="{image}"></a>'
        if picture
        else '<span class="empty">no stored results</span>'
    )
    command = f"lemmata run {study.id}/{id}"
    return f'<div class="card">{shown}<p><b>{escape(id)}</b>: {with_maths(title)}</p><p><code>{command}</code></p></div>'


def _drawn(study: Study) -> int:
    count = 0
    for id in study.figures:
        try:
            order = stored_order(f"{study.id}/{id}", "quick")
            if not order.whole:
                continue
            results = order.results()
            picture = order.draw(results, study.check(results), folder=Path("."))
        except BadInput as error:
            if "nothing is stored" not in str(error):
                print(f"{study.id}/{id}: {error}", file=sys.stderr)
            continue
        shrink(picture, ROOM / study.id / f"{id}.png")
        picture.unlink()
        count += 1
    return count


def shrink(picture: Path, path: Path) -> None:
    """Write a picture as a thumbnail with few colours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(picture) as whole:
        small = whole.convert("RGB").resize(
            (WIDTH, round(WIDTH * whole.height / whole.width)), Image.Resampling.LANCZOS
        )
        small.quantize(COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    print(refresh(Path(sys.argv[1] if len(sys.argv) > 1 else "runs").resolve()), "thumbnails")
