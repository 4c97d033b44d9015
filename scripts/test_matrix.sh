#!/bin/sh
# Tests estimator_core on the oldest and the newest TensorFlow, in separate environments that have
# TensorFlow but neither TFX, Beam nor kfp; then, briefly, on the oldest and the newest Pythons, and on the set of
# Colab (TensorFlow 2.19, Python 3.12).
# Usage: test_matrix.sh UV TARGET_DIR [PYTEST_ARGUMENT ...]
set -eu

uv=$1 target=$2
shift 2

# Packages that only tests use: pandas for pandas_input_fn, scikit-learn as a second opinion on numbers,
# tf_keras for the optimizers and models of Keras 2, tensorboard for tf.summary; and LightGBM, an
# optional dependency of the core.
packages="lightgbm pandas pytest==8.4.2 pytest-timeout==2.4.0 pytest-xdist==3.8.0 scikit-learn tensorboard"

# environment PYTHON TENSORFLOW: creates it once, and checks that TFX, Beam and kfp are absent.
environment() {
  folder=$target/python-$1-tensorflow-$2
  if [ "$(cat "$folder/.complete" 2>/dev/null)" != "$packages" ]; then
    echo "test-matrix: installing TensorFlow $2 on Python $1 into $folder" >&2
    # pyenv, if installed, hides all Pythons except the one of .python-version.
    PYENV_VERSION=$(pyenv latest "$1" 2>/dev/null || true) \
      "$uv" venv --quiet --clear --python "$1" "$folder"
    # Ignores this project's configuration, whose overrides would choose the TensorFlow.
    # shellcheck disable=SC2086  # a list of words
    "$uv" pip install --quiet --no-config --python "$folder/bin/python" \
      "tensorflow==$2.*" "tf-keras==$2.*" $packages
    echo "$packages" > "$folder/.complete"
  fi
  "$folder/bin/python" - "$2" <<'PYTHON'
import importlib.metadata, importlib.util, sys
present = [name for name in ("apache_beam", "kfp", "tfx") if importlib.util.find_spec(name)]
if present:
    sys.exit(f"test-matrix: {sys.prefix} must not hold {present}: delete it")
versions = {name: importlib.metadata.version(name) for name in ("tensorflow", "keras", "numpy")}
if not versions["tensorflow"].startswith(sys.argv[1] + "."):
    sys.exit(f"test-matrix: {sys.prefix} must hold TensorFlow {sys.argv[1]}, not {versions['tensorflow']}")
print("test-matrix: Python", sys.version.split()[0], *(" ".join(item) for item in versions.items()))
PYTHON
}

status=0
for tensorflow in 2.16 2.21; do
  environment 3.11 "$tensorflow"
  "$folder/bin/python" -m pytest -q -m "not slow" \
    tests/estimator_core tests/contract tests/oracle tests/guides "$@" || status=1
done
for versions in "3.10 2.16" "3.12 2.19" "3.12 2.21" "3.13 2.21"; do
  # shellcheck disable=SC2086  # two words
  environment $versions
  "$folder/bin/python" -m pytest -q tests/estimator_core/test_import.py \
    tests/estimator_core/test_estimator.py "$@" || status=1
done
exit $status
