#!/bin/sh
# Builds the wheel and the sdist into dist/, and tries the wheel: the core in an environment with nothing but
# TensorFlow and NumPy, and a project that `init` makes in the environment of the lock file.
# Usage: build.sh UV PYTHON
set -eu

uv=$1 python=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf dist
"$uv" build --quiet --out-dir dist
rm -f dist/.gitignore
"$uv" tool run --quiet --from twine==6.2.0 twine --no-color check --strict dist/*
"$python" scripts/dist/check.py dist
wheel=$(pwd)/$(echo dist/*.whl)

echo "dist: the core alone" >&2
"$uv" venv --quiet --python "$python" "$work/core"
# Without this project's configuration, whose overrides would choose the TensorFlow.
"$uv" pip install --quiet --no-config --python "$work/core/bin/python" "$wheel"
"$work/core/bin/python" -I scripts/dist/core.py

echo "dist: a project, in the environment of the lock file" >&2
UV_PROJECT_ENVIRONMENT=$work/locked \
  "$uv" sync --quiet --frozen --no-dev --extra pipelines --no-install-project --python "$python"
"$uv" pip install --quiet --no-deps --python "$work/locked/bin/python" "$wheel"
PATH=$work/locked/bin:$PATH
cd "$work"
estimator-pipelines init demo
cd demo
python -m unittest 2> "$work/unittest.log" || { cat "$work/unittest.log" >&2; exit 1; }
estimator-pipelines run --config pipeline.toml 2> "$work/run.log" > "$work/run.json" || {
  cat "$work/run.log" >&2
  exit 1
}
python - "$work/run.json" <<'PYTHON'
import json, pathlib, sys
run = json.loads(pathlib.Path(sys.argv[1]).read_text().splitlines()[-1])
assert run["status"] == "pushed", run
assert pathlib.Path("pipeline_root/serving", run["version"], "saved_model.pb").is_file()
print(f"dist: pushed version {run['version']}, AUC {run['metrics']['auc']:.5f}")
PYTHON
