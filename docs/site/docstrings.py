"""Makes Markdown of docstrings: lists of the lines that explain arguments, and blocks of examples."""

import inspect
import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
ARGUMENT = re.compile(r"^(`\w+`(?:, `\w+`)*:)", re.MULTILINE)


class Docstrings(Extension):
    """Writes docstrings as Markdown."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of an object that was read."""
        if obj.docstring is not None:
            obj.docstring.value = listed(obj.docstring.value)


def listed(docstring: str) -> str:
    """Return a docstring with a list of the lines that explain arguments, and its examples as blocks of code.

    >>> listed("Run it.\\n\\n`out`: the folder.\\n`seed`: the seed.")
    'Run it.\\n\\n- `out`: the folder.\\n- `seed`: the seed.'
    >>> listed(">>> 1 + 1\\n2").splitlines()
    ['```pycon', '>>> 1 + 1', '2', '```']
    """
    text = ARGUMENT.sub(r"- \1", inspect.cleandoc(docstring))
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
