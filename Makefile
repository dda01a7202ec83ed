# The commands of the project. `make demo` and `make test` need Python 3.10 to 3.14 and a C compiler, and make their own environment.
# PYTHON=python3.12 chooses the interpreter, VENV=folder the place of the environment, JOBS=n the test workers.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
PY = $(VENV)/bin/python

# Compiled pipelines are shared by all workers and kept between runs.
export HL_CACHE_DIR ?= $(CURDIR)/.cache/pipelines

# What watches compiled pipelines in `make test-sanitized`; gcc's libraries must be loaded before Python's.
SANITIZERS ?= address,undefined

.PHONY: help demo test test-all test-sanitized lint types layers fuzz bench clean

help:
	@echo "make demo      photographs: sharpen, fit a tone curve, call a library made ahead of time (PHOTO=file for your own)"
	@echo "make test      lint, types, layers and the test suite"
	@echo "make test-all  the same with the slow tests"
	@echo "make fuzz      random programs against the interpreter, their derivatives against differences (FUZZ_MINUTES=10, FUZZ_SEED=n)"
	@echo "make test-sanitized  the test suite with every compiled pipeline under gcc's address and undefined-behaviour sanitizers"
	@echo "make bench     speed against NumPy, SciPy and Halide, as a table"
	@echo "make clean     remove the environment, caches and built files"

# One environment for everything. Halide from PyPI is for comparison only; where it has no wheel, what compares with it is skipped.
$(VENV)/installed: pyproject.toml setup.py $(wildcard runtime/*.c runtime/*.h)
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev,demo]'
	$(PY) -m pip install --quiet --disable-pip-version-check --only-binary halide --editable '.[peer]' \
	  || echo "Halide 21 has no package for this machine: comparisons with it are skipped."
	touch $@

demo: $(VENV)/installed
	$(PY) demo/run.py $(if $(PHOTO),"$(PHOTO)")

lint: $(VENV)/installed
	$(VENV)/bin/ruff check .

types: $(VENV)/installed
	$(VENV)/bin/mypy

layers: $(VENV)/installed
	$(VENV)/bin/lint-imports

test: lint types layers
	$(PY) -m pytest -n $(JOBS) -q

test-all: lint types layers
	HL_TEST_ALL=1 $(PY) -m pytest -n $(JOBS) -q

# FUZZ_MINUTES=n how long, FUZZ_SEED=n from where
fuzz: $(VENV)/installed
	HL_CACHE=0 $(PY) tests/fuzz/soak.py

test-sanitized: $(VENV)/installed
	HL_CC=gcc HL_SANITIZE=$(SANITIZERS) HL_CACHE_DIR=$(CURDIR)/.cache/sanitized ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	  LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" $(PY) -m pytest -n $(JOBS) -q

bench: $(VENV)/installed
	$(PY) benchmarks/against_halide.py
	$(PY) benchmarks/gradients.py

clean:
	rm -rf $(VENV) .cache build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis demo_output
	rm -rf halide_py/_runtime/include halide_py/_runtime/*.so halide_py/_runtime/*.a
	find . -name __pycache__ -prune -exec rm -rf {} +
