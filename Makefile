# make        sets up .venv/, builds source/ and release/, and grades the sample class in demo/
# make test   sets up .venv/ and passes the tests: about twenty-two minutes on two slow processors
# make check  passes the quick ones, while you work: about a minute
# make bench  measures a class of 100, also with stock nbgrader (twenty minutes), and classes of 100 to 10,000 (an hour,
#             and 6 GB of disk); the figures go into docs/figures/
# make search tries every known answer, where a test run tries a part, also typed into a notebook and marked like a
#             submission, and writes docs/matrix.md; then it looks for texts that are slow to parse, SECONDS=60 of each
#             kind, and keeps the slowest (together an hour); with DISPOSABLE=1, on a disposable machine and as root, also
#             JupyterHub with system accounts
# make site  builds the pages in docs/, the notebooks and a reference made from the code as a site, in site/
# make pictures takes the pictures of the pages in docs/ again, from what the browser tests go through
# make constraints sets up .venv/ again with the newest releases that pyproject.toml allows, and pins these releases in
#             constraints.txt, which all other targets follow; PYTHON must be the oldest one that pyproject.toml allows
# make address writes the project's address on GitHub, REPOSITORY=OWNER/NAME, into README.md and autograder.toml
# make lab    sets up .venv/ and opens the course in JupyterLab with nbgrader's formgrader, assignment list and validate
#
# TORCH=cuda  installs the CUDA build of torch (gigabytes) instead of the CPU build
# COURSE=demo the folder that `make lab` opens: the sample class, or any folder that `autograder new-course` made
# LAB=...     options for `jupyter lab`

PYTHON ?= python3
TORCH ?= cpu
COURSE ?= .
LAB ?=
SECONDS ?= 60

BIN := .venv/bin
CONSTRAINTS := constraints.txt
INSTALL = $(BIN)/pip install -qq --constraint $(CONSTRAINTS)
TORCH_VERSION := $(shell sed -n 's/.*"torch==\([0-9.]*\)".*/\1/p' pyproject.toml)
ifeq ($(TORCH),cpu)
# pip's own index first (a site may have the wheel), then PyTorch's, the only one with CPU builds for Linux.
TORCH_WHEEL := --no-deps "torch==$(TORCH_VERSION)+cpu"
INSTALL_TORCH = $(INSTALL) $(TORCH_WHEEL) 2>/dev/null \
	|| $(INSTALL) $(TORCH_WHEEL) --index-url https://download.pytorch.org/whl/cpu
else ifeq ($(TORCH),cuda)
# Uninstalled first: pip would accept an installed CPU build as this version.
INSTALL_TORCH = $(BIN)/pip uninstall -qq -y torch; $(INSTALL) "torch==$(TORCH_VERSION)"
else
$(error TORCH is "$(TORCH)"; it can be cpu or cuda)
endif

# Two processes more than there are processors: many a test waits for a limit to pass.
IN_PARALLEL := --numprocesses=$(shell expr $$(getconf _NPROCESSORS_ONLN) + 2) --maxprocesses=4 --dist=loadfile
SEARCHED := catalogue/test_mutation_report.py student_check/test_student_check.py grading/test_without_work.py catalogue/test_pairs.py classroom/test_interruption.py \
	classroom/test_class_of_60.py sandbox/test_confined_notebook.py graders/test_cost_of_answers.py cli/test_endings.py core/test_forbidden_calls.py grading/test_fair_scores.py sandbox/test_misbehaving_submissions.py \
	grading/test_nothing_to_paste.py gradebook/test_postgresql.py course/test_reading.py sandbox/test_confinement.py serving/test_serve.py grading/test_submissions.py \
	catalogue/test_subtle_mistakes.py catalogue/test_unseen.py catalogue/test_held_out.py gradebook/test_reweight.py gradebook/test_extensions.py build/test_build.py graders/test_leaks.py \
	classroom/test_groups.py cli/test_sections.py formatting/test_formatting.py student_check/test_student_notebook.py \
	graders/test_resources.py grading/test_repair.py sandbox/test_global_state.py
QUICK := solutions catalogue/test_edits.py core/test_comparison.py core/test_device_probe.py graders/test_graders.py project/test_layers.py tracing/test_fault_search.py \
	project/test_prose.py

.PHONY: demo build test suite check constraints address lab lint bench search pictures site clean
.DEFAULT_GOAL := demo

demo: build
	@$(BIN)/python demo/sample_class.py
	@$(BIN)/autograder grade self_attention --course demo --trust-submissions
	@echo "Next:"
	@echo "  demo/feedback/chiara/self_attention/self_attention.html   the page of a student with a mistake"
	@echo "  make lab COURSE=demo                                      the class in JupyterLab, with formgrader"
	@echo "  release/dot_product_attention/                            the first unit, as students get it"

build: .venv/ready-$(TORCH)
	@$(BIN)/autograder build --changed

# mypy and ruff run next to the tests. A test checks that source/, release/ and demo/submitted/ are up to date.
test: .venv/ready-test-$(TORCH)
	@$(MAKE) --no-print-directory --jobs=2 lint suite

suite: .venv/ready-test-$(TORCH)
	@$(BIN)/python -m compileall -q autograder solutions
	$(BIN)/pytest $(IN_PARALLEL)

check: lint
	$(BIN)/pytest $(IN_PARALLEL) $(addprefix tests/,$(QUICK))

# Without its settings, formgrader would run submissions unconfined. nbgrader calls `alembic` by its bare name, and needs
# an exchange that everyone can write to.
# In the environment, because a path may have spaces, brackets and dollars in it.
lab: export OPENED = $(value COURSE)
lab: export CHECKOUT = $(CURDIR)
lab: .venv/ready-$(TORCH)
	@test -f "$$OPENED/nbgrader_config.py" \
		|| { echo "$$OPENED is no course folder: make demo with make, another with autograder new-course."; exit 1; }
	@mkdir -p -m 777 "$$OPENED/exchange"
	@cd "$$OPENED" && export PATH="$$CHECKOUT/$(BIN):$$PATH" JUPYTER_CONFIG_PATH="$$CHECKOUT/lab" \
		&& exec jupyter lab $(LAB)

lint: .venv/ready-test-$(TORCH)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/ready-$(TORCH): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=python3.12"; exit 1; }
	@command -v bwrap >/dev/null \
		|| echo "bubblewrap is missing, so isolation will be weaker: apt install bubblewrap libseccomp2"
	@echo "Setting up .venv/ with the $(TORCH) build of torch: a minute or two, about 1.4 GB."
	@$(PYTHON) -m venv .venv \
		|| { echo "This Python cannot make a virtual environment: on Debian, apt install python3-venv."; exit 1; }
	@echo "Installing torch."
	@$(INSTALL_TORCH)
	@echo "Installing pytest, nbgrader and JupyterLab."
	@$(INSTALL) -e .
	@rm -f .venv/ready-*
	@touch $@

.venv/ready-test-$(TORCH): .venv/ready-$(TORCH)
	@echo "Installing what only the tests need."
	@$(INSTALL) -e '.[test]'
	@NODE_OPTIONS=--use-system-ca $(BIN)/npm install --fetch-retries=1 --loglevel=error --prefix .venv --global \
		configurable-http-proxy@5.3.0 >/dev/null
	@touch $@

.venv/ready-site-$(TORCH): .venv/ready-$(TORCH)
	@echo "Installing what only the site needs."
	@$(INSTALL) -e '.[site]'
	@touch $@

# With the oldest Python, because newer ones can install the same releases. Without "+cpu", both builds of torch fit.
constraints:
	@rm -rf .venv
	@$(MAKE) --no-print-directory CONSTRAINTS=/dev/null .venv/ready-test-$(TORCH)
	@{ echo "# Written by make constraints with Python $$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')"; \
		$(BIN)/pip freeze --all --exclude pip --exclude-editable | sed 's/+.*//'; } > constraints.txt
	@touch .venv/ready-*

bench: build
	$(BIN)/python -m benchmarks.class_of_100
	$(BIN)/python -m benchmarks.scale

# The page is written last: it says that all the rest was as it should be.
search: .venv/ready-test-$(TORCH)
	$(BIN)/pytest $(IN_PARALLEL) --every -k "not on_the_page and not the_page_is" $(addprefix tests/,$(SEARCHED))
	$(BIN)/autograder matrix --sandboxed
	$(BIN)/autograder matrix --write
	$(BIN)/python -m tests.fuzz.slow $(SECONDS)
ifeq ($(DISPOSABLE),1)
	DISPOSABLE=1 $(BIN)/pytest tests/browser/test_jupyterhub.py
else
	@echo "Left out: JupyterHub with system accounts. It runs as root, so use a disposable machine: make search DISPOSABLE=1"
endif

# A warning is an error. The folder is emptied first, so that no page stays whose source is gone.
site: .venv/ready-site-$(TORCH)
	@rm -rf site
	@$(BIN)/python docs/_ext/pages.py

address:
	@echo "$(REPOSITORY)" | grep -Eqx '[A-Za-z0-9-]+/[A-Za-z0-9._-]+' || { echo "make address REPOSITORY=OWNER/NAME"; exit 1; }
	@sed -i -E 's|(colab\.[^/]*/github)/[^/]*/[^/]*|\1/$(REPOSITORY)|' README.md
	@sed -i 's|^files_at = "[^"]*"|files_at = "https://raw.githubusercontent.com/$(REPOSITORY)/main/release"|' autograder.toml
	@echo "Now run autograder build, and commit README.md, autograder.toml, source/ and release/."

pictures: .venv/ready-test-$(TORCH)
	@rm -rf artifacts/screenshots
	$(BIN)/pytest tests/browser/test_instructor.py tests/browser/test_journeys.py
	$(BIN)/python -m tests.browser.pictures

# Of demo/ keeps what is part of the repository.
clean:
	rm -rf .venv artifacts site $(addprefix demo/,autograded exchange feedback gradebook.db reports shown .grading.lock .serving.lock .serving source release \
		nbgrader_config.py submitted/*/*/submission_secret.txt)
