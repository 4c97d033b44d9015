# Each target works as the first command on a fresh clone: uv goes to .uv/, the environment to .venv/.
# What is promised to exist: make, and a python3 (3.8 or newer) with pip.

UV_VERSION := 0.13.8
ZIGLANG_VERSION := 0.15.2
PYTHON3 ?= python3
# The Python of .venv, in uv's words, such as 3.12; if empty, scripts/choose_python.sh chooses.
PYTHON ?=

ROWS ?= 15000
SEED ?= 1
DEMO_DATA := demo_data/rows-$(ROWS)-seed-$(SEED)/taxi.csv
DEMO_ROOT ?= demo_root
# What `make image` builds; with a registry's name in front, `docker push` takes it there.
IMAGE ?= localhost/estimator-pipelines
# Another base than the Dockerfile's: a digest, or a mirror's name of it.
IMAGE_BASE ?=
# Builds the judges of `make test-kubeflow`, and Kubernetes for `make test-kubernetes`.
GO ?= go
# Options of a benchmark, such as BENCH="--rounds 1 --only a,f" of benchmarks/speed.py.
BENCH ?=
# Test files at a time; `auto` counts cores and memory.
WORKERS ?= auto
IN_PARALLEL := --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder
# What needs more than this environment.
ELSEWHERE := not flink and not spark and not browser and not kubernetes and not kubeflow_cluster

# A pre-installed uv can be named: `make setup UV=uv`.
UV := .uv/bin/uv
BIN := .venv/bin
STAMP := .venv/.synced

# Whatever environment the caller sits in must not leak into this project's.
unexport VIRTUAL_ENV CONDA_PREFIX PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV \
  UV_PROJECT UV_PROJECT_ENVIRONMENT UV_PYTHON UV_SYSTEM_PYTHON UV_WORKING_DIRECTORY TF_CONFIG \
  PYTHONDONTWRITEBYTECODE
export PIP_USER := 0
# Without bytecode, each process compiles TensorFlow's sources again: 31 s instead of 13, measured.
export UV_COMPILE_BYTECODE ?= 1
# Companies' proxies sign with certificates of their own; uv trusts the system's if there are any.
CERTIFICATES := /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem
export UV_SYSTEM_CERTS ?= $(if $(wildcard $(CERTIFICATES)),true,false)
export TF_CPP_MIN_LOG_LEVEL ?= 2
# Where it is set, each of the tests' many processes compiles all files anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo example test test-more test-all test-flink flink-cluster test-spark test-kubeflow test-kubeflow-cluster test-kubernetes test-report test-tf1 test-matrix test-native lint figures browser-packages mutants bench bench-speed bench-pipeline bench-serving docs dist image test-image clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 13

setup: $(STAMP)  ## install uv and every dependency into this folder
	@:

demo: $(STAMP) $(DEMO_DATA)  ## from generated taxi trips to a served model in demo_root/
	@$(BIN)/python -m pipelines run --config pipelines/examples/taxi/taxi.toml \
	  --set data.path=$(DEMO_DATA) --root $(DEMO_ROOT)

example: $(STAMP)  ## one of docs/examples.md, NAME=recommender: its project and its model in example_NAME/
	@test -e example_$(NAME)/pipeline.toml || $(BIN)/python -m pipelines init example_$(NAME) --example "$(NAME)" >&2
	@$(BIN)/python -m pipelines run --config example_$(NAME)/pipeline.toml --root example_$(NAME)/pipeline_root

test: $(STAMP)  ## the inner circle: every kind of test, about 8 minutes on two cores
	@$(BIN)/python -m pytest -q $(IN_PARALLEL) --cpu-budget -m "not more and not slow and $(ELSEWHERE)" $(TESTS)

test-more: $(STAMP)  ## every test but the slow ones
	@$(BIN)/python -m pytest -q $(IN_PARALLEL) -m "not slow and $(ELSEWHERE)" $(TESTS)

test-all: $(STAMP)  ## every test
	@$(BIN)/python -m pytest -q $(IN_PARALLEL) -m "$(ELSEWHERE)" $(TESTS)

test-flink: $(STAMP)  ## the components' Beam work on a Flink cluster, which is downloaded into .flink/
	@scripts/flink/setup.sh $(BIN)/python .flink
	@$(BIN)/python -m pytest -q --timeout 1800 -m flink tests/flink

flink-cluster: $(STAMP)  ## Flink with two task managers on this machine, until Ctrl-C
	@scripts/flink/setup.sh $(BIN)/python .flink
	@$(BIN)/python scripts/flink/cluster.py .flink

test-spark: $(STAMP)  ## the components' Beam work on Spark, which is downloaded into .spark/
	@scripts/spark/setup.sh .spark
	@$(BIN)/python -m pytest -q --timeout 1800 -m spark tests/spark

test-tf1: $(STAMP)  ## the comparisons with tf.estimator 2.15, after tf.compat.v1.disable_v2_behavior()
	@TF1_BEHAVIOR=1 $(BIN)/python -m pytest -q $(IN_PARALLEL) tests/oracle

test-native:  ## README's commands on TFX's own set, in a Debian 13 made by debootstrap in .native/; needs root
	@scripts/native/test.sh .native

mutants: $(STAMP)  ## how many of 300 changes in the sources the tests notice; ONLY=estimator_core/heads (CONTRIBUTING.md)
	@$(BIN)/python scripts/mutants/run.py --markers "not slow and $(ELSEWHERE)" --only "$(ONLY)" $(MUTANTS)

test-matrix: $(filter .uv/bin/uv,$(UV))  ## the core on TensorFlow 2.16 and 2.21, without TFX, Beam or kfp
	@scripts/test_matrix.sh $(UV) .venv-matrix $(IN_PARALLEL) $(TESTS)

lint: $(STAMP)  ## format, lint, words, lines per package, types, layers
	@$(BIN)/ruff format --quiet --check || { echo "make lint: run .venv/bin/ruff format" >&2; exit 1; }
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff check --quiet --config scripts/lint/remote_files.toml estimator_core
	@$(BIN)/python scripts/lint/words.py
	@$(BIN)/python scripts/lint/budget.py
	@$(BIN)/mypy --no-error-summary
	@report=$$($(BIN)/lint-imports) || { echo "$$report" >&2; exit 1; }

bench: bench-speed  ## ratios against the peers, measured in the same run
	@$(BIN)/python benchmarks/boosted_trees.py
	@$(BIN)/python benchmarks/pipeline_speed.py
	@$(BIN)/python benchmarks/cluster_steps.py
	@$(BIN)/python benchmarks/cluster_faults.py

bench-speed: $(STAMP)  ## the part of it about the Estimator's speed: one table (docs/speed.md)
	@$(BIN)/python benchmarks/speed.py --uv $(UV) $(BENCH)

bench-serving: $(STAMP) $(DEMO_DATA)  ## `serve` beside MLServer, LitServe and BentoML, on the model of `make demo`; needs wrk
	@$(BIN)/python benchmarks/serving.py --uv $(UV) --root $(DEMO_ROOT) --data $(DEMO_DATA) $(BENCH)

bench-pipeline: $(STAMP)  ## the taxi pipeline beside stock TFX's; BENCH="--rows 15000 300000 --rounds 3"
	@$(BIN)/python benchmarks/pipeline_speed.py $(BENCH)

docs: $(filter .uv/bin/uv,$(UV))  ## the documentation as a site, with the reference, into site/
	@scripts/docs/build.sh $(UV)

dist: $(STAMP)  ## the wheel and the sdist into dist/, checked, and the wheel tried in environments of its own
	@scripts/dist/build.sh "$(UV)" "$(CURDIR)/$(BIN)/python"

image:  ## the container image, with docker, podman or buildah, whichever works here
	@PYTHON3="$(PYTHON3)" scripts/image/build.sh "$(IMAGE)" "$(IMAGE_BASE)"

test-image: $(STAMP)  ## builds the image here and runs the demo in it, as the image's user
	@PYTHON3="$(PYTHON3)" scripts/image/test.sh localhost/estimator-pipelines-test $(BIN)/python

test-kubeflow: $(STAMP)  ## the compiled pipeline, checked and run by KFP's own code
	@GO="$(GO)" scripts/kubeflow/judges.sh "$(CURDIR)/.kubeflow"
	@scripts/kubeflow/newer_kfp.sh $(UV) .kubeflow/newer-kfp
	@$(BIN)/python -m pytest -q --timeout=3600 tests/kubeflow

test-kubeflow-cluster: $(STAMP)  ## the pipelines on your Kubeflow: HOST=http://localhost:8080 IMAGE=... [KUBECONFIG=...] (docs/kubeflow.md)
	@test -n "$(HOST)" || { echo "test-kubeflow-cluster: give the address of Kubeflow Pipelines, such as HOST=http://localhost:8080" >&2; exit 2; }
	@HOST="$(HOST)" IMAGE="$(IMAGE)" $(BIN)/python -m pytest -q -s -m kubeflow_cluster \
	  --confcutdir=tests/kubeflow_cluster tests/kubeflow_cluster

test-kubernetes: $(STAMP)  ## the image, jobs and schedules on a real Kubernetes, which is built in .kubernetes/; needs root
	@GO="$(GO)" PYTHON3="$(PYTHON3)" scripts/kubernetes/setup.sh .kubernetes
	@$(BIN)/python -m pytest -q --timeout=3600 -m kubernetes tests/kubernetes

test-report: $(STAMP) browser-packages  ## the report in a real browser: needs Chromium (or CHROMIUM=PATH), node and npm
	@$(BIN)/python -m pytest -q --timeout 1800 -m browser tests/browser

figures: $(STAMP) $(DEMO_DATA) browser-packages  ## the pictures of reports in docs/figures, from real runs; needs the same
	@scripts/report/figures.sh $(BIN)/python $(DEMO_DATA)

browser-packages:
	@npm install --silent --no-fund --no-audit --prefix .report-check axe-core@4 puppeteer-core@24

clean:  ## remove what the targets above made, but not the environment
	rm -rf build demo_data dist demo_root example_* site .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# The second call costs nothing; a change of the lock file syncs again.
$(STAMP): uv.lock pyproject.toml | $(filter .uv/bin/uv,$(UV))
	@python="$(PYTHON)"; \
	if [ -z "$$python" ]; then python=$$(scripts/choose_python.sh) || exit 1; fi; \
	echo "setup: installing the dependencies into .venv (some minutes the first time)" >&2; \
	if [ -d .uv/compiler ]; then \
	  export CC="$(CURDIR)/.uv/compiler/cc" CXX="$(CURDIR)/.uv/compiler/c++"; \
	fi; \
	PYENV_VERSION=$$(pyenv latest "$$python" 2>/dev/null) \
	$(UV) sync --quiet --frozen --python "$$python" --extra boosted-trees --extra pipelines --extra tpu-check || { \
	  echo "setup: uv could not build .venv; its reason stands above. It needs a package index" >&2; \
	  echo "and Python $$python, which it finds on this machine or downloads; if that is the system's own, also" >&2; \
	  echo "its headers (Debian, Ubuntu: apt-get install python3-dev)." >&2; \
	  exit 1; }
	@touch $@

.uv/bin/uv:
	@PYTHON3="$(PYTHON3)" scripts/bootstrap_uv.sh "$(CURDIR)/.uv" $(UV_VERSION) $(ZIGLANG_VERSION)

$(DEMO_DATA): pipelines/examples/taxi/generate.py $(STAMP)
	@$(BIN)/python -m pipelines.examples.taxi.generate --rows $(ROWS) --seed $(SEED) --out $@ >&2
