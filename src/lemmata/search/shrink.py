"""Makes a counter-example simple: as few changed fields as possible, then the roundest numbers.

Every step must stay inside the conditions and violate the claim on all of its seeds. Rounding may leave the conditions where
one of them binds: then one field is moved back to where it just holds.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

import numpy as np

from lemmata.search.space import Field

Values = Mapping[str, Any]
MOST = 60
"""Points that shrinking may train."""

SCANNED = 6
"""Values on either side that are looked at before a bisection: the inside may be an interval in between."""


def shrunk(
    values: Values,
    start: Values,
    inside: Callable[[Values], bool],
    violated: Callable[[Values], bool],
    resolved: Callable[[Values, set[str]], Values | None],
    most: int = MOST,
) -> dict[str, Any]:
    """Return a simpler point that is inside and violates the claim.

    `start`: the point that changes nothing.
    `inside`: whether a point meets the conditions; costs nothing. `violated` takes a training.
    `resolved`: a point outside with one field moved until the conditions just hold; the fields of a set stay as they are.
    """
    left = most

    def kept(new: Values, fixed: set[str]) -> dict[str, Any] | None:
        """The new point, resolved if it must be, if it is still a counter-example."""
        nonlocal left
        able = new if inside(new) else resolved(new, fixed)
        if left <= 0 or able is None:
            return None
        left -= 1
        return dict(able) if violated(able) else None

    now = _fewer(dict(values), start, kept)
    for digits in (1, 2, 3):
        done: set[str] = set()
        for name in [name for name in now if now[name] != start[name] and isinstance(now[name], float)]:
            rounded = float(f"{now[name]:.{digits}g}")
            done.add(name)
            unchanged = {other for other in now if now[other] == start[other]}
            if rounded != now[name]:
                now = kept(now | {name: rounded}, done | unchanged) or now
    return now


def _fewer(
    now: dict[str, Any], start: Values, kept: Callable[[Values, set[str]], dict[str, Any] | None]
) -> dict[str, Any]:
    """Reset groups of fields to the start, then single ones, until none can be reset."""
    size = max(sum(now[name] != start[name] for name in now) // 2, 1)
    while True:
        names = [name for name in now if now[name] != start[name]]
        unchanged = set(now) - set(names)
        for at in range(0, len(names), size):
            group = names[at : at + size]
            if new := kept(now | {name: start[name] for name in group}, {*group, *unchanged}):
                now = new
                break
        else:
            if size == 1:
                return now
            size = max(size // 2, 1)


def resolver(
    space: Sequence[Field], inside: Callable[[Values], bool]
) -> Callable[[Values, set[str]], Values | None]:
    """Return the function that moves one field of a point until the conditions just hold, by bisection."""

    def resolved(values: Values, fixed: set[str]) -> Values | None:
        for one in space:
            if one.name in fixed or one.options:
                continue
            here = one.unit(values[one.name])
            for end in (1.0, 0.0):
                out = here
                for met in np.linspace(here, end, SCANNED + 1)[1:]:
                    if inside({**values, one.name: one.value(met)}):
                        break
                    out = met
                else:
                    continue
                for _ in range(12):
                    middle = (out + met) / 2
                    holds = inside({**values, one.name: one.value(middle)})
                    out, met = (out, middle) if holds else (middle, met)
                return _rounded_inside({**values, one.name: one.value(met)}, one.name, inside)
        return None

    return resolved


def _rounded_inside(values: dict[str, Any], name: str, inside: Callable[[Values], bool]) -> Values:
    """The point with this field at its roundest value within 2 % that is inside."""
    number = values[name]
    for digits in (1, 2, 3):
        step = 10.0 ** (floor(log10(abs(number))) - digits + 1) if number else 1.0
        for rounded in (floor(number / step) * step, ceil(number / step) * step):
            near = {**values, name: type(number)(float(f"{rounded:.{digits}g}"))}
            if number and abs(near[name] / number - 1) < 0.02 and inside(near):
                return near
    return values
