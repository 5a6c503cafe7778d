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
from lemmata.errors import BadInput  # noqa: E402  (the guard comes before anything that may start JAX)
from lemmata.study import studies, study  # noqa: E402

if TYPE_CHECKING:
    from lemmata.answer import predict
    from lemmata.descent import Descent
    from lemmata.desk import check
    from lemmata.hook import Hook
    from lemmata.kernels import kernels_on
    from lemmata.session import export, picture, run, train
    from lemmata.sweep import Axis, Sweep, axis

__all__ = [
    "Axis",
    "BadInput",
    "Descent",
    "Hook",
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
    "Hook": "hook",
    "Sweep": "sweep",
    "axis": "sweep",
    "check": "desk",
    "export": "session",
    "kernels_on": "kernels",
    "predict": "answer",
    "picture": "session",
    "run": "session",
    "train": "session",
}


def __getattr__(name: str) -> Any:
    """Heavy modules are loaded when a name of theirs is first used, so that listing the studies is fast."""
    import importlib

    if name == "data":
        return importlib.import_module("lemmata.data")
    if name not in _ROOMS:
        raise AttributeError(f"module 'lemmata' has no attribute '{name}'")
    return getattr(importlib.import_module(f"lemmata.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    """Return all public names, including those that are not loaded yet."""
    return sorted({*__all__, *globals()})
