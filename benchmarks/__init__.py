"""Speed, measured. Whatever is timed here starts under the guard on the compiler, with one thread a process unless it asks
for more."""

from lemmata.lab.process import one_thread

one_thread()
