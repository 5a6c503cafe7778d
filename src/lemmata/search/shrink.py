"""Makes a counter-example simple: as few changed fields as possible, then the roundest numbers.

Every step must stay inside the conditions and violate the claim on all of its seeds. Rounding may leave the conditions where
one of them binds: then one field is moved back to where it just holds.
"""

from collections.abc import Callable, Mapping
from typing import Any

Values = Mapping[str, Any]
MOST = 60
"""Trainings of points that shrinking may take."""


def shrunk(
    values: Values,
    start: Values,
    inside: Callable[[Values], bool],
    violated: Callable[[Values], bool],
    most: int = MOST,
) -> dict[str, Any]:
    """Return a simpler point that is inside and violates the claim.

    `start`: the point that changes nothing. `inside` costs nothing, `violated` takes a training.
    """
    left = most

    def still(new: Values) -> bool:
        nonlocal left
        if left <= 0 or not inside(new):
            return False
        left -= 1
        return violated(new)

    now = _fewer(dict(values), start, still)
    for digits in (1, 2, 3):
        for name in [name for name in now if now[name] != start[name] and isinstance(now[name], float)]:
            rounded = float(f"{now[name]:.{digits}g}")
            if rounded == now[name]:
                continue
            new = now | {name: rounded}
            new = new if inside(new) else _resolved(new, start, name, digits, inside)
            if new is not None and still(new):
                now = new
    return now


def _fewer(now: dict[str, Any], start: Values, still: Callable[[Values], bool]) -> dict[str, Any]:
    """Reset groups of fields to the start, then single ones, until none can be reset."""
    size = max(sum(now[name] != start[name] for name in now) // 2, 1)
    while True:
        names = [name for name in now if now[name] != start[name]]
        groups = [names[i : i + size] for i in range(0, len(names), size)]
        reset = next((group for group in groups if still(now | {name: start[name] for name in group})), None)
        if reset is not None:
            now = now | {name: start[name] for name in reset}
        elif size > 1:
            size = max(size // 2, 1)
        else:
            return now


def _resolved(
    new: dict[str, Any], start: Values, kept: str, digits: int, inside: Callable[[Values], bool]
) -> dict[str, Any] | None:
    """The point with one other field moved just far enough that the conditions hold again."""
    for name in [one for one in new if one != kept and new[one] != start[one] and isinstance(new[one], float)]:
        for nudge in (1, -1, 2, -2, 4, -4):
            step = 10.0 ** -(digits + 1) * abs(new[name])
            moved = float(f"{new[name] + nudge * step:.{digits + 1}g}")
            if inside(new | {name: moved}):
                return new | {name: moved}
    return None
