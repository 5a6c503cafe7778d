"""What a notebook calls: `run`, `train` and `picture`, with the labels, names and boundaries that a study knows."""

import csv
import io
import tempfile
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from jaxtyping import PyTree

from lemmata import loop
from lemmata.answer import smallest
from lemmata.arguments import checks_arguments
from lemmata.errors import BadInput, require
from lemmata.lab import export as lab_export
from lemmata.lab import run as lab
from lemmata.lab.disk import replace_file
from lemmata.names import described
from lemmata.report.latex import latex_table
from lemmata.results import assemble, place_paths, trials
from lemmata.rows import Rows
from lemmata.study import Study, studies
from lemmata.sweep import Sweep
from lemmata.terminal import json_text, plain_verdict
from lemmata.trial import Key, Trial, fields, put

if TYPE_CHECKING:
    import matplotlib.figure

    from lemmata.draw.phase import Line

BOUNDARY_POINTS = 12
"""Places at which a predicted boundary is solved for."""


@checks_arguments
def run(
    sweep: Sweep,
    out: Path | str | None = None,
    workers: int = 0,
    progress: bool | None = None,
    executor: Executor | None = None,
    limit: float | None = None,
    fail_fast: bool = False,
) -> xr.Dataset:
    """Run the missing cells of a sweep and return its results, with the labels and derived coordinates of its study.

    `sweep`: a sweep of your own.
    `out`: the folder that keeps the results, where the same call finds them again. Without it they are only returned.
    `workers`: the number of worker processes; 0 runs everything in this process.
    `progress`: whether a progress bar is shown; by default in a terminal and in a notebook.
    `executor`: any `concurrent.futures.Executor`, in place of `workers`.
    `limit`: how many seconds a cell may take.
    `fail_fast`: whether the first failed cell ends the run.

    >>> from lemmata.sweep import axis
    >>> from lemmata.trial import Computed
    >>> class Square(Computed):
    ...     value: float = 0.0
    ...
    ...     def compute(self, key):
    ...         return {"square": self.value**2}
    >>> run(Sweep(Square(), (axis("value", (2, 3)),), seeds=(0,))).square.sel(seed=0).values.tolist()
    [4.0, 9.0]
    """
    return completed(lab.run(sweep, out, workers, progress, executor, limit, fail_fast), sweep)


@checks_arguments
def train(
    trial: Trial, seed: int = 0, key: Key | None = None, data: PyTree = None, weights: PyTree = None
) -> xr.Dataset:
    """Train one trial in this process and return its record, a Dataset with curves over `step`.

    `trial`: the training.
    `seed`: the seed of the cell. The result is what a sweep stores for the cell `(trial, seed)`.
    `key`: a random key, in place of that of the cell.
    `data`: samples in place of the drawn ones, of the form that `trial.takes` returns.
    `weights`: initial weights in place of the drawn ones, likewise.

    >>> train(studies())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    lemmata.errors.BadInput: 'trial' of train takes a Trial, not ...
    """
    record = loop.train(trial, seed, key, data, weights)
    sweep = Sweep(trial, (), (seed,))
    rows = Rows(np.arange(1), {name: np.asarray(value)[None] for name, value in record.items()})
    return completed(assemble(sweep, rows), sweep).isel(seed=0)


def completed(results: xr.Dataset, sweep: Sweep) -> xr.Dataset:
    """Return results of one's own sweep with the labels and derived coordinates that its study knows for such trials."""
    kinds, own = {type(trial) for trial in trials(results)}, own_study(results)
    same = [one for one in (own.all_figures if own else ()) if type(one.sweep("smoke").template) in kinds]
    for figure in {(one.labels, one.derived): one for one in same}.values():
        try:
            results = figure.complete(results)
        except (BadInput, LookupError, AttributeError, TypeError, ValueError):
            continue  # this figure derives coordinates from axes that the sweep does not have
    return described(results, place_paths(sweep))


def own_study(results: xr.Dataset) -> Study | None:
    """Return the study to which the trials of some results belong, if they do."""
    return studies().get(trials(results)[0].name.partition("/")[0])


@checks_arguments
def export(results: xr.Dataset, path: Path | str, venue: str = "") -> Path:
    """Write results, their verdicts or their picture to a file, and return its path.

    `path`: its suffix chooses what is written. `.nc` (netCDF, everything); `.parquet` and `.csv` (a row for each run);
        `.json` and `.tex` (the verdicts on a figure's results); `.pdf`, `.png` and `.svg` (the picture); `.html` (one page with
        the picture and the data behind it, of a sweep of your own or of a figure).
    `venue`: the picture fits the page of `neurips`, `icml` or `iclr`. Its numbers are written beside it, as CSV.

    >>> export(xr.Dataset(), "results.nc")
    Traceback (most recent call last):
    lemmata.errors.BadInput: these results have no 'status'; take them as `run` gives them.
    """
    path = Path(path)
    if path.suffix in (".json", ".tex"):
        own = own_study(results)
        require(own is not None, "these results belong to no study, so there are no claims to judge.")
        verdicts = own.check(results)  # pyright: ignore[reportOptionalMemberAccess]
        text = (
            latex_table(verdicts)
            if path.suffix == ".tex"
            else json_text({"claims": list(map(plain_verdict, verdicts))})
        )
        _write(path, f"{text.rstrip()}\n".encode())
        return path
    if path.suffix in PICTURES:
        return save_picture(picture(results), path, venue)
    if path.suffix == ".html":
        _write(path, _page(results).encode(errors="replace"))
        return path
    require(not venue, f"a venue is for pictures ({', '.join(PICTURES)}), not for '{path.name}'.")
    return lab_export.export(results, path)


def _page(results: xr.Dataset) -> str:
    """Return a report of results of one's own."""
    from lemmata.report import own_chapter, page

    own = own_study(results) if "trial" in results.coords else None
    if own is None:
        raise BadInput(
            "these results belong to no study, which a page is made of; export them as .csv or .png."
        )
    with tempfile.TemporaryDirectory() as folder:
        drawn: Path | None = Path(folder) / "picture.png"
        try:
            save_picture(picture(results), drawn)
        except BadInput:
            drawn = None  # too many axes for one picture: the page shows the data alone
        return page([(own, [own_chapter(results, drawn)])])


PICTURES = (".pdf", ".png", ".svg")


def save_picture(drawn: "matplotlib.figure.Figure", path: Path, venue: str = "") -> Path:
    """Write a picture to a file; for a venue at its width, with the numbers that it shows as CSV beside it."""
    from lemmata.draw.venue import fit_to_venue, numbers_of

    require(path.suffix in PICTURES, f"a picture is a file {', '.join(PICTURES)}, not '{path.name}'.")
    page = io.BytesIO()
    if venue:
        table = io.StringIO()
        head = ("panel", "series", "x", "y", "value")
        csv.writer(table, lineterminator="\n").writerows((head, *numbers_of(drawn)))
        _write(path.with_suffix(".csv"), table.getvalue().encode())
        fit_to_venue(drawn, venue).savefig(page, format=path.suffix[1:], bbox_inches=None)
    else:
        drawn.savefig(page, format=path.suffix[1:])
    _write(path, page.getvalue())
    return path


def _write(path: Path, content: bytes) -> None:
    try:
        replace_file(path, content)
    except OSError as error:
        raise BadInput(f"cannot write '{path}': {error.strerror or error}.") from None


# Pictures --------------------------------------------------------------------------------------------------------------


@checks_arguments
def picture(results: xr.Dataset, show: str = "") -> "matplotlib.figure.Figure":
    """Draw results: those of a figure as the figure does, any other sweep over one axis or two.

    A sweep over one axis gives curves, over two a phase diagram, with the boundary that the study predicts where the axes are
    fields of the trial. Results that carry a figure's own axes are drawn with their verdicts.

    `results`: results of a figure, of `lm.run` or of `lm.train`.
    `show`: the variable to draw; by default the error or loss on fresh data. It overrides the picture of a figure.

    >>> picture(xr.Dataset())
    Traceback (most recent call last):
    lemmata.errors.BadInput: these results have no 'status'; take them as `run` gives them.
    """
    from lemmata.draw.sweeps import draw_sweep, wide_axes

    require("status" in results, "these results have no 'status'; take them as `run` gives them.")
    own = own_study(results) if "trial" in results.coords else None
    figure = results.attrs.get("figure")
    if not show and own is not None and isinstance(figure, str) and figure in own.figures:
        drawn = own.figure(figure)
        if set(drawn.sweep("smoke").dims) == {*results["status"].dims}:
            return drawn.draw(results, own.check(results))
    axes = wide_axes(results)
    lines = boundary(results, axes[0], axes[1], own) if len(axes) == 2 and own is not None else []
    return draw_sweep(results, show, lines)


def boundary(results: xr.Dataset, x: str, y: str, own: Study) -> "list[Line]":
    """Return the boundary of the success that a study predicts over two axes; none where the axes are no fields."""
    from lemmata.draw.phase import Line

    answer = own.answer
    first = trials(results)[0]
    if answer is None or not isinstance(first, type(own.template())):
        return []
    paths = {axis: _field_of(results, axis) for axis in (x, y)}
    if None in paths.values():
        return []
    ys = np.asarray(results[y].values, float)
    places = np.geomspace(ys.min(), ys.max(), BOUNDARY_POINTS) if (ys > 0).all() else np.unique(ys)
    found = []
    for place in places:
        try:
            trial = put(first, str(paths[y]), _as_field(first, str(paths[y]), place))
            start = _as_field(first, str(paths[x]), float(results[x].values.astype(float).min()))
            found.append(smallest(answer.success, put(trial, str(paths[x]), start), str(paths[x])))
        except BadInput:
            found.append(None)
    solved = np.array([np.nan if value is None else float(value) for value in found])
    if not np.isfinite(solved).sum() > 1:
        return []
    return [
        Line(
            f"predicted: {answer.goal}",
            lambda at: np.interp(at, places, solved, np.nan, np.nan),
            "black",
            "--",
        )
    ]


def _as_field(trial: Trial, path: str, value: float) -> int | float:
    return round(value) if isinstance(fields(trial)[path], int) else float(value)


def _field_of(results: xr.Dataset, axis: str) -> str | None:
    """The path of the one field that an axis sets to its labels."""
    along = results.isel({dim: 0 for dim in results.trial.dims if dim != axis})
    held = [one.trial for one in np.atleast_1d(along.trial.values) if one is not None]
    if len(held) != results.sizes[axis]:
        return None
    labels = results[axis].values.tolist()
    paths = [path for path in fields(held[0]) if [fields(one).get(path) for one in held] == labels]
    return paths[0] if len(paths) == 1 else None
