# Every target makes .venv and installs what it needs; a second run starts at once.
PYTHON ?= python3
BIN := .venv/bin

ROUNDS ?= 10
unexport PYTHONDONTWRITEBYTECODE  # where it is set, every process compiles every module again

.PHONY: demo page ship test lint claims bench load hostile results docs clean
.DELETE_ON_ERROR:

demo: .venv/installed         ## the whole story on embedded data: writes runs/demo/report.html
	$(BIN)/attcem demo

page: runs/page/artifact/page ## a network and its undefended twin, trained, attacked, exported, and shown in a browser
	$(BIN)/attcem serve runs/page/artifact --page

runs/page/artifact/page: | .venv/installed-ship
	$(BIN)/attcem run experiments/recommended.yaml --defence.wire.bits 8 --out runs/page/run --resume
	$(BIN)/attcem run experiments/fashion_none.yaml --audit.suite demo --out runs/page/twin --resume
	rm -rf runs/page/artifact runs/page/twin-artifact
	$(BIN)/attcem export runs/page/run --out runs/page/artifact
	$(BIN)/attcem export runs/page/twin --out runs/page/twin-artifact
	$(BIN)/attcem page runs/page/artifact --twin runs/page/twin-artifact

ship: .venv/installed-bench   ## the demo's network exported, audited, served, and asked by four kinds of clients
	$(BIN)/python -m benchmarks.shipping

test: lint                    ## ruff, mypy and the tests, but for those left to claims
	$(BIN)/pytest

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

claims: .venv/installed-dev   ## the tests that take longer, among them what every defence claims; then each property with new draws, ROUNDS times
	@echo "reckoned: 15 minutes on two cores with AVX-512, 25 without"
	$(BIN)/pytest -m slow
	for round in $$(seq $(ROUNDS)); do $(BIN)/pytest -m hypothesis --hypothesis-profile search || exit 1; done

bench: .venv/installed-dev    ## speed as ratios in one run, with thresholds
	$(BIN)/python -m benchmarks

load: .venv/installed-bench   ## 200,000 requests, every reply checked; a server killed while devices send
	$(BIN)/python -m benchmarks.load

hostile: .venv/installed-dev .venv/installed-bench  ## what no client should send, 100,000 times and more
	$(BIN)/pytest -m slow tests/ship/test_hostile.py tests/ship/test_protocol.py
	$(BIN)/python -m benchmarks.hostile

results: .venv/installed-dev  ## writes tables and figures of the pages anew from results/
	$(BIN)/python -m tests.docs.printed

docs: .venv/installed-dev     ## runs every block of README and docs, checks links, builds site/
	$(BIN)/pytest -m "slow or not slow" tests/test_docs.py tests/docs
	$(BIN)/python -m tests.docs.links
	$(BIN)/sphinx-build -q -W --keep-going -d site/.read docs site

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "attcem needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -e . -c constraints.txt
	touch $@

.venv/installed-ship: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -e ".[ship]" -c constraints.txt
	touch .venv/installed $@

.venv/installed-dev: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]" -c constraints.txt
	touch .venv/installed $@

.venv/installed-bench: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[bench]" -c constraints.txt
	touch .venv/installed $@

clean:
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache
