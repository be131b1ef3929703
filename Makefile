# The targets, implemented in tools/. PYTHON= selects the interpreter, PORT= where `make run`
# serves.
PYTHON ?= python3
NAME ?=
ARGS ?=
export PYTHON

.DEFAULT_GOAL := setup
.PHONY: help setup dev run test test-all engines check wheel bench bench-save fuzz fuzz-long soak docs java clean

setup: ## Check this machine and list all that is missing, each with its install line
	@$(PYTHON) tools/preflight.py

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' Makefile

dev: ## Build the extension (release) into .venv
	@$(PYTHON) tools/dev.py

run: ## Build, make the demo database of the world's cities, serve it (PORT=8000)
	@exec $(PYTHON) tools/demo.py

test: ## All tests, Rust and Python, with real databases on loopback (ARGS= goes to pytest)
	@$(PYTHON) tools/test.py $(ARGS)

test-all: ## `make test`, then what takes long: slow tests, the wheel, the other CPythons found
	@$(PYTHON) tools/test.py --all $(ARGS)

engines: ## Tests of onecopy.spark and onecopy.ray with Sail and Ray (installs 730 MB in .cache/engines)
	@$(PYTHON) tools/engines.py $(ARGS)

check: ## Linters: rustfmt, clippy, ruff, mypy, stubtest, layers, licences, generated files
	@$(PYTHON) tools/check.py

wheel: ## A self-contained wheel for PYTHON's version, in dist/
	@$(PYTHON) tools/wheel.py

bench: ## Run a benchmark against its peers: make bench NAME=rows
	@$(PYTHON) tools/bench.py $(NAME) $(ARGS)

bench-save: ## The same, and keep the result as the record to compare with
	@$(PYTHON) tools/bench.py $(NAME) --save $(ARGS)

fuzz: ## Run a fuzz target for ten minutes: make fuzz NAME=http_head (ARGS="--minutes 60", NAME=all)
	@$(PYTHON) tools/fuzz.py $(NAME) $(ARGS)

fuzz-long: ## Fuzz for HOURS=2, all targets in turn or only NAME=text_codec; prints the rows for the record
	@$(PYTHON) tools/fuzz.py $(or $(NAME),all) --hours $(or $(HOURS),0) $(ARGS)

soak: ## Kill the database at random points and see that each client notices
	@$(PYTHON) tools/dev.py
	@exec .venv/bin/python -m tests.soak $(ARGS)

docs: ## The crates' documentation, warnings as errors, in target/doc
	@$(PYTHON) tools/rust.py env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

java: ## Build and test the Java artifact (a JDK of 22 or newer, Maven; ARGS= goes to mvn)
	@$(PYTHON) tools/maven.py --required $(ARGS)

clean: ## Remove what was built here; .cache (toolchain, demo data, servers) stays
	@rm -rf target .venv dist
