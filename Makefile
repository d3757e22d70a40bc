# Everything is set up on the way: `make demo` and `make test` work in a fresh clone.
# Variables: PYTHON (interpreter of .venv), OTHER_PYTHON (a second one, for test-other), ARGS (more
# arguments for pytest), BASE (commit that replay and affected compare with), MINUTES, SEED, OF_SOURCES
# and FILES (of soak), OPERATOR (of where).

BIN := .venv/bin
DIGITS := examples/digits
BASE ?= HEAD
MINUTES ?= 10
SHELL_FILES := .ci/run $(wildcard scripts/*.sh scripts/*/*.sh .github/*/*.sh .github/*/*/*.sh)
# The tests of a file share costly set-ups: one worker runs them all.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo quick test soak test-other fuzz journeys product lint types check replay replay-quick \
  size affected where bench golden format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:
	@scripts/setup.sh run

setup-dev:
	@scripts/setup.sh dev

demo: setup ## compile the example model to C, run it on the test set, compare every byte
	$(BIN)/python $(DIGITS)/demo.py
	$(BIN)/microtir verify $(DIGITS)/digits_int8.tflite --golden $(DIGITS)/digits_test.npz

quick: setup-dev ## run the tests that take no compiler, or little of it: two minutes
	$(PYTEST) -q --tier quick $(ARGS)

test: setup-dev ## run the tests that a change must pass, also against the built wheel
	$(PYTEST) $(ARGS)

affected: setup-dev ## run the tests that what differs from BASE=<commit> can affect
	@mkdir -p build
	$(BIN)/python -m tests.affected $(BASE) >build/affected.txt
	$(PYTEST) $(ARGS) @build/affected.txt

where: setup-dev ## list the tests of OPERATOR=<name>, as TFLite, ONNX or the graph calls it
	@$(BIN)/python -m tests.where $(OPERATOR)

soak: setup-dev ## run tests of random cases with fresh seeds for MINUTES=10; SEED and FILES repeat
	$(BIN)/python -m tests.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(OF_SOURCES),--of-sources) $(FILES)

# A virtual environment of its own: .venv stays what it is.
test-other: ## run the tests that need no tools with the interpreter OTHER_PYTHON
	@PYTHON=$(OTHER_PYTHON) VENV=build/other-python scripts/setup.sh unit
	build/other-python/bin/python -m pytest -n auto --without-tools $(ARGS)

# A virtual environment of its own, with atheris.
fuzz: ## attack the readers for MINUTES=10 with files that coverage guides; ARGS names kinds of files
	@VENV=build/fuzz scripts/setup.sh fuzz
	build/fuzz/bin/python -m tests.attack.guided --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(ARGS)

# A virtual environment of its own, with PyTorch, Keras and jax.
journeys: ## compare models that PyTorch and Keras make anew with what is read of them; ARGS=--record
	@VENV=build/journeys scripts/setup.sh journeys
	build/journeys/bin/python -m tests.journeys $(ARGS)
	build/journeys/bin/python -m tests.journeys.pages $(filter --record,$(ARGS))

product: ## build the site, the wheel and packages of models, and check them and the studio as users get them
	@VENV=build/product scripts/setup.sh product
	scripts/product/check.sh build/product/bin

lint: setup-dev ## ruff, codespell, vermin, shellcheck, and the words of texts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell . .github/* .ci/*
	$(BIN)/vermin generator templates tests scripts benchmarks examples
	$(BIN)/shellcheck $(SHELL_FILES)
	$(BIN)/python -m scripts.prose

types: setup-dev ## mypy, strict
	$(BIN)/mypy

check: lint types test ## lint, types and tests: what a change must pass

replay: setup-dev ## compare every generated file with those of BASE=<commit>, byte by byte
	$(BIN)/python -m scripts.replay $(BASE)

replay-quick: setup-dev ## the same for a sample of models, targets, goals and executors
	$(BIN)/python -m scripts.replay $(BASE) --quick

size: setup-dev ## count the lines of the package by folder, and hold them to their limit
	$(BIN)/ruff format --check --quiet generator
	@$(BIN)/python -m scripts.size

bench: setup-dev ## measure the time of each stage, and code, weights and workspace
	$(BIN)/python -m benchmarks

golden: setup-dev ## rewrite the golden files; read the difference before you commit it
	$(PYTEST) --update-golden

format: setup-dev ## lay out the Python files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove everything that can be made again, .venv included
	rm -rf build dist .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
