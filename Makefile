# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE :=  # commands and tests start many processes, which would all compile the package anew

.PHONY: demo test test-slow lint bench docs clean

demo: $(VENV)/.installed
	$(BIN)/lemmata run benign-overfitting/fig1 --reading "read-out left" --set samples=4,8,12,20 --seeds 3

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" -q

test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 -m slow -q

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(VENV)/.installed-bench
	$(BIN)/lemmata bench

docs: $(VENV)/.installed-docs
	$(BIN)/python -m docs.site.build

clean:
	rm -rf $(VENV) runs build

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-%: pyproject.toml $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[$*]"
	touch $@ $(VENV)/.installed
