"""Speed, measured. Whatever is timed here starts under the guard on the compiler, with one thread a process unless it asks
for more, and with the lab's cache of compiled programs."""

import os

from lemmata.lab.process import cache_compilations, one_thread

ENVIRONMENT = dict(os.environ)
"""What a command finds that is started as a user would start it."""

one_thread()
cache_compilations()  # JAX reads it when it is imported
