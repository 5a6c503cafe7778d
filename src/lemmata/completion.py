"""Completes commands in a shell: candidates for the last word of a line, and the scripts for bash and zsh."""

import argparse
from collections.abc import Iterable, Sequence

from lemmata.study import studies

SCRIPT = """_lemmata() {
  local IFS=$'\\n'
  COMPREPLY=($(lemmata --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _lemmata lemmata"""

SCRIPTS = {
    "bash": SCRIPT,
    "zsh": f"autoload -U +X compinit bashcompinit && compinit && bashcompinit\n{SCRIPT}",
}

WITH_FIGURES = ("run", "show", "check", "figure", "status", "export")
WITH_STUDIES = ("list", "predict", "report", "ledger", "lock", "cite", *WITH_FIGURES)


def candidates(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Return candidates for the last word: commands, options, their choices, studies, figures and claims."""
    *before, last = words or [""]
    commands = _commands(parser)
    if not before:
        return _starting([*commands, "--version", "--help"], last)
    if before[0] not in commands:
        return []
    options = commands[before[0]]._actions
    taken = next((one for one in options if before[-1] in one.option_strings and one.nargs != 0), None)
    if taken is not None:
        return _starting(map(str, taken.choices or ()), last)
    if last.startswith("-"):
        return _starting((name for one in options for name in one.option_strings), last)
    named = next((one.choices for one in options if not one.option_strings and one.choices), None)
    if named is not None:
        return _starting(map(str, named), last)
    if before[0] in WITH_STUDIES:
        return _starting(_names(before[0], last), last)
    return []


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (found,) = [one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return dict(found)


def _names(command: str, last: str) -> list[str]:
    """Return studies or, after a study and a slash, its figures, and its claims if the command takes claims."""
    study_id, slash, _ = last.partition("/")
    if not slash or command not in WITH_FIGURES:
        return list(studies())
    own = studies().get(study_id)
    if own is None:
        return []
    return [f"{study_id}/{id}" for id in (*own.figures, *(own.entries if command == "check" else ()))]


def _starting(words: Iterable[str], start: str) -> list[str]:
    return [word for word in words if word.startswith(start)]
