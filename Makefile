# Two commands do everything, set-up included: `make app` and `make test`.

PYTHON ?= python3
BIN := .venv/bin
# one stamp for each set of extras in .venv; that of all of them stands for the others too
READY := .venv/.ready
APP_READY := .venv/.ready-app
NOTEBOOKS_READY := .venv/.ready-notebooks
# GitHub and many laptops have two cores: one test process each
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help app lab lint test test-floor notebooks check bench clean

help:
	@echo "make app     open the page in the browser; make app CLASS=1 HOST=name: one server for a class   [2.7 GB]"
	@echo "make app DATA=PATH MODEL=torchvision:resnet50   the page with your own pictures as a world   [2.7 GB]"
	@echo "make lab     open the course in JupyterLab, on its contents page   [2.7 GB]"
	@echo "make test    run every check and every test   [2.9 GB]"
	@echo "make test-floor   the tests of the optimizers with the oldest torch and Python that they take   [3.1 GB]"
	@echo "make notebooks   run every lesson again and compare its outputs   [2.9 GB]"
	@echo "make check   format, lint, types and the fast tests, in under a minute   [2.9 GB]"
	@echo "make bench   what things cost, as ratios against their peers, in one run   [2.9 GB]"
	@echo "make clean   remove .venv and all caches"
	@echo "[in brackets: what it downloads into .venv on Linux, once; 2.6 GB of it are torch and its GPU libraries,"
	@echo " which all share: make test after make app fetches only the rest. On disk: app or lab 6.4 GB, all 8 GB]"
	@echo "To use another Python: make PYTHON=python3.12 app"

# some shells set HOST by themselves, so only the one that was written here counts
given = $(if $(findstring command,$(origin $(1))),--$(2) $($(1)))
CLASS_FLAGS = $(call given,HOST,host) $(call given,ADDRESS,address)

# your own pictures as a world of the page: make app DATA=PATH MODEL=torchvision:resnet50
environment = $(if $(findstring command,$(origin $(1))),FTP_$(1)='$($(1))')
PICTURES = $(call environment,DATA) $(call environment,MODEL) $(call environment,WEIGHTS) $(call environment,SIZE)

app: $(APP_READY)
	@$(PICTURES) $(BIN)/python -m app $(if $(PORT),--port $(PORT)) $(if $(CLASS),--class $(CLASS_FLAGS))

lab: $(NOTEBOOKS_READY)
	@$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) --LabApp.app_settings_dir=notebooks/.jupyter \
	  --LabApp.default_url=/lab/workspaces/ftp/tree/README.md notebooks

lint: $(READY)
	@$(BIN)/ruff format --check --quiet . || { echo "some files are not formatted; run: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache > /dev/null || $(BIN)/lint-imports --no-cache

check: lint
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow"

test: lint
	@$(BIN)/python -m pytest -q -n $(WORKERS)
	@$(MAKE) --no-print-directory notebooks

# the core alone, in an environment of its own, with nothing newer than it asks for
FLOOR_PYTHON ?= python3.10
FLOOR_TESTS := $(filter-out $(addprefix tests/test_,setup.py sharded.py toy.py),$(wildcard tests/test_*.py))

test-floor: .venv-floor/.ready
	@PYTHONPATH=. .venv-floor/bin/python -m pytest -q $(FLOOR_TESTS) $(wildcard ftp/*.py)

.venv-floor/.ready: pyproject.toml
	@command -v "$(FLOOR_PYTHON)" > /dev/null || { \
	  echo "There is no $(FLOOR_PYTHON) here; install Python 3.10, or name yours: make FLOOR_PYTHON=/path/to/python3.10 test-floor"; exit 1; }
	@"$(FLOOR_PYTHON)" -m venv --clear .venv-floor
	@.venv-floor/bin/python -m pip install --disable-pip-version-check --no-input 'torch==2.6.*' numpy pytest hypothesis
	@touch $@

notebooks: $(READY)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -p nbval --nbval --nbval-current-env --nbval-cell-timeout=180 \
	  -n $(WORKERS) --dist loadscope notebooks/complete

bench: $(READY)
	@$(BIN)/python benchmarks/optimizer.py
	@$(BIN)/python benchmarks/imports.py
	@$(BIN)/python benchmarks/corruptions.py
	@$(BIN)/python benchmarks/methods.py
	@$(BIN)/python benchmarks/reading.py
	@$(BIN)/python benchmarks/app_load.py
	@$(BIN)/python benchmarks/app_first.py

clean:
	@rm -rf .venv .venv-floor build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +

# Installs once, and again only when pyproject.toml or constraints.txt changed; what is there already stays.
extras = $(if $(filter $(READY),$@),all,$(patsubst .venv/.ready-%,%,$@))

$(READY) $(APP_READY) $(NOTEBOOKS_READY): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" > /dev/null || { \
	  echo "There is no $(PYTHON) here; install Python 3.11 or newer, or name yours: make PYTHON=/path/to/python3 $(MAKECMDGOALS)"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is $$("$(PYTHON)" --version 2>&1), and 3.11 or newer is needed; name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || "$(PYTHON)" -m venv --clear .venv || { \
	  echo "$(PYTHON) could not make .venv; on Debian and Ubuntu install its venv package first: apt install python3-venv"; exit 1; }
	@echo "Setting up .venv for $(if $(filter all,$(extras)),everything,$(extras)), once; make says how much that is."
	@$(BIN)/python -m pip install --disable-pip-version-check --no-input -c constraints.txt -e '.[$(extras)]' || { \
	  echo "The installation failed, see the lines above; check the network and the free space (8 GB), then run make $(MAKECMDGOALS) again: it goes on where it stopped."; exit 1; }
	@touch $@ $(if $(filter all,$(extras)),$(APP_READY) $(NOTEBOOKS_READY))
