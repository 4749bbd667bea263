# `make demo` and `make test` do all the set-up; everything lives in .venv.
PYTHON ?= $(shell command -v python3.11 || echo python3)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo check test lint blender clean

$(BIN)/.installed: pyproject.toml
	@echo "Setting up $(VENV), once: about 2 GB of packages, some minutes; a line for each."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --progress-bar off --disable-pip-version-check --editable '.[test]'
	touch $@

demo: $(BIN)/.installed
	$(BIN)/python examples/01_demo.py

# Before a commit: ruff and the quick tests, under a minute.
check: $(BIN)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest -m 'not (slow or browser or docs)'

# Everything.
test: $(BIN)/.installed lint
	$(BIN)/pytest

lint: $(BIN)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

# Optional: Blender as a worker with an environment of its own (about 1.2 GB on disk).
blender: $(BIN)/.installed
	$(BIN)/initfree blender setup

clean:
	rm -rf $(VENV) build dist demo-output
