# make demo | test | check | fuzz | accuracy | vm-check | lock | clean: each sets up what it needs, and again only when that changed.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := check

TVM_EXAMPLE ?= examples/issues/two-dense-layers-share-one-weight.md
IREE_EXAMPLE ?= examples/issues/unused-tensor-argument-crash.md

# Tests wait for processes and for limits: four workers more than processors keep these busy.
CORES := $(shell nproc)
WORKERS := $(shell expr $(CORES) + 4)
# The tests of a file share what the file caches, such as runs of a compiler. tests/conftest.py gives the order.
# `loadgroup` of pytest-xdist 3.8 does nothing under pytest 9.2: the names of groups do not reach the identifiers.
# A crashed worker that is replaced makes pytest-xdist 3.8 wait without end (pytest-xdist#1378). The others go on alone.
BY_FILE := --dist loadfile --no-loadscope-reorder --max-worker-restart=0
# Where Python keeps no bytecode, each worker and each command that a test starts compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test whole bytecode check fast fuzz accuracy gpu-check vm-check style lock clean system devices python

demo: system $(READY)  ## two issues, real compilers, two verdicts
	$(BIN)/reprobot reproduce $(TVM_EXAMPLE)
	$(BIN)/reprobot reproduce $(IREE_EXAMPLE)

# Installing system packages mostly waits: the environment, the bytecode of the tests and mypy are made beside it.
test:  ## everything: sandboxes and compilers too
	@$(MAKE) --no-print-directory --jobs 3 style whole

# Sandboxes, limits and compilers meet the clock of a busy machine. As in CPython's own tests, a test that fails is run
# once more, and the summary lists such tests. `make check` waits for nothing, and repeats nothing.
whole: devices bytecode
	$(BIN)/python -m pytest -n $(WORKERS) $(BY_FILE) --reruns 1 -raR

# Workers start together: without bytecode of the tests, each of them compiles all tests with their assertions.
bytecode: $(READY)
	@$(BIN)/python -m pytest --collect-only --quiet --quiet >/dev/null || true # `whole` shows what cannot be imported

check: python $(READY)  ## what runs without sandbox or compiler, in under a minute
	@$(MAKE) --no-print-directory --jobs 2 style fast

# Beside `style`: mypy keeps one processor busy for a third of the time, and these tests wait for little.
fast: $(READY)
	$(BIN)/python -m pytest -n $(CORES) -m "not (sandbox or compilers or contract or thorough)"

fuzz: python $(READY)  ## the property tests of `make check` on newly drawn examples: for minutes, not for CI
	$(BIN)/python -m pytest -n $(WORKERS) -m "not (sandbox or compilers or contract)" --hypothesis-profile=fuzz

accuracy: system $(READY)  ## every verdict of the corpus against the truth found by hand; takes some ten minutes
	$(BIN)/python -m bench.accuracy --jobs 2

gpu-check: python $(READY)  ## what only a machine with an NVIDIA GPU can show; ARGS=--rehearse does it on the CPU
	$(BIN)/python -m bench.gpu_check $(ARGS)

vm-check:  ## what holds under systemd, docker and control groups v2, in a virtual machine; needs KVM and root
	@tools/vm.sh build
	@tools/vm.sh check

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

LOCK = $(BIN)/uv pip compile pyproject.toml tools/build-requirements.in --universal --python-version 3.11 \
    --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --quiet --custom-compile-command "make lock"

lock: $(READY)  ## resolve anew: names, versions and hashes, no addresses; what running needs is a part of the whole
	$(LOCK) --extra dev --upgrade --output-file requirements.lock
	grep -o '^[a-z0-9._-]*==[^ ]*' requirements.lock > requirements.run.in
	$(LOCK) --upgrade --constraint requirements.run.in --output-file requirements.run.lock
	@rm requirements.run.in

clean:  ## what was made here; the compilers' store goes with `reprobot clean`
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

system:
	@tools/setup-system.sh

devices: python
	@tools/setup-system.sh --devices

python:
	@tools/setup-system.sh --python-only

$(READY): requirements.lock pyproject.toml | python
	@tools/setup-venv.sh
	@touch $@
