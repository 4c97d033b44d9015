#!/bin/sh
# Builds the site into site/; every warning is an error.
# Usage: build.sh UV, from the root of the project.
set -eu

uv=$1
# A separate environment without TensorFlow: the sources are read and not imported.
UV_PROJECT_ENVIRONMENT=.venv-docs "$uv" sync --quiet --frozen --only-group docs
.venv-docs/bin/python scripts/docs/stage.py build/docs
output=$(mktemp)
trap 'rm -f "$output"' EXIT
.venv-docs/bin/zensical build --clean --strict >"$output" 2>&1 || { cat "$output" >&2; exit 1; }
# griffe only warns about a docstring that does not match its signature.
if grep '^griffe:' "$output" >&2; then
  echo "docs: fix these docstrings" >&2
  exit 1
fi
.venv-docs/bin/python scripts/docs/check_site.py site
