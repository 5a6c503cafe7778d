"""Describes what a function computes, as text that stays the same when layout, remarks or file names change.

The registration of claims is made of such texts. A claim refers to its functions as functions: defined, lambda, partial,
closure. `meaning` gives their syntax without docstrings. It adds all functions and the values of all constants of the same
study that they name, and what they are bound to. Functions of the lab (`lemmata.measure`) and of the rooms that make records
(`SIMULATED`) are named, not described: the digest of rows covers the latter.
"""

import ast
import builtins
import dis
import linecache
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from inspect import getsourcefile, unwrap
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from lemmata.source import plain

SIMULATED = ("data", "network", "trials")
"""Rooms of a study whose functions make records."""

CONSTANTS = (bool, int, float, complex, str, bytes, type(None), tuple, list, dict, set, frozenset)


def meaning(thing: Any) -> list[str]:
    """Return syntax and values; first those of the thing itself, then of everything that it uses, sorted.

    >>> meaning(lambda x: x + 1) == meaning(lambda x: x+1), meaning(lambda x: x + 1) == meaning(lambda x: x + 2)
    (True, False)
    """
    found: dict[CodeType, str] = {}
    waiting = list(_functions(thing))
    while waiting:
        function = waiting.pop()
        if function.__code__ in found:
            continue
        used = _used(function)
        values = {
            name: _value(value)
            for name, value in used.items()
            if _is_record(value) or not list(_functions(value))
        }
        found[function.__code__] = f"{_syntax(function)} {sorted(values.items())}"
        waiting += [inner for value in used.values() for inner in _functions(value)]
    return [_value(thing), *sorted(found.values())]


def unresolved(thing: Any) -> Iterator[str]:
    """The names in functions, and in those of the same study that they use, that exist nowhere; each with its place.

    >>> list(unresolved(lambda x: level_sett(x)))
    ["'level_sett' (...line 1)"]
    """
    seen: set[CodeType] = set()
    waiting = list(_functions(thing))
    while waiting:
        function = waiting.pop()
        if function.__code__ not in seen:
            seen.add(function.__code__)
            yield from _missing(function.__code__, function.__globals__)
            waiting += [inner for value in _used(function).values() for inner in _functions(value)]


def _missing(code: CodeType, known: Mapping[str, Any]) -> Iterator[str]:
    """The global names of a code, and the attributes of modules, that do not exist."""
    module: Any = None
    for one in dis.get_instructions(code):
        name, line = str(one.argval), one.positions.lineno if one.positions else code.co_firstlineno
        place = f"({Path(code.co_filename).name}, line {line})"
        if isinstance(module, ModuleType) and one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if not hasattr(module, name):
                yield f"'{module.__name__.rpartition('.')[2]}.{name}' {place}"
        elif one.opname == "LOAD_GLOBAL" and name not in known and not hasattr(builtins, name):
            yield f"'{name}' {place}"
        module = known.get(name) if one.opname == "LOAD_GLOBAL" else None
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _missing(inner, known)


def _functions(thing: Any) -> Iterator[FunctionType]:
    """The functions inside a thing: itself, what a partial binds, what a container holds."""
    if isinstance(thing, partial):
        yield from _functions((thing.func, thing.args, thing.keywords))
    elif isinstance(thing, Mapping):
        yield from _functions(tuple(thing.values()))
    elif isinstance(thing, tuple | list):
        for part in thing:
            yield from _functions(part)
    elif _is_record(thing):
        yield from _functions(_content(thing))
    elif callable(thing) and isinstance(found := unwrap(thing), FunctionType):
        yield found


def _is_record(thing: Any) -> bool:
    """Whether a thing is a dataclass instance that holds values, and functions perhaps, but is no function itself."""
    return is_dataclass(thing) and not callable(thing)


def _content(record: Any) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(record)}


def _value(thing: Any) -> str:
    """A value as text. Of a function only what it is called: its syntax is described apart."""
    if isinstance(thing, partial):
        return f"partial({_value(thing.func)}, {_value(thing.args)}, {_value(thing.keywords)})"
    if callable(thing) and isinstance(unwrap(thing), FunctionType):
        return "function"
    if _is_record(thing) and list(_functions(thing)):  # its repr has the address of each function
        return f"{type(thing).__name__}({_value(_content(thing))})"
    if isinstance(thing, Mapping):
        return str({key: _value(value) for key, value in thing.items()})
    if isinstance(thing, tuple | list):
        return str([_value(part) for part in thing])
    if isinstance(thing, set | frozenset):
        return str(sorted(map(_value, thing)))
    return repr(thing)


def _used(function: FunctionType) -> dict[str, Any]:
    """What a function names in its closure, its defaults and the modules of its own study."""
    home = _home(function.__module__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    used = {name: cell.cell_contents for name, cell in cells}
    used |= {f"default {i}": value for i, value in enumerate(function.__defaults__ or ())}
    used |= {f"default {name}": value for name, value in (function.__kwdefaults__ or {}).items()}
    names = _names(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType) and _home(value.__name__) == home:
            inner = {n: getattr(value, n, None) for n in names}
            used |= {f"{name}.{n}": one for n, one in inner.items() if _belongs(one, home)}
        elif value is not None and _belongs(value, home):
            used[name] = value
    return used


def _belongs(value: Any, home: str) -> bool:
    """Whether a value is a constant, or a function of the same study that does not make records."""
    if callable(value):
        found = unwrap(value)
        if isinstance(found, partial):
            return True
        if not isinstance(found, FunctionType) or _home(found.__module__) != home:
            return False
        return found.__module__[len(home) :].split(".")[1:2] not in [[room] for room in SIMULATED]
    return value is not None and isinstance(value, CONSTANTS)


def _home(module: str) -> str:
    words = module.split(".")
    return ".".join(words[:3] if words[:2] == ["lemmata", "studies"] else words[:1])


def _names(code: CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


# Syntax ----------------------------------------------------------------------------------------------------------------


def _syntax(function: FunctionType) -> str:
    """The arguments and the body of a function, without its docstring, the same for every Python that can read it."""
    code = function.__code__
    nodes = [node for node in _defined(getsourcefile(function) or "") if _is_of(node, code)]
    if not nodes:
        raise LookupError(f"the source of {function.__qualname__} in {code.co_filename} cannot be found.")
    node = min(nodes, key=_length)  # a lambda inside another one is the shorter
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    return f"{plain(node.args)} {plain(list(body))}"


def _is_of(node: ast.FunctionDef | ast.Lambda, code: CodeType) -> bool:
    """Whether a definition can be the source of some code: the same first line and arguments, all instructions inside it."""
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    if list(code.co_varnames[: code.co_argcount]) != names:
        return False
    if isinstance(node, ast.FunctionDef):
        first = min((one.lineno for one in node.decorator_list), default=node.lineno)
        return node.name == code.co_name and code.co_firstlineno in (node.lineno, first)
    if code.co_name != "<lambda>" or node.lineno != code.co_firstlineno:
        return False
    start, end = _start(node.body), _end(node.body)
    places = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
    return all(start <= (p[0], p[2]) and (p[1], p[3]) <= end for p in places)  # pyright: ignore[reportOperatorIssue]


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _length(node: ast.FunctionDef | ast.Lambda) -> tuple[int, int]:
    last = node.body if isinstance(node, ast.Lambda) else node
    return (last.end_lineno or 0) - last.lineno, (last.end_col_offset or 0) - last.col_offset


@cache
def _defined(path: str) -> tuple[ast.FunctionDef | ast.Lambda, ...]:
    tree = ast.parse("".join(linecache.getlines(path)))
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda))
