#!/bin/sh
# Installs a kfp that is newer than TFX takes into an environment of its own, for tests/kubeflow/test_newer_kfp.py.
# Usage: newer_kfp.sh UV TARGET_DIR
set -eu

uv=$1 target=$2
packages="kfp==2.17.3 kfp-kubernetes==2.17.3"
if [ "$(cat "$target/.complete" 2>/dev/null)" != "$packages" ]; then
  echo "test-kubeflow: installing $packages into $target" >&2
  "$uv" venv --quiet --clear --no-config --python 3.11 "$target"
  # shellcheck disable=SC2086  # a list of words
  "$uv" pip install --quiet --no-config --python "$target/bin/python" $packages
  echo "$packages" >"$target/.complete"
fi
