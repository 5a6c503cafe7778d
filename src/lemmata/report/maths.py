"""Finds the formulas in sentences such as "falls as N^-1/2" and writes them for KaTeX."""

import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from lemmata.errors import printable

GREEK = (
    *(
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
    ),
    *("xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
    *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega"),
)
NAMES = {name: f"\\{name}" for name in GREEK} | {"eps": r"\epsilon", "inf": r"\infty"}
FUNCTIONS = {name: f"\\{name}" for name in ("log", "exp", "min", "max", "sum", "tanh")}
UPRIGHT = ("SNR", "LOG", "ReLU", "poly", "polylog", "tr")
OPERATORS = {
    "<=": r"\le",
    ">=": r"\ge",
    "~": r"\sim",
    "=": "=",
    "<": "<",
    ">": ">",
    "+": "+",
    "-": "-",
    "/": "/",
}
RELATIONS = ("<=", ">=", "=", "<", ">")
WORDS = ("a", "A", "I", "s")
"""Letters that are words of the sentence, unless an index or an exponent follows."""

TOKEN = re.compile(r"\s+|[A-Za-z]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?|<=|>=|.", re.DOTALL)


class Found(NamedTuple):
    """A formula: its TeX, the place after it, and whether it is one beyond doubt."""

    tex: str
    end: int
    sure: bool


def with_maths(text: str) -> str:
    """Return text as HTML in which every formula is an element `tex`, with the text itself inside for want of JavaScript.

    >>> with_maths("it falls as N^-1/2 & more")
    'it falls as <span class="tex" data-tex="N^{-1/2}">N^-1/2</span> &amp; more'
    """
    tokens = TOKEN.findall(printable(text))
    parts, place, glued = [], 0, False
    while place < len(tokens):
        found = None if glued else _run(tokens, place)
        if found is not None and found.sure and not _continues(tokens, found.end):
            said = "".join(tokens[place : found.end])
            parts.append(f'<span class="tex" data-tex="{escape(found.tex)}">{escape(said)}</span>')
            place = found.end
        else:
            parts.append(escape(tokens[place]))
            glued = tokens[place][-1].isalnum() or tokens[place] in ("_", "^", ".")
            place += 1
    return "".join(parts)


def tex_of(symbol: str) -> str:
    """Return the TeX of a symbol, or an empty text where it is no formula as a whole.

    >>> tex_of("sigma_p^2"), tex_of("|w_O|"), tex_of("a word")
    ('\\\\sigma_{p}^{2}', '|w_{O}|', '')
    """
    tokens = TOKEN.findall(printable(symbol))
    found = _run(tokens, 0)
    return found.tex if found and found.end == len(tokens) else ""


def _continues(tokens: Sequence[str], place: int) -> bool:
    """Whether a word goes on where a formula would end, as in `test_loss`."""
    after = tokens[place] if place < len(tokens) else " "
    return after[0].isalnum() or after in ("_", "^")


def _run(tokens: Sequence[str], place: int, inside: bool = False) -> Found | None:
    """Return terms side by side, or with operators between."""
    sign = ""
    if tokens[place : place + 1] == ["-"]:
        sign, place = "-", place + 1
    found = _term(tokens, place, inside)
    if found is None:
        return None
    tex, end, sure = sign + found.tex, found.end, found.sure
    while end < len(tokens):
        after = _skip(tokens, end)
        operator = tokens[after] if after < len(tokens) else ""
        if operator == "," and inside:
            joined, known, begin = ", ", False, _skip(tokens, after + 1)
        elif operator in OPERATORS and (after > end) == (_skip(tokens, after + 1) > after + 1):
            joined, known, begin = f" {OPERATORS[operator]} ", operator in RELATIONS, _skip(tokens, after + 1)
            joined = "/" if operator == "/" else joined
        elif operator == "*" and after > end:
            joined, known, begin = r" \cdot ", False, _skip(tokens, after + 1)
        else:
            joined, known, begin = r"\," if after > end else "", False, after
            if (operator[:1].isdigit() and not inside) or _aside(tokens, after):
                break
        more = _run_sign(tokens, begin, inside) if begin < len(tokens) else None
        if more is None:
            break
        tex, end, sure = f"{tex}{joined}{more.tex}", more.end, sure or known or more.sure
    return Found(tex, end, sure)


def _run_sign(tokens: Sequence[str], place: int, inside: bool) -> Found | None:
    if tokens[place] != "-":
        return _term(tokens, place, inside)
    found = _term(tokens, place + 1, inside) if place + 1 < len(tokens) else None
    return found and found._replace(tex=f"-{found.tex}")


def _term(tokens: Sequence[str], place: int, inside: bool) -> Found | None:
    found = _atom(tokens, place, inside)
    if found is None:
        return None
    tex, end, sure = found
    scripted = False
    while end < len(tokens) and (tokens[end] in ("^", "_") or _primed(tokens, end)):
        if tokens[end] == "'":
            tex, end, scripted = f"{tex}'", end + 1, True
            continue
        script = _script(tokens, end + 1, tokens[end] == "^")
        if script is None:
            return None
        tex, end, sure, scripted = f"{tex}{tokens[end]}{{{script.tex}}}", script.end, True, True
    alone = end - place == 1
    if (
        alone
        and tokens[end : end + 1] == ["*"]
        and tokens[end + 1 : end + 2] in ([], [" "], ["("], [")"], ["|"], [","])
    ):
        tex, end, sure, scripted = f"{tex}^{{*}}", end + 1, True, True
    if tokens[place] in FUNCTIONS and end < len(tokens):
        argument = _term(tokens, _skip(tokens, end), True) if _skip(tokens, end) < len(tokens) else None
        if argument is None:
            return None
        return Found(f"{tex} {argument.tex}", argument.end, True)
    if alone and not scripted and not inside and tokens[place] in WORDS:
        return None
    return Found(tex, end, sure)


def _atom(tokens: Sequence[str], place: int, inside: bool) -> Found | None:
    if place >= len(tokens):
        return None
    token = tokens[place]
    after = tokens[place + 1] if place + 1 < len(tokens) else ""
    if after.isdigit() and (token in GREEK or (len(token) == 1 and token.isalpha())):
        return Found(f"{NAMES.get(token, token)}_{{{after}}}", place + 2, token in GREEK)
    if token in NAMES:
        return Found(NAMES[token], place + 1, True)
    if token in FUNCTIONS:
        return Found(FUNCTIONS[token], place + 1, False)
    if token == "sqrt" and tokens[place + 1 : place + 2] == ["("]:
        root = _bracket(tokens, place + 1, words=True)
        return root and Found(f"\\sqrt{{{root.tex[6:-7]}}}", root.end, True)
    if token in UPRIGHT:
        return Found(rf"\mathrm{{{token}}}", place + 1, False)
    if token.isalpha() and token.isascii():
        return Found(token, place + 1, False) if len(token) == 1 else None
    if token[0].isdigit():
        return Found(_number(token), place + 1, False)
    if token in ("(", "["):
        return _bracket(tokens, place)
    if token == "|":
        inner = _run(tokens, place + 1, True)
        if inner is not None and tokens[inner.end : inner.end + 1] == ["|"]:
            return Found(f"|{inner.tex}|", inner.end + 1, True)
    return None


def _bracket(tokens: Sequence[str], place: int, words: bool = False) -> Found | None:
    inner = _run(tokens, place + 1, True) if place + 1 < len(tokens) else None
    close = {"(": ")", "[": "]"}[tokens[place]]
    if words and inner is None and tokens[place + 1].isalpha():
        inner = Found(rf"\text{{{tokens[place + 1]}}}", place + 2, False)
    if inner is None or tokens[inner.end : inner.end + 1] != [close]:
        return None
    return Found(rf"\left{tokens[place]}{inner.tex}\right{close}", inner.end + 1, inner.sure)


def _script(tokens: Sequence[str], place: int, power: bool) -> Found | None:
    """Return an index or an exponent: a group, or a name or number with a sign, and a fraction of two numbers."""
    sign, place = ("-", place + 1) if tokens[place : place + 1] == ["-"] else ("", place)
    token = tokens[place] if place < len(tokens) else " "
    if token == "(" and power:
        found = _bracket(tokens, place)
        return found and found._replace(tex=f"-{found.tex}" if sign else found.tex[6:-7])
    if not power and (sign or token == "+") and not token.isalnum():
        return Found("-", place, True) if sign else Found("+", place + 1, True)
    if token in ("*", "#"):
        return Found({"*": "*", "#": r"\#"}[token], place + 1, True)
    if token[0].isdigit():
        if (
            power
            and tokens[place + 1 : place + 2] == ["/"]
            and tokens[place + 2 : place + 3]
            and tokens[place + 2].isdigit()
        ):
            return Found(f"{sign}{token}/{tokens[place + 2]}", place + 3, True)
        return Found(sign + _number(token), place + 1, True)
    if token.isalpha() and token.isascii():
        name = NAMES.get(token, token if len(token) == 1 else rf"\mathrm{{{token}}}")
        return Found(sign + name, place + 1, True)
    return None


def _aside(tokens: Sequence[str], place: int) -> bool:
    """Whether a parenthesis begins that says something beside the formula, as in `x^q (q = 3)`."""
    if tokens[place : place + 1] != ["("] or ")" not in tokens[place:]:
        return False
    return any(token in RELATIONS for token in tokens[place : tokens.index(")", place)])


def _primed(tokens: Sequence[str], place: int) -> bool:
    return tokens[place] == "'" and tokens[place + 1 : place + 2] != ["s"]


def _number(token: str) -> str:
    base, _, power = token.partition("e")
    if not power:
        return base
    return f"10^{{{int(power)}}}" if base == "1" else rf"{base} \cdot 10^{{{int(power)}}}"


def _skip(tokens: Sequence[str], place: int) -> int:
    return place + 1 if place < len(tokens) and tokens[place] == " " else place
