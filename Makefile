# What a person and CI call. `make help` lists it.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.run-stamp
READY  := $(VENV)/.setup-stamp
SITE   := $(VENV)/.docs-stamp
MOCKS  := .venv-mocks/.stamp
NODE   := .mocks-npm/.stamp
PROXY  := .venv-litellm/.stamp
PIP    := $(BIN)/python -m pip install --disable-pip-version-check --no-input --quiet
export FIRST_PROMPT ?= Write two lines about a longboat at sea.

.DEFAULT_GOAL := help
.PHONY: help setup run test check generate mocks fuzz bench chaos evals dev docs pictures clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv and install everything; quick when nothing changed

$(READY): $(BASE)
	@echo "==> Installing the developer's tools"
	@$(PIP) -e '.[local,dev]'
	@touch $@

# Recreates a .venv that no longer runs because the system's Python was replaced.
$(BASE): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	  echo "longboat: $(PYTHON) is not installed. Debian and Ubuntu: apt install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "longboat: Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1)." >&2; \
	  echo "  Name a newer one: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "longboat: $(PYTHON) has no venv module. Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "==> Making $(VENV) with $$($(PYTHON) -V)"
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@echo "==> Installing Longboat and the local model's runtime (about a minute)"
	@$(PIP) -e '.[local]'
	@command -v rg >/dev/null || echo "==> grep and glob are faster with ripgrep. Debian and Ubuntu: apt install ripgrep"
	@touch $@

run: $(BASE) ## Start Longboat in the background and stream a first answer
	@if $(BIN)/longboat models --format json | grep -q '"large": "local/'; then \
	  echo "==> No API key and no longboat.json: the local model answers"; $(BIN)/longboat models pull; fi
	@echo "==> longboat run \"$$FIRST_PROMPT\""
	@$(BIN)/longboat run "$$FIRST_PROMPT"
	@echo
	@echo "The server stays in the background. Add the longboat command to your path:"
	@echo
	@echo "  . $(BIN)/activate"
	@echo "  longboat                the terminal app, in any directory"
	@echo "  longboat web            the same sessions in a browser"
	@echo '  longboat run -c "…"     continue this session, from any terminal'
	@echo "  longboat runs           active, queued and finished runs"
	@echo "  longboat models         which model answers, and how to change it"
	@echo "  longboat stop           stop the server"

# Many tests wait for processes and for the disk: two at a time keep a core busy.
WORKERS ?= $(shell $(BIN)/python -c 'import os; print(min(8, 2 * (os.cpu_count() or 1)))')

test: setup $(MOCKS) ## Run every test (some of them: make test ARGS="-k cancel")
	@$(BIN)/python tests/parts.py
	@$(MAKE) --no-print-directory $(NODE)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

check: $(SITE) ## Lint, format, types, import rules, generated files, the documentation
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/generate_sync_client.py --check
	$(BIN)/python docs/generate.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir $(VENV)/site

mocks: $(MOCKS) $(NODE) $(PROXY) ## Install other people's model servers for the tests, each in its own folder

# Each has its own folder, so that what it needs stays away from what Longboat needs.
$(MOCKS):
	@echo "==> Installing LLMock for the tests"
	@$(PYTHON) -m venv .venv-mocks
	@.venv-mocks/bin/pip install --disable-pip-version-check --no-input --quiet 'llmock>=0.2.2,<0.3'
	@touch $@

$(NODE):
	@if command -v npm >/dev/null; then \
	  echo "==> Installing aimock for the tests" && mkdir -p .mocks-npm && \
	  npm install --prefix .mocks-npm --no-audit --no-fund --silent '@copilotkit/aimock@^1.43.0' && touch $@; \
	else echo "==> Without npm, some tests will be skipped. Debian and Ubuntu: apt install npm"; fi

# About a minute and 750 MB: only on demand.
$(PROXY):
	@echo "==> Installing the LiteLLM proxy for its tests (about a minute)"
	@$(PYTHON) -m venv .venv-litellm
	@.venv-litellm/bin/pip install --disable-pip-version-check --no-input --quiet 'litellm[proxy]>=1.106,<2'
	@touch $@

generate: setup ## Write the sync client and the generated pages from the code
	$(BIN)/python scripts/generate_sync_client.py
	$(BIN)/python docs/generate.py

# The same seed makes the same texts, on any number of cores: make fuzz FUZZ_SEED=7 FUZZ_TEXTS=1000000 FUZZ_JOBS=2
FUZZ_SEED  ?= 0
FUZZ_TEXTS ?= 20000
FUZZ_JOBS  ?= 1

fuzz: setup ## Compare the shell command parser with bash (FUZZ_SEED, FUZZ_TEXTS, FUZZ_JOBS)
	@$(BIN)/python -m fuzz --seed $(FUZZ_SEED) --texts $(FUZZ_TEXTS) --jobs $(FUZZ_JOBS)

bench: setup ## Measure against the performance floors
	$(BIN)/python -m benchmarks

chaos: setup ## Kill servers under load and check their promises (CHAOS_SEED, CHAOS_KILLS, CHAOS_SECONDS, CHAOS_NODES)
	@$(BIN)/python -m chaos

# Without MODEL, a scripted one that knows the answers: quick, and it shows that the tasks and their judges work.
MODEL   ?= scripted
SAMPLES ?= 1
JOBS    ?= 2

evals: setup ## Give a model small coding tasks and judge what it did (MODEL, SAMPLES, TASKS, JOBS)
	@$(BIN)/python -m evals run --model $(MODEL) --samples $(SAMPLES) --jobs $(JOBS) --tasks "$(TASKS)" $(ARGS)

dev: setup ## Serve in the foreground on scratch data in .dev
	@$(BIN)/longboat serve --socket .dev/longboat.sock --data-dir .dev/data

docs: $(SITE) ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(SITE): $(READY)
	@$(PIP) -e '.[docs]'
	@touch $@

pictures: setup ## Take the pictures of the docs again
	@$(BIN)/python tests/parts.py
	$(BIN)/python docs/pictures.py

# The background server runs from this .venv. A server named by LONGBOAT_URL is not ours.
clean: ## Stop the server and remove what was made here (your sessions and local models stay)
	@if $(BIN)/longboat --version >/dev/null 2>&1; then \
	  echo "==> Stopping the server"; \
	  env -u LONGBOAT_URL -u LONGBOAT_SOCKET $(BIN)/longboat stop && \
	  { [ ! -S .dev/longboat.sock ] || LONGBOAT_URL= LONGBOAT_SOCKET=.dev/longboat.sock $(BIN)/longboat stop; } || { \
	  echo "longboat: nothing was removed, because the server is busy. To interrupt it: $(BIN)/longboat stop --force" >&2; \
	  exit 1; }; fi
	rm -rf $(VENV) .venv-mocks .venv-litellm .mocks-npm .dev site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
