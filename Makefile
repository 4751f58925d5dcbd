# Bare `make` lists the targets. PYTHON may name another interpreter (3.11 or later).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help run demo install test lint format bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

run: install ## start gpulse for this machine, at http://127.0.0.1:7070
	@$(BIN)/gpulse up

demo: install ## start gpulse with a simulated cluster, at http://127.0.0.1:7070
	@$(BIN)/gpulse demo

install: $(VENV)/.installed ## make .venv with gpulse in it

test: packages $(VENV)/.test-tools .venv-peers/.installed ## run all tests, with all their set-up
	@$(BIN)/python -m pytest $(PYTEST)

lint: $(VENV)/.lint-tools ## check style, types, imports and the probe's oldest Python
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vermin --quiet --no-tips --target=3.6- --violations src/gpulse_probe

format: $(VENV)/.lint-tools ## put the code into the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: packages $(VENV)/.test-tools .venv-peers/.installed ## run the benchmarks (docs/benchmarks.md has the results)
	$(BIN)/python -m bench.probe
	$(BIN)/python -m bench.fleet
	$(BIN)/python -m bench.ssh

clean: ## remove everything that was made
	rm -rf .venv .venv-peers build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache

.PHONY: packages
packages:
	@scripts/packages install

$(VENV)/.installed: pyproject.toml scripts/venv
	@PYTHON="$(PYTHON)" scripts/venv $(VENV) --editable .
	@touch $@

$(VENV)/.test-tools: $(VENV)/.installed requirements/test.txt
	@PYTHON="$(PYTHON)" scripts/venv $(VENV) --requirement requirements/test.txt
	@touch $@

$(VENV)/.lint-tools: $(VENV)/.installed requirements/lint.txt
	@PYTHON="$(PYTHON)" scripts/venv $(VENV) --requirement requirements/lint.txt
	@touch $@

.venv-peers/.installed: requirements/peers.txt scripts/venv
	@PYTHON="$(PYTHON)" scripts/venv .venv-peers --requirement requirements/peers.txt
	@touch $@
