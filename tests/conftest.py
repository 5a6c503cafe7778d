"""Tests run on one thread each (pytest-xdist supplies the parallelism) and keep compiled programs between runs."""

from lemmata.lab.pool import cache_compilations, one_thread

one_thread()
cache_compilations()
