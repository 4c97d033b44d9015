#!/bin/sh
# Creates an environment with some packages for `make bench`, and prints its Python:
# scripts/bench_environment.sh UV FOLDER PACKAGE... An existing environment is reused.
set -eu

uv=$1 folder=$2
shift 2
made="compiled: $*"
if [ "$(cat "$folder/.complete" 2>/dev/null)" != "$made" ]; then
  echo "bench: installing $* into $folder" >&2
  # pyenv, if installed, hides all Pythons except the one of .python-version.
  PYENV_VERSION=$(pyenv latest 3.11 2>/dev/null || true) \
    "$uv" venv --quiet --clear --python 3.11 "$folder"
  # Ignores this project's configuration, whose overrides would choose another TensorFlow.
  "$uv" pip install --quiet --no-config --compile-bytecode --python "$folder/bin/python" "$@"
  echo "$made" > "$folder/.complete"
fi
echo "$folder/bin/python"
