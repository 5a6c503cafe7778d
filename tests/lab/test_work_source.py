"""A trial's digest follows what it computes: its own code and what it calls in its study, not words nor pictures."""

import importlib
import sys
import types

import pytest

from lemmata import source
from lemmata.source import digests, trial_digest
from tests.toys import Decay, Square

CACHED = [found for found in vars(source).values() if hasattr(found, "cache_clear")]
"""The caches of digests in a process."""

TRIALS = '''
from typing import ClassVar
from lemmata.trial import Computed
from mystudy import network
from .network import size


class Mine(Computed):
    """A trial."""

    name: ClassVar = "mystudy/mine"
    value: float = 1.0

    def compute(self, key):
        from mystudy.data import draw
        return {"x": network.output(self.value) + draw()}
'''
FILES = {
    "__init__.py": "TITLE = 'A study'\nfrom mystudy import claims\n",
    "claims.py": "CLAIMS = ()\n",
    "figures.py": "from mystudy.trials import Mine\n",
    "data.py": "KERNEL = 'fast.cc'\ndef draw():\n    return 0.5\n",
    "fast.cc": "float draw() { return 0.5; }\n",
    "other.cc": "float other() { return 1; }\n",
    "network.py": "from mystudy.deep import layers\nsize = 3\ndef output(x):\n    return layers.top(x)\n",
    "deep/__init__.py": "",
    "deep/layers.py": "def top(x):\n    return 2 * x\n",
    "unused.py": "def f():\n    return 1\n",
    "trials.py": TRIALS,
}


@pytest.fixture
def digest_of(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def digest(changes=None) -> str:
        for name, text in {**FILES, **(changes or {})}.items():
            path = tmp_path / "mystudy" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        importlib.invalidate_caches()
        for name in [name for name in sys.modules if name.split(".")[0] == "mystudy"]:
            del sys.modules[name]
        for cached in CACHED:
            cached.cache_clear()
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            return trial_digest(importlib.import_module("mystudy.trials").Mine())
        finally:
            sys.dont_write_bytecode = before

    yield digest
    for cached in CACHED:
        cached.cache_clear()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("trials.py", "self.value)", "100 * self.value)"),
        ("network.py", "size = 3", "size = 4"),
        ("data.py", "0.5", "0.25"),
        ("deep/layers.py", "2 * x", "3 * x"),
        ("fast.cc", "0.5", "0.25"),
    ],
)
def test_a_change_of_what_is_computed_changes_the_digest(digest_of, file, old, new):
    assert digest_of() != digest_of({file: FILES[file].replace(old, new)})


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("trials.py", TRIALS.replace("A trial.", "Another sentence.").replace("(self, key)", "( self,key )")),
        ("data.py", "# A comment.\n" + FILES["data.py"]),
        ("claims.py", "CLAIMS = (1,)\n"),
        ("figures.py", "LARGE = True\n"),
        ("unused.py", "def f():\n    return 2\n"),
        ("other.cc", "float other() { return 2; }\n"),
        ("__init__.py", "TITLE = 'Another title'\n"),
    ],
)
def test_words_pictures_and_what_is_not_called_do_not(digest_of, file, text):
    assert digest_of() == digest_of({file: text})


def test_a_study_that_is_a_package_of_rooms_is_followed_to_its_data():
    assert source._home("lemmata.studies.shallow_vit.trials.pruning") == "lemmata.studies.shallow_vit"
    names, _ = source._closure(["lemmata.studies.shallow_vit.trials"])
    assert {name.split(".")[-1] for name in names} >= {"data", "network", "trials"}
    names, _ = source._closure(["lemmata.studies.benign_overfitting.trials"])
    assert any(name.startswith("lemmata.reduce") for name in names)


def test_digests_of_several_kinds():
    assert digests([Decay(), Decay(rate=0.1), Square()]) == {trial_digest(Decay()), trial_digest(Square())}


SCRIPT = """
from typing import ClassVar
from lemmata.trial import Computed
FACTOR = 2
def helper(x): return FACTOR * x
def other(x): return x
class Mine(Computed):
    name: ClassVar = "script/mine"
    def compute(self, key): return {"x": helper(1.0)}
"""


@pytest.mark.parametrize("written", [True, False])
def test_a_trial_written_in_a_script_has_the_digest_of_what_it_names_there(tmp_path, monkeypatch, written):
    """In a file, and without a source file."""
    numbers = iter(range(10))

    def digest(old="", new=""):
        path = tmp_path / f"script{next(numbers)}.py"
        text = SCRIPT.replace(old, new)
        if written:
            path.write_text(text)
        main = types.ModuleType("__main__")
        main.__file__ = str(path)
        monkeypatch.setitem(sys.modules, "__main__", main)
        exec(compile(text, path, "exec"), vars(main))
        return trial_digest(main.Mine())

    first = digest()
    assert digest("other(x): return x", "other(x): return 2") == first
    assert digest("helper(1.0)", "helper(2.0)") != first
    if written:
        assert digest("FACTOR = 2", "FACTOR = 3") != first
        assert digest("FACTOR * x", "FACTOR + x") != first
