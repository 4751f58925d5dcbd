# Bare `make` lists the targets. PYTHON may name another interpreter (3.11 or later).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# How many tests run at once. Most of them wait for something: three keep two cores busy, and take a fourth less time than two.
JOBS ?= 3
.DEFAULT_GOAL := help
.PHONY: help run demo install web dist test lint format audit bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

run: install web ## start gpulse for this machine, at http://127.0.0.1:7070
	@$(BIN)/gpulse up

demo: install web ## start gpulse with a simulated cluster, at http://127.0.0.1:7070
	@$(BIN)/gpulse demo

install: $(VENV)/.installed web ## make .venv with gpulse in it

web: $(VENV)/.installed ## build the page (only when something in web/ has changed)
	@$(BIN)/python -m scripts.web build

dist: $(VENV)/.installed ## make a wheel, and a wheelhouse that installs with no network (docs/install.md)
	@$(BIN)/python -m scripts.dist --python "$(PYTHON)" $(DIST)

test: packages web $(VENV)/.test-tools .venv-peers/.installed ## run all tests, with all their set-up
	@$(BIN)/python -m pytest -n $(JOBS) $(PYTEST)

lint: $(VENV)/.lint-tools ## check style, types, imports, the probe's oldest Python and the page
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vermin --quiet --no-tips --target=3.6- --violations src/gpulse_probe
	$(BIN)/python -m scripts.web check

format: $(VENV)/.lint-tools ## put the code into the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

audit: $(VENV)/.installed ## look for known holes in all dependencies; needs the Internet, and fails where something was not audited
	@$(BIN)/python -m scripts.audit

bench: packages web $(VENV)/.test-tools .venv-peers/.installed ## run the benchmarks (docs/benchmarks.md has the results)
	$(BIN)/python -m bench.probe
	$(BIN)/python -m bench.fleet
	$(BIN)/python -m bench.desk
	$(BIN)/python -m bench.lists
	$(BIN)/python -m bench.filter_timing
	$(BIN)/python -m bench.ssh
	$(BIN)/python -m bench.ingest
	$(BIN)/python -m bench.page
	$(BIN)/python -m bench.timeline

clean: ## remove everything that was made
	rm -rf .venv .venv-peers .venv-audit build dist web/node_modules src/gpulse/api/static/web src/gpulse/api/static/export .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache

.PHONY: packages
packages:
	@scripts/packages install

$(VENV)/.installed: pyproject.toml scripts/venv
	@PYTHON="$(PYTHON)" scripts/venv $(VENV) --editable ".[postgresql]"
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
