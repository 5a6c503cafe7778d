"""Every benchmark, one after another: `python -m benchmarks`."""

import importlib
import pkgutil

import benchmarks

for module in pkgutil.iter_modules(benchmarks.__path__):
    if not module.name.startswith("_"):
        print(f"== {module.name}", flush=True)
        importlib.import_module(f"benchmarks.{module.name}").main()
