"""Lemmata: a laboratory for theorems about how attention models train.

>>> import lemmata as lm
>>> study = lm.study("benign-overfitting")
>>> study.title
'Benign overfitting of a transformer'
"""

from typing import TYPE_CHECKING, Any

from lemmata import guard

guard.apply()

from lemmata.errors import BadInput  # noqa: E402  (the guard comes before anything that may start JAX)
from lemmata.study import studies, study  # noqa: E402

if TYPE_CHECKING:
    from lemmata.descent import Descent
    from lemmata.desk import check
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
    "draw",
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
    "run": "lab.run",
}
_ROOMS |= {"train": "loop"}


def draw(results: Any) -> Any:
    """The picture of a figure's results, with its verdicts."""
    own = study(results.attrs.get("study", ""))
    return own.figure(results.attrs["figure"]).draw(results, own.check(results))


def __getattr__(name: str) -> Any:
    """What is heavy is loaded when it is asked for, so that listing the studies stays instant."""
    import importlib

    if name not in _ROOMS:
        raise AttributeError(f"module 'lemmata' has no attribute '{name}'")
    return getattr(importlib.import_module(f"lemmata.{_ROOMS[name]}"), name)
