# The doors, the same for people and for CI. A fresh machine needs Python 3.11 or later and nothing else:
# each door makes .venv and installs on first use, and again only when what is installed changes. The demo
# installs nothing where .venv or $(PYTHON) has what the package needs.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed

# Test processes that run side by side, with one thread each: more threads than cores only wait for each
# other. A process takes neighbouring tests, so that most fixtures are made once; one that has finished takes
# tests from another. `make test WORKERS=0` runs everything in one process, to debug.
WORKERS ?= 2
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: help demo test check bench bench-gpu size docs site format release-check clean

help:
	@echo "make demo    translate; train a small translator of numbers and dates, score it, and show where it looks;"
	@echo "             PYTHON=PATH takes what is installed there, as does an active virtual environment"
	@echo "make test    every test"
	@echo "make check   formatting, lint, types (of the page, too, where there is Node) and the quick tests"
	@echo "make bench   one table: training, decoding, serving and looking, beside other projects"
	@echo "make bench-gpu PAIRS=DIR TEXT=FILE   the same for a GPU"
	@echo "make size    files, folders, imports, cycles, lengths and hops: the measures of the package"
	@echo "make docs    write the pages that are made from the code"
	@echo "make site    build the documentation as a site in _site/, with a gallery of saved pages"
	@echo "make format  put the code into the one format"
	@echo "make release-check   build wheel and sources, look into them, and try them on every Python"
	@echo "make clean   remove what these doors made"

# $(call install,WHAT): WHAT of this project and its dependencies, at the versions of constraints.txt, into .venv
install = echo "installing $(1) into .venv: minutes, depending on the network; torch is the largest part"; \
	began=$$(date +%s); $(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet \
	--disable-pip-version-check -c constraints.txt -e "$(1)" && \
	echo "installed in $$(($$(date +%s) - began)) s"

demo:
	@for python in $(BIN)/python $(PYTHON); do \
		if command -v "$$python" > /dev/null && "$$python" tools/ready.py; then ready="$$python"; break; fi; \
	done; \
	if [ -z "$$ready" ]; then { $(call install,.); } && ready=$(BIN)/python || exit 1; fi; \
	PYTHONPATH=".$${PYTHONPATH:+:$$PYTHONPATH}" "$$ready" examples/demo.py

test: $(INSTALLED)
	$(PYTEST)

check: $(INSTALLED)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python tools/page_types.py
	$(PYTEST) -m "not slow"

bench: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	$(BIN)/python benchmarks/table.py

# Sentences are not part of the project: PAIRS holds train.en.xz and train.de.xz, TEXT is sentences packed by xz.
bench-gpu: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	$(BIN)/python benchmarks/table.py --gpu --pairs "$(PAIRS)" --text "$(TEXT)"

size: $(INSTALLED)
	$(BIN)/python tools/size.py --hops

docs: $(INSTALLED)
	$(BIN)/python -c "from regard.config import reference; print(reference(), end='')" > docs/configuration.md
	$(BIN)/python -c "from regard.experiments.report import claims_page; print(claims_page(), end='')" > docs/claims.md
	$(BIN)/python tools/glossary.py > regard/page/words/glossary.json
	$(BIN)/python tools/python_page.py > docs/python.md
	$(BIN)/python tools/table_3.py > docs/table-3.md

site: $(INSTALLED)
	$(BIN)/python tools/site.py

format: $(INSTALLED)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

release-check: $(INSTALLED)
	$(BIN)/python tools/release.py

clean:
	rm -rf .venv _site .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@$(call install,.[dev])
	@touch $@
