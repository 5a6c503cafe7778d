"""Tests run on one thread each (pytest-xdist supplies the parallelism). They train small things once, so most of their
time is compilation: it is kept short, and kept between runs."""

import os

from lemmata.lab.pool import cache_compilations, one_thread

one_thread()
os.environ["XLA_FLAGS"] += " --xla_backend_optimization_level=0"
cache_compilations()
