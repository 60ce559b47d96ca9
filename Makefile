# Everything from a fresh machine to a running job. `make help` lists the targets.
# Paths are relative throughout, so that the checkout may lie in a directory with a space in its name.

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
# Files of tests in two processes, each with a Spark session of its own, in the order of tests/conftest.py.
SIDE_BY_SIDE ?= -n 2 --dist loadfile --no-loadscope-reorder
INSTALLED := .venv/installed.stamp
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

.DEFAULT_GOAL := help
.PHONY: help install java run quickstart-kafka test test-browser test-kafka check bench lock clean test-spark-4.2 docs reference wheel sbom vulnerabilities release

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9.-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

install: $(INSTALLED) java ## create .venv with the locked dependencies, and see to Java

$(INSTALLED): pyproject.toml requirements/bootstrap.txt requirements/dev.txt tools/install.sh
	@PYTHON="$(PYTHON)" sh tools/install.sh
	@pwd > $@

# A .venv knows the path it was made at: in a checkout that was moved it is made again.
ifneq "$(shell cat $(INSTALLED) 2>/dev/null)" "$(shell pwd)"
.PHONY: $(INSTALLED)
endif

java: $(INSTALLED)
	@sh tools/java.sh

run: install ## play the story: a cluster grows, loses a broker, heals, is rebalanced
	@$(BIN)/python -m examples.story $(ARGS)

quickstart-kafka: install ## play the whole loop on a real Kafka cluster of this machine: collect, plan, apply
	@sh tools/maven.sh
	@PYTHONPATH=. $(BIN)/python examples/quickstart-kafka/play.py $(ARGS)

test: install ## run all tests but those on a real Kafka; some of them: make test ARGS="-m 'not spark'"
	@case "$(ARGS)" in *"not browser"*) ;; *) sh tools/chromium.sh ;; esac
	@$(BIN)/python -m pytest --ignore=tests/live_kafka $(SIDE_BY_SIDE) $(ARGS)

test-browser: install ## open the report in a real browser, which is installed where it is missing
	@sh tools/chromium.sh
	@$(BIN)/python -m pytest -m browser $(ARGS)

test-kafka: install ## run the tests on a real Kafka cluster, which Maven fetches once
	@sh tools/maven.sh
	@$(BIN)/python -m pytest -m kafka $(SIDE_BY_SIDE) $(ARGS)

check: $(INSTALLED) ## lint, format, types, and the direction of imports
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test-spark-4.2: ## run the tests on pyspark 4.2 and Delta Lake 4.4, in an environment of their own
	@sh tools/spark42.sh $(ARGS)

docs: install ## build the documentation as a site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo build/site/index.html

reference: $(INSTALLED) ## write the reference pages and the list of licences again from the code
	@$(BIN)/python -m tools.reference

wheel: $(INSTALLED) ## build the wheel, in dist
	@$(BIN)/python -m hatchling build -t wheel

sbom: $(INSTALLED) ## write what a running job is made of to dist/sbom.json, in CycloneDX
	@sh tools/sbom.sh

vulnerabilities: $(INSTALLED) ## look for known weaknesses of the locked dependencies
	@sh tools/vulnerabilities.sh

release: install ## check, build and tag: make release VERSION=1.2.3
	@VERSION="$(VERSION)" sh tools/release.sh

bench: install ## measure what the README claims
	@$(BIN)/python -m benchmarks $(ARGS)

lock: $(INSTALLED) ## write requirements/ again from pyproject.toml; newer versions: make lock ARGS=--upgrade
	@$(LOCK) $(ARGS) --extra spark --group dev --output-file requirements/dev.txt pyproject.toml
	@$(LOCK) $(ARGS) --extra spark --group dev --override tools/spark-4.2.override --output-file requirements/spark-4.2.txt pyproject.toml
	@$(LOCK) $(ARGS) --extra spark --output-file requirements/runtime.txt pyproject.toml
	@echo uv | $(LOCK) $(ARGS) --output-file requirements/bootstrap.txt -

clean: ## remove .venv and the caches of the tools; tables under .data stay
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build
