# %% [markdown]
# # A new study in an hour
#
# A study of your own lives in a package of its own. `lemmata new` writes one that works: gradient descent on a quadratic bowl, with two
# claims. This tutorial makes it, looks at its rooms, and runs its checks. Then change it room by room.

# %%
import os
import subprocess
import sys
from pathlib import Path


def command(line):
    """Run a command of Lemmata and print what it says."""
    words = [sys.executable, "-m", "lemmata", *line.split()]
    environment = os.environ | {"PYTHONPATH": "double-descent"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    print((done.stdout + done.stderr).strip())


command("new double-descent")

# %% [markdown]
# ## The rooms
#
# Every study has the same rooms, so that a reader of one finds their way in all.

# %%
folder = Path("double-descent") / "lemmata_double_descent"
for path in sorted(folder.rglob("*.py")):
    print(f"{path.relative_to(folder)!s:24} {len(path.read_text().splitlines()):4} lines")

# %% [markdown]
# The theory is one function a statement, with the formula in its docstring.

# %%
print((folder / "theory.py").read_text())

# %% [markdown]
# ## A claim says beforehand what refutes it
#
# The figure holds what is run, the claims, made results on which each claim must fail or hold, and the picture.

# %%
print((folder / "figures" / "steps.py").read_text())

# %% [markdown]
# ## Check it before anything trains
#
# `lemmata lock --check` trains nothing. It builds every scale, calls every condition, and holds each claim against its made cases.
# A package that is not installed is named by its module, as here.

# %%
command("lock lemmata_double_descent --check")

# %%
sys.path.insert(0, "double-descent")
from lemmata.study import study_or_package

study_or_package("lemmata_double_descent").claims[0]

# %% [markdown]
# ## Then judge it
#
# On a command line, with your own name in place of `double-descent`:
#
# ```
# pip install -e double-descent
# python -m pytest double-descent
# lemmata lock double-descent --check
# lemmata lock double-descent
# lemmata check double-descent
# ```
#
# [Adding a study](../adding-a-study.md) explains each room, the order of work, and all checks.
