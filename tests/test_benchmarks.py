"""Benchmarks are run by hand, so that nothing but this notices when the house moves under them."""

import subprocess
import sys
from pathlib import Path

from lemmata.study import studies

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_every_benchmark_finds_what_it_imports():
    names = [path.stem for path in BENCHMARKS.glob("*.py") if not path.stem.startswith("_")]
    program = "; ".join(f"import benchmarks.{name}" for name in names)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=BENCHMARKS.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_study_has_a_benchmark():
    missing = [id for id in studies() if not (BENCHMARKS / f"{id.replace('-', '_')}.py").exists()]
    assert not missing
