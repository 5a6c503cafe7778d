"""Speed, measured. Whatever is timed here starts under the guard on the compiler, with one thread a process unless it asks
for more."""

import os

from lemmata.lab.process import one_thread

ENVIRONMENT = dict(os.environ)
"""What a command finds that is started as a user would start it."""

one_thread()
