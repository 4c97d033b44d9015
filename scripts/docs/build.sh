#!/bin/sh
# Builds the site into site/; every warning ends it.
# Usage: build.sh UV, from the root of the project.
set -eu

uv=$1
# An environment of its own: the sources are read and not imported, so there is no TensorFlow in it.
UV_PROJECT_ENVIRONMENT=.venv-docs "$uv" sync --quiet --frozen --only-group docs
.venv-docs/bin/python scripts/docs/stage.py build/docs
said=$(mktemp)
trap 'rm -f "$said"' EXIT
.venv-docs/bin/zensical build --clean --strict >"$said" 2>&1 || { cat "$said" >&2; exit 1; }
# Of a docstring that does not fit its signature griffe warns only.
if grep '^griffe:' "$said" >&2; then
  echo "docs: mend these docstrings" >&2
  exit 1
fi
.venv-docs/bin/python scripts/docs/check_site.py site
