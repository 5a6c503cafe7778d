"""Every module that decides numbers belongs to the digest of a trial; what keeps, judges and draws does not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lemmata
from lemmata import source
from lemmata.source import ROOTS, current_digests, digests, module_digest, sources
from lemmata.studies.benign_overfitting.data import Data
from lemmata.studies.graph_transformer.trials.nodes import Surveying
from lemmata.study import studies, study
from tests.toys import Square

HOME = Path(lemmata.__file__).parent
VIT = "lemmata.studies.shallow_vit.trials"
PLUGIN = "plugin.trials"

KERNELS = sorted(str(path.relative_to(HOME)) for path in HOME.rglob("*.cc"))
HEADERS = sorted(str(path.relative_to(HOME)) for path in HOME.rglob("vectors.h"))
CONSTANTS = "studies/shallow_vit/theory/constants.json"

ROOMS = [
    name
    for room in source.EXCLUDED_MODULES
    for name in (f"{room}.py", f"{room}/__init__.py")
    if (HOME / "studies/shallow_vit" / name).is_file()
]

DECIDING = [
    *("descent.py", "loop.py", "trial.py", "status.py", "guard.py", "programs.py", "threefry.py"),
    "lab/work.py",
    *("parts/patterns.py", "studies/shallow_vit/data.py", "studies/shallow_vit/trials.py", CONSTANTS),
    *(name for name in KERNELS if "threefry" in name or "vit_" in name),
    *("own.py", "device.py", "kernels/__init__.py", "kernels/vit_products.h"),
    *HEADERS,
]
KEEPING = [
    *(
        "cli.py",
        "commands.py",
        "figure.py",
        "study.py",
        "sweep.py",
        "lab/store.py",
        "lab/plan.py",
        "lab/pool.py",
        "measure/judge.py",
    ),
    *("draw/style.py", "report/__init__.py", "parts/graphs.py", "studies/multihead/data.py"),
    *("kernels/heads_slope.cc", "kernels/row_products.h"),
    *(f"studies/shallow_vit/{name}" for name in ("__init__.py", "README.md", "verdicts.json", *ROOMS)),
]

FILES = {
    "plugin/__init__.py": "from plugin import claims\n",
    "plugin/claims.py": "CLAIMS = ()\n",
    "plugin/trials.py": "import helper.shapes\nimport lemmata as lm\nimport single\nTABLE = ('tables', 'table.csv')\n",
    "plugin/tables/table.csv": "1,2\n",
    "plugin/tables/other.csv": "1,2\n",
    "helper/__init__.py": "FACTOR = 2\n",
    "helper/shapes.py": "import released\nfrom . import figures\n",
    "helper/figures.py": "SIZE = 3\n",
    "helper/unused.py": "SIZE = 3\n",
    "single.py": "X = 1\n",
    "site-packages/released/__init__.py": "X = 1\n",
    "site-packages/released-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: released\nVersion: 1.0\n",
    "site-packages/released-1.0.dist-info/RECORD": "released/__init__.py,,\n",
}

CHANGED = [*(name for name in FILES if not name.endswith("RECORD")), "lemmata/descent.py"]

COMPUTE = """
import importlib, json, sys
from pathlib import Path
from lemmata import source

def forget():
    for name, found in vars(source).items():
        if hasattr(found, "cache_clear") and name != "_code":  # that one goes by the text alone
            found.cache_clear()
    importlib.invalidate_caches()

home, changes = Path(sys.argv[1]), json.loads(sys.argv[2])
told = {}
for module, names in changes.items():
    forget()
    before = {module: source.module_digest(module)}
    for name in names:
        path = home / name
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b"1.0", b"1.1") if "METADATA" in name else whole + b"\\nCHANGED = 1\\n")
        forget()
        told[name] = source.current_digests(before) == set(before.values())
        path.write_bytes(whole)
    forget()
    assert source.current_digests(before) == set(before.values())
assert "jax" not in sys.modules
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """For each file whether the rows of the trial count after one line was added to it, in a copy of the package."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(HOME, folder / "lemmata", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    changes = {
        VIT: [f"lemmata/{name}" for name in DECIDING + KEEPING],
        PLUGIN: CHANGED,
    }
    found = subprocess.run(
        [sys.executable, "-c", COMPUTE, str(folder), json.dumps(changes)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "site-packages")])},
        capture_output=True,
        text=True,
    )
    assert not found.returncode, found.stderr
    return json.loads(found.stdout)


@pytest.mark.parametrize("name", DECIDING)
def test_rows_are_refused_after_a_change_of_what_decides_numbers(counted, name):
    assert not counted[f"lemmata/{name}"]


@pytest.mark.parametrize("name", KEEPING)
def test_rows_count_after_a_change_of_what_keeps_judges_and_draws(counted, name):
    assert counted[f"lemmata/{name}"]


def test_kernels_a_header_constants_and_rooms_apart_are_among_what_was_changed():
    assert len([name for name in DECIDING if name.endswith(".cc")]) == 2
    assert len(HEADERS) == 1
    assert (HOME / CONSTANTS).is_file()
    assert len(ROOMS) == len(source.EXCLUDED_MODULES)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        *((name, False) for name in ("plugin/trials.py", "plugin/tables/table.csv", "lemmata/descent.py")),
        *((f"helper/{name}.py", False) for name in ("__init__", "shapes", "figures")),
        *((name, False) for name in ("single.py", "site-packages/released-1.0.dist-info/METADATA")),
        *((name, True) for name in ("plugin/__init__.py", "plugin/claims.py", "plugin/tables/other.csv")),
        *((name, True) for name in ("helper/unused.py", "site-packages/released/__init__.py")),
    ],
)
def test_packages_that_a_plugin_imports_count_by_their_source_or_their_release(counted, name, same):
    assert counted[name] == same


@pytest.mark.parametrize("name", studies())
def test_trials_of_a_study_need_no_room_apart_and_no_installed_release(name):
    """A module that does not count could otherwise change the numbers of a trial unnoticed."""
    names, releases = source._closure([f"{study(name).package}.trials"])
    assert not releases
    assert {*ROOTS, "lemmata.loop", "lemmata.trial", "lemmata.threefry"} <= names
    imported = {name for module in names for name in source._imports(module) if source._module_path(name)}
    ours = {name for name in imported if name.startswith("lemmata.")} - names
    assert {name for name in ours if not name.startswith(source.BOOKKEEPING)} == set()


def test_a_file_that_a_field_names_belongs_to_the_digest_and_is_told(tmp_path):
    graph = tmp_path / "graph.npz"
    module = "lemmata.studies.graph_transformer.trials.nodes"
    assert sources([Surveying(path=str(graph))]) == {module: module_digest(module)}
    graph.write_bytes(b"one")
    told = sources([Surveying(path=str(graph))])
    assert [*told] == [f"{module}\n{graph}"]
    assert current_digests(told) == digests([Surveying(path=str(graph))]) != {module_digest(module)}
    graph.write_bytes(b"another")
    assert current_digests(told) == digests([Surveying(path=str(graph))]) != {*told.values()}
    graph.unlink()
    assert current_digests(told) == {*told.values()}, "what is not found is taken to be what it was"


def test_the_code_of_a_part_from_elsewhere_belongs_to_the_digest():
    """A plug-in may put a part of its own into a trial of a study."""
    trial = Square(value=1.0)
    object.__setattr__(trial, "value", Data())
    told = sources([trial])
    assert [*told] == ["tests.toys\nlemmata.studies.benign_overfitting.data"]
    assert current_digests(told) == {*told.values()} != digests([Square()])


CODE = '''
from typing import NamedTuple
class Point(NamedTuple):
    """Words."""
    x: float = 1e-3
    def norm(self, *rest: int, scale=2j, **named) -> "float":
        total = sum(-x ** 2 for x in (self.x, *rest) if x is not None and x >= 0)
        match rest:
            case [1, *_] | {"a": True}:
                return f"{total:>{scale}} {named!r}"
        with open(b"x") as file, file: ...
        try:
            return lambda a, /, b=1: a[1:, ...] @ b
        except (ValueError, TypeError) as error:
            raise error from None
'''


def test_the_normal_form_of_code_is_the_same_for_every_python():
    """Python 3.11 made this digest; every other one must give it, too."""
    assert source._hash([source._code(CODE)]) == "6331aabf61540019"
