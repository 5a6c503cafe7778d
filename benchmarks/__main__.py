"""The benchmarks of all studies, one after another: `python -m benchmarks`."""

import runpy

from lemmata.study import studies

for study in studies():
    print(f"== {study}", flush=True)
    runpy.run_module(f"benchmarks.{study.replace('-', '_')}", run_name="__main__")
