# Two commands do everything on a fresh machine: `make build` and `make test`. While working: `make check`, `make accept`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
OUT    ?= output
# Many tests wait for machines and time limits, so more tests than cores run at once; half of the processes begin with
# those (tests/bed/order.py).
CORES  := $(shell nproc 2>/dev/null || echo 2)
JOBS   ?= $(shell echo $$((6 + $(CORES))))
# For mypy, whose workers cost a fifth more work; on two cores the other is busy with the rest of `test`.
WORKERS := $(if $(filter 1 2,$(CORES)),,--num-workers $(CORES))
# Tests on machines, against servers, and of scripts as processes.
BEDS   := bootstrap cloud cluster containers gpu lifecycle locker machines projects sick vm wheel
# And what is not for the inner loop: bad input at random, and the whole catalogue changed field by field.
LONG   := '*test_process.py' '*test_scripts.py' '*test_robust.py' '*test_fuzz.py' '*test_contributing.py'

.DEFAULT_GOAL := build
.PHONY: build check test test-slurm test-vm test-az test-gpu storm accept upload lint format bench clean tools tests-compiled

build: $(STAMP)  ## render every definition into output/
	$(BIN)/cycleforge build --out $(OUT)

check: $(STAMP) lint  ## linters and the tests that need no machine and no server, in under two minutes
	$(BIN)/python -m pytest -q -n $(CORES) --dist loadgroup $(patsubst %,--ignore tests/%,$(BEDS)) $(patsubst %,--ignore-glob %,$(LONG))

test:  ## everything that can be checked here, but for newer Slurms (test-slurm), emulated disks (test-vm) and Microsoft's az (test-az)
	$(MAKE) --no-print-directory -j3 tools lint tests-compiled
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

# Half of the machines' time is Slurm's own waiting: a job looks every 30 s whether its new node has joined.
test-slurm: $(STAMP) tools  ## tests of a living cluster and of sick nodes on Slurm 24.11, of policy and topology on 26.05; four minutes
	result=0; \
	CYCLEFORGE_SLURM=24.11 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup tests/cloud tests/sick || result=1; \
	CYCLEFORGE_SLURM=26.05 $(BIN)/python -m pytest tests/cloud/test_policy.py tests/cloud/test_topology.py || result=1; \
	exit $$result

test-vm: $(STAMP) tools  ## a node's disks through reboots and power cuts on emulated NVMe, five minutes
	CYCLEFORGE_TEST_VM=1 $(BIN)/python -m pytest tests/vm

test-az: $(STAMP) tools  ## the lines that we print and write for `az`, typed with Microsoft's own; installs it, 700 MB; three minutes
	CYCLEFORGE_TEST_AZ=1 $(BIN)/python -m pytest tests/az -n $(CORES)

test-gpu:  ## what the driver of this machine with an NVIDIA GPU answers, and what the checks make of it; installs nothing, four minutes
	$(PYTHON) -m tests.gpu.run

storm: $(STAMP) tools  ## ten minutes of random faults, boots and jobs over emulated GPU nodes
	CYCLEFORGE_STORM=1 $(BIN)/python -m pytest -p no:cacheprovider tests/sick/test_storm.py -k long

upload: $(STAMP)  ## the projects of every shipped definition, into the locker that LOCKER or CYCLEFORGE_LOCKER names
	$(BIN)/cycleforge upload $(if $(LOCKER),--locker $(LOCKER))

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(WORKERS)
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(STAMP) tools  ## ratios against named yardsticks
	$(BIN)/python -m benchmarks

accept: $(STAMP) tools  ## regenerate the pages, tables and snapshots that tests compare, and print what changed
	$(BIN)/python -m tests.accept

# pytest rewrites every test file for its messages; once here, not once in each of its processes. What it
# cannot load is named by the run that follows.
tests-compiled: $(STAMP)
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest --collect-only -q -p no:cacheprovider -p tests.bed.compiled >/dev/null || :

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
