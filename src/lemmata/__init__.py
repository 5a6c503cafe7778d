"""Lemmata: a laboratory for theorems about how attention models train.

>>> import lemmata as lm
>>> study = lm.study("benign-overfitting")
>>> study.title
'Benign overfitting of a transformer'
"""

from typing import TYPE_CHECKING, Any

from lemmata import guard

guard.apply()

import lemmata.studies  # noqa: E402, F401  (loaded later, the package would hide the function of its name)
from lemmata.arguments import checks_arguments  # noqa: E402  (the guard comes before anything that may start JAX)
from lemmata.errors import BadInput  # noqa: E402
from lemmata.study import studies, study  # noqa: E402

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

    from lemmata.answer import predict
    from lemmata.descent import Descent
    from lemmata.desk import check
    from lemmata.kernels import kernels_on
    from lemmata.lab.export import export
    from lemmata.lab.run import run
    from lemmata.loop import train
    from lemmata.sweep import Axis, Sweep, axis

__all__ = [
    "Axis",
    "BadInput",
    "Descent",
    "Sweep",
    "axis",
    "check",
    "export",
    "kernels_on",
    "picture",
    "predict",
    "run",
    "studies",
    "study",
    "train",
]
__version__ = "0.1.0"

_ROOMS = {
    "Axis": "sweep",
    "Descent": "descent",
    "Sweep": "sweep",
    "axis": "sweep",
    "check": "desk",
    "export": "lab.export",
    "kernels_on": "kernels",
    "predict": "answer",
    "run": "lab.run",
}
_ROOMS |= {"train": "loop"}


@checks_arguments
def picture(results: "xr.Dataset") -> "matplotlib.figure.Figure":
    """Draw the results of a figure, with their verdicts.

    `results` is what `Figure.run` returns: its attributes name the study and the figure.

    >>> import xarray
    >>> picture(xarray.Dataset())
    Traceback (most recent call last):
    lemmata.errors.BadInput: these results do not name their study and figure; take them as `Figure.run` gives them.
    """
    of_study, of_figure = (results.attrs.get(word) for word in ("study", "figure"))
    if not (isinstance(of_study, str) and isinstance(of_figure, str)):
        raise BadInput(
            "these results do not name their study and figure; take them as `Figure.run` gives them."
        )
    own = study(of_study)
    return own.figure(of_figure).draw(results, own.check(results))


def __getattr__(name: str) -> Any:
    """What is heavy is loaded when it is asked for, so that listing the studies stays instant."""
    import importlib

    if name == "data":
        return importlib.import_module("lemmata.data")
    if name not in _ROOMS:
        raise AttributeError(f"module 'lemmata' has no attribute '{name}'")
    return getattr(importlib.import_module(f"lemmata.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    """All public names, also those that are not loaded yet."""
    return sorted({*__all__, *globals()})
