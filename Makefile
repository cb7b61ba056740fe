# Two commands do everything, set-up included: `make app` and `make test`.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# GitHub and many laptops have two cores: one test process each
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help app lab lint test notebooks check bench clean

help:
	@echo "make app     open the page in the browser; make app CLASS=1 HOST=name: one server for a class"
	@echo "make lab     open the course in JupyterLab, on its contents page"
	@echo "make test    run every check and every test"
	@echo "make notebooks   run every lesson again and compare its outputs"
	@echo "make check   format, lint, types and the fast tests, in under a minute"
	@echo "make bench   what things cost, as ratios against their peers, in one run"
	@echo "make clean   remove .venv and all caches"
	@echo "The first target sets up .venv by itself (about 6 GB on Linux, a few minutes)."
	@echo "To use another Python: make PYTHON=python3.12 app"

# some shells set HOST by themselves, so only the one that was written here counts
given = $(if $(findstring command,$(origin $(1))),--$(2) $($(1)))
CLASS_FLAGS = $(call given,HOST,host) $(call given,ADDRESS,address)

app: $(READY)
	@$(BIN)/python -m app $(if $(PORT),--port $(PORT)) $(if $(CLASS),--class $(CLASS_FLAGS))

lab: $(READY)
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

notebooks: $(READY)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -p nbval --nbval --nbval-current-env --nbval-cell-timeout=180 \
	  -n $(WORKERS) --dist loadscope notebooks/complete

bench: $(READY)
	@$(BIN)/python benchmarks/optimizer.py
	@$(BIN)/python benchmarks/imports.py
	@$(BIN)/python benchmarks/corruptions.py
	@$(BIN)/python benchmarks/methods.py
	@$(BIN)/python benchmarks/app_load.py
	@$(BIN)/python benchmarks/app_first.py

clean:
	@rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +

# Installs once, and again only when pyproject.toml or constraints.txt changed.
$(READY): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" > /dev/null || { \
	  echo "There is no $(PYTHON) here; install Python 3.11 or newer, or name yours: make PYTHON=/path/to/python3 $(MAKECMDGOALS)"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is $$("$(PYTHON)" --version 2>&1), and 3.11 or newer is needed; name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || "$(PYTHON)" -m venv --clear .venv || { \
	  echo "$(PYTHON) could not make .venv; on Debian and Ubuntu install its venv package first: apt install python3-venv"; exit 1; }
	@echo "Setting up .venv, once: about 6 GB on Linux, a few minutes."
	@$(BIN)/python -m pip install --disable-pip-version-check --no-input -c constraints.txt -e '.[all]' || { \
	  echo "The installation failed, see the lines above; check the network and the free space (6 GB), then run make $(MAKECMDGOALS) again: it goes on where it stopped."; exit 1; }
	@touch $@
