# `make demo` and `make test` do all the set-up; everything lives in .venv.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint blender clean

$(BIN)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

demo: $(BIN)/.installed
	$(BIN)/python examples/01_demo.py

test: $(BIN)/.installed lint
	$(BIN)/pytest

lint: $(BIN)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# Optional: Blender as a worker with an environment of its own (about 1.2 GB on disk).
blender: $(BIN)/.installed
	$(BIN)/initfree blender setup

clean:
	rm -rf $(VENV) build dist demo-output
