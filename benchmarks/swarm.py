"""A swarm of trials that do next to nothing: what the lab itself costs, from plan to store.

`python -m benchmarks.swarm [CELLS]` runs them through two workers and prints cells a second, the largest memory, and how long
it takes to open the store again and know that nothing is missing.
"""

import resource
import sys
import tempfile
import time
from typing import ClassVar

from lemmata import Sweep, axis, run
from lemmata.trial import Computed, Key


class Nothing(Computed):
    """One number, doubled."""

    name: ClassVar[str] = "benchmarks/nothing"
    number: float = 0.0

    def compute(self, key: Key) -> dict[str, float]:
        return {"twice": 2 * self.number}


def main() -> None:
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    sweep = Sweep(Nothing(), (axis("number", tuple(float(n) for n in range(cells // 10))),), tuple(range(10)))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        run(sweep, out=folder, workers=2)
        took = time.perf_counter() - began
        again = Sweep(sweep.template, sweep.axes, sweep.seeds)
        began = time.perf_counter()
        run(again, out=folder)
        opened = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{cells} cells: {cells / took:.0f} a second (to reach: 5000); opened again in {opened:.1f} s; {memory:.2f} GB"
    )


if __name__ == "__main__":
    main()
