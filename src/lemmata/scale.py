"""The three sizes of every figure: `smoke` (seconds, for tests), `quick` (the default), `paper` (the paper's own size)."""

from typing import Literal, TypeVar, get_args

from lemmata.arguments import checks_arguments
from lemmata.errors import unknown

Scale = Literal["smoke", "quick", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
Value = TypeVar("Value")


@checks_arguments
def scale_named(name: str) -> Scale:
    """Return the scale of this name."""
    for known in SCALES:
        if known == name:
            return known
    raise unknown("scale", name, SCALES)


@checks_arguments
def by_scale(scale: Scale, smoke: Value, quick: Value, paper: Value) -> Value:
    """Return the one of three values that belongs to a scale."""
    return {"smoke": smoke, "quick": quick, "paper": paper}[scale_named(scale)]
