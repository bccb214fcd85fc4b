# `make` alone lists what there is. Works with GNU make 3.81 and later, on Linux and macOS.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=

# make app TORCH=cpu: PyTorch's own index has a build without CUDA, the registry's has not.
INDEX  := $(if $(filter cpu,$(TORCH)),--extra-index-url https://download.pytorch.org/whl/cpu)
PIP    := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt $(INDEX)

.DEFAULT_GOAL := help
.PHONY: help app test lint format screenshots benchmarks hooks browser clean

help: ## list the targets
	@echo "neuralviz: see what a masked language model learns from a text"
	@echo
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'
	@echo
	@echo "  TORCH=cpu            on Linux: PyTorch without CUDA, a download of 0.2 GB"
	@echo "  PYTHON=python3.12    the Python to start from, 3.11 or newer"
	@echo "  ARGS=\"--port 8600\"   passed on to the app, to pytest or to the script"

app: $(VENV)/.app ## set up what is missing and open the app
	$(BIN)/neuralviz app $(ARGS)

test: $(VENV)/.dev lint browser ## set up, check the code and run all tests, browser included
	@scripts/run_tests.sh $(BIN)/python $(ARGS)

lint: $(VENV)/.dev ## style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

format: $(VENV)/.dev ## put the code into its one format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

screenshots: $(VENV)/.dev browser ## make the pictures of the README anew
	$(BIN)/python scripts/screenshots.py $(ARGS)

benchmarks: $(VENV)/.dev browser ## measure the speed on this machine
	@for script in benchmarks/*.py; do $(BIN)/python "$$script" $(ARGS) || exit 1; done

hooks: $(VENV)/.dev ## run style and type checks before every commit
	$(BIN)/pre-commit install

browser: $(VENV)/.dev
	@scripts/get_chromium.sh $(BIN)

clean: ## remove the virtual environment and what was built
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache

# The stamps are older than what they depend on when something has to be installed anew.
$(VENV)/.app: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[test,dev]'
	@touch $(VENV)/.app $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "neuralviz needs Python 3.11 or newer, for example: make app PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "Python's venv is missing; on Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
