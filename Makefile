# Two commands do everything on a fresh machine: `make build` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
OUT    ?= output
# Many tests wait for machines and time limits, so more of them than cores run at once.
JOBS   ?= $(shell echo $$((1 + $$(nproc 2>/dev/null || echo 2))))

.DEFAULT_GOAL := build
.PHONY: build test test-vm upload lint format bench clean reference tools

build: $(STAMP)  ## render every definition into output/
	$(BIN)/cycleforge build --out $(OUT)

test: $(STAMP) tools lint  ## everything that can be checked here
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

test-vm: $(STAMP) tools  ## the life of a node's disks on emulated NVMe, four minutes
	CYCLEFORGE_TEST_VM=1 $(BIN)/python -m pytest tests/vm

upload: $(STAMP)  ## the projects of every shipped definition, into the locker that LOCKER or CYCLEFORGE_LOCKER names
	$(BIN)/cycleforge upload $(if $(LOCKER),--locker $(LOCKER))

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(STAMP) tools  ## ratios against named yardsticks
	$(BIN)/python -m benchmarks

reference: $(STAMP)  ## rewrite what is written from model, rules and catalogue
	$(BIN)/python -m generator.references

tools:
	@tests/install-tools.sh

clean:
	rm -rf $(OUT) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(STAMP): pyproject.toml hatch_build.py generator/version.py
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "CycleForge needs Python 3.11 or newer; choose one with make PYTHON=…")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m compileall -q generator  # as pip does for packages that are not editable
	touch $@
