"""`python -m lemmata` is the command `lemmata`."""

import sys

from lemmata.cli import main

sys.exit(main())
