# The one door to the project. `make help` prints what stands behind `##`.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CARGO ?= cargo
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?=

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
PYTHON_SOURCES := $(shell find python/fastgame -name '*.py*') pyproject.toml README.md

# The tables that the sampler's error bound is for: a new version of the crate must not slip by.
RAND_DISTR_TABLES := $(PYTHON) -c 'import json, pathlib, sys; \
	print(*[pathlib.Path(p["manifest_path"]).with_name("src") / "ziggurat_tables.rs" \
	for p in json.load(sys.stdin)["packages"] if p["name"] == "rand_distr"])'

# Each stamp holds one step of the set-up, so that nothing is built twice.
STAMPS := build/stamps
WHEEL_STAMP := $(STAMPS)/wheel

.PHONY: help
help: ## Print this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "fastgame needs Python 3.10 or newer; set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.9.4,<2'
	@mkdir -p $(STAMPS) && touch $@

$(WHEEL_STAMP): $(STAMPS)/venv $(RUST_SOURCES) $(PYTHON_SOURCES)
	@rm -rf build/wheels
	$(BIN)/maturin build --release --quiet --interpreter $(BIN)/python --out build/wheels
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps build/wheels/*.whl
	$(BIN)/python -m pip install --quiet --disable-pip-version-check numpy
	@touch $@

# The extras of pyproject.toml, installed beside the built wheel.
$(STAMPS)/extra-%: $(WHEEL_STAMP) pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(echo build/wheels/*.whl)[$*]"
	@touch $@

.PHONY: build
build: $(WHEEL_STAMP) ## Build the wheel into the project's own virtual environment

.PHONY: demo
demo: $(STAMPS)/extra-demo ## Set up, then release a year of flights privately; writes demo/
	$(BIN)/python examples/flights.py --out demo

.PHONY: test
test: ## Set up, then run everything that checks the project
	@# Two at a time, as each alone leaves a core without work; what each prints comes when it is done.
	$(MAKE) --no-print-directory -j2 --output-sync=target python-test rust-test no-std lint

.PHONY: lint
lint: $(STAMPS)/extra-test ## Formatting, lints and types, of Rust and Python
	$(CARGO) fmt --all --check
	$(CARGO) fmt --check --manifest-path fuzz/Cargo.toml
	$(CARGO) clippy --locked --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --quiet -p fastgame-core -p fastgame-store
	$(BIN)/ruff check --quiet python examples scripts benches
	$(BIN)/ruff format --quiet --check python examples scripts benches
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml fastgame._core fastgame._results
	$(BIN)/python scripts/sampler_bound.py --check
	$(BIN)/python scripts/blt_table.py --check
	$(BIN)/python scripts/sampler_bound.py --tables "$$($(CARGO) metadata --locked --format-version 1 | $(RAND_DISTR_TABLES))"

.PHONY: rust-test
rust-test: ## Rust tests, with the standard library and without
	$(CARGO) test --locked -p fastgame-core -p fastgame-store -p fastgame-bench --quiet
	$(CARGO) test --locked -p fastgame-core --quiet --no-default-features --lib

.PHONY: no-std
no-std: ## Link the core as a freestanding library and run it from C
	tests/no-std/run.sh

.PHONY: python-test
python-test: $(STAMPS)/extra-test ## Python tests on the built wheel
	$(BIN)/python -m pytest -q

.PHONY: test-slow
test-slow: $(STAMPS)/extra-test ## The heavy statistics, up to an hour
	$(CARGO) test --locked --release -p fastgame-core -- --ignored --nocapture --test-threads 1
	@# Figures of docs/sketches.md that the quick tests find.
	$(CARGO) test --locked --release -p fastgame-core hash -- --nocapture
	$(CARGO) test --locked --release -p fastgame-core --test sketch -- --nocapture
	$(BIN)/python scripts/blt_table.py --check --all
	$(BIN)/python -m pytest -q -m slow

.PHONY: fuzz
fuzz: ## Fuzz calls against a model, and decoders: FUZZ_SECONDS (600) each of FUZZ_TARGETS (all)
	FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz/run.sh $(FUZZ_TARGETS)

.PHONY: fuzz-keep
fuzz-keep: ## Keep the fewest inputs with all coverage found so far, for the tests
	fuzz/run.sh --minimise $(FUZZ_TARGETS)

.PHONY: bench
bench: $(STAMPS)/extra-bench ## Time everything beside its baselines; writes docs/performance.md (20 minutes)
	$(CARGO) bench --locked -p fastgame-bench
	@mkdir -p build/bench
	$(BIN)/python -m pytest -q benches/python --benchmark-columns=median,iqr,rounds --benchmark-group-by=group,param \
		--benchmark-json=build/bench/python.json
	$(BIN)/python scripts/performance.py --write
	$(BIN)/python scripts/mechanism_speed.py --write
	$(BIN)/python scripts/mechanism_speed.py --alone --write
	$(BIN)/python scripts/range_tables.py --write

.PHONY: bench-check
bench-check: ## Count the instructions of hot paths (valgrind) and compare with benches/instructions.json
	$(PYTHON) scripts/bench_check.py

.PHONY: bench-accept
bench-accept: ## Write the counted instructions as the expected ones
	$(PYTHON) scripts/bench_check.py --accept

.PHONY: docs
docs: $(STAMPS)/extra-bench ## Rust documentation, and the numbers that stand in docs/
	$(CARGO) doc --locked --no-deps -p fastgame-core
	$(BIN)/python scripts/sampler_bound.py --write
	$(BIN)/python scripts/join_tables.py --write
	$(BIN)/python scripts/mechanism_tables.py --write

.PHONY: clean
clean: ## Remove what was built, the virtual environment too
	rm -rf target build demo $(VENV) tests/no-std/target fuzz/target
