# Each target builds .venv by itself; the second run is instant.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

# One BLAS thread a process: parallelism is over trials and tests, and results do not depend on it.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: venv reproduce test test-all check bench lock wheel clean

venv: .venv/stamp  ## the environment, from the lock file

.venv/stamp: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install -q --compile-bytecode --require-hashes -r requirements.lock --python $(BIN)/python && \
	  uv pip install -q --no-deps --no-build-isolation -e . --python $(BIN)/python; \
	else \
	  $(BIN)/python -m pip install -q --require-hashes -r requirements.lock && \
	  $(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .; \
	fi
	$(BIN)/python -m compileall -q .venv/lib || true
	touch $@

reproduce: venv  ## every study, into results/index.html
	$(BIN)/noisewise reproduce

test: venv  ## the quick suite
	$(BIN)/pytest -q -n $(JOBS) -m "not slow"

test-all: venv  ## with the long statistical runs
	$(BIN)/pytest -q -n $(JOBS)

check: venv  ## style, types, imports, lock file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@! grep -n '://' requirements.lock || { echo 'requirements.lock names an index'; exit 1; }

bench: venv  ## speed against peers
	$(BIN)/python -m benchmarks

wheel: venv  ## dist/*.whl
	$(BIN)/python -m build --wheel --no-isolation

lock:  ## requirements.lock anew (needs uv)
	uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --python-version 3.11 --extra dev pyproject.toml -o requirements.lock

clean:
	rm -rf .venv results dist
