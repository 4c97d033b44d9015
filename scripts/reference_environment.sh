#!/bin/sh
# Makes an environment with tf.estimator 2.15, the last release, which `make bench` measures beside ours, and
# prints its Python: scripts/reference_environment.sh UV FOLDER. Makes nothing the second time.
set -eu

uv=$1 folder=$2
packages="tensorflow-cpu==2.15.1 tensorflow-estimator==2.15.0"
if [ "$(cat "$folder/.complete" 2>/dev/null)" != "$packages" ]; then
  echo "bench: installing tf.estimator 2.15 into $folder" >&2
  # pyenv, where there is one, hides all Pythons but that of .python-version.
  PYENV_VERSION=$(pyenv latest 3.11 2>/dev/null || true) \
    "$uv" venv --quiet --clear --python 3.11 "$folder"
  # Without this project's configuration, whose overrides would choose another TensorFlow.
  # shellcheck disable=SC2086  # a list of words
  "$uv" pip install --quiet --no-config --python "$folder/bin/python" $packages
  echo "$packages" > "$folder/.complete"
fi
echo "$folder/bin/python"
