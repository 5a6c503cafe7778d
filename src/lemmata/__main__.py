"""`python -m lemmata` is the command `lemmata`."""

import sys

from lemmata import ending


def main() -> int:
    """The command, which can be interrupted from its first moment on."""
    ending.install_signal_handlers()
    from lemmata.cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
