"""`lemmata new NAME`: writes a plug-in package with a working study, to be changed room by room.

The study is `lemmata.new.skeleton`. Its files are copied, with the new name in place of `skeleton`.
"""

import re
from importlib.util import find_spec
from pathlib import Path

from lemmata import __version__
from lemmata.errors import BadInput, require, shortened
from lemmata.study import studies

SKELETON = Path(__file__).with_name("skeleton")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{distribution}"
version = "0.1.0"
description = "A study for Lemmata: gradient descent on a bowl"
readme = "{package}/README.md"
requires-python = ">=3.11"
dependencies = ["lemmata>={version}"]

[project.optional-dependencies]
test = ["pytest>=8"]

[project.entry-points."lemmata.studies"]
{name} = "{package}:STUDY"

[tool.hatch.build.targets.wheel]
packages = ["{package}"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

TESTS = '''\
"""Holds the study against what every study of the lab is held against."""

from lemmata.testing import study_tests

test_study = study_tests("{name}")
'''

IGNORED = """\
__pycache__/
runs/
"""


def package_of(name: str) -> str:
    """The package of a plug-in study.

    >>> package_of("double-descent")
    'lemmata_double_descent'
    """
    return f"lemmata_{name.replace('-', '_')}"


def write(name: str, parent: Path) -> Path:
    """Write the package of a new study to a folder of this name, and return the folder.

    `name`: the id of the study.
    `parent`: the folder in which the new one is made.
    """
    package, folder = package_of(name), parent / name
    require(
        NAME.fullmatch(name) is not None,
        f"a study has a name of lower-case letters, digits and single hyphens, such as double-descent; not {shortened(name)}.",
    )
    require(name not in studies(), f"the study '{name}' exists already; choose another name.")
    require(find_spec(package) is None, f"the package '{package}' is installed already; choose another name.")
    words = {"name": name, "package": package, "distribution": f"lemmata-{name}", "version": __version__}
    files = {
        "pyproject.toml": PYPROJECT.format(**words),
        ".gitignore": IGNORED,
        "tests/test_study.py": TESTS.format(**words),
    }
    for room in sorted([*SKELETON.rglob("*.py"), SKELETON / "README.md"]):
        text = room.read_text(encoding="utf-8").replace("skeleton", name)
        files[f"{package}/{room.relative_to(SKELETON).as_posix()}"] = text
    try:
        folder.mkdir()
    except FileExistsError:
        raise BadInput(f"'{folder}' exists already; choose another name or another folder.") from None
    except OSError as error:
        raise BadInput(f"cannot make the folder '{folder}': {error.strerror}.") from None
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder
