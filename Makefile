# `make` alone lists the targets. Works with GNU make 3.81 and later, on Linux and macOS.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=

SET_UP := $(PYTHON) scripts/set_up.py $(if $(TORCH),--torch $(TORCH))

.DEFAULT_GOAL := help
.PHONY: help app test test-all lint format screenshots benchmarks hooks browser set-up clean

help: ## list the targets
	@echo "neuralviz: see what a masked language model learns from a text"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-21s%s\n", $$1, $$2}'
	@echo
	@echo "  PYTHON=python3.12    Python to use, 3.11 or newer"
	@echo "  TORCH=cpu            install PyTorch without CUDA, the default without an NVIDIA GPU"
	@echo "  TORCH=cuda           install PyTorch with CUDA, the default with an NVIDIA GPU"
	@echo "  ARGS=\"--port 8600\"   options for the app, pytest or the script"

app: ## set up if needed, and open the app
	@$(SET_UP) app
	$(BIN)/neuralviz app $(ARGS)

test: set-up lint browser ## set up, check the code, and run the quick tests (with a browser)
	$(BIN)/python -m pytest $(ARGS)

test-all: set-up lint browser ## as test, with the slow tests: sweeps, killed processes, real data
	$(BIN)/python -m pytest -m "slow or not slow" $(ARGS)

lint: set-up ## check style, formatting, imports and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/mypy

format: set-up ## format the code
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

screenshots: set-up browser ## retake the screenshots in the README
	$(BIN)/python scripts/screenshots.py $(ARGS)

benchmarks: set-up browser ## measure the speed on this machine
	@for script in benchmarks/*.py; do $(BIN)/python "$$script" $(ARGS) || exit 1; done

hooks: set-up ## run style and type checks before every commit
	$(BIN)/pre-commit install

browser: set-up
	@scripts/get_chromium.sh $(BIN)

set-up:
	@$(SET_UP) test

clean: ## remove the virtual environment and build files
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
