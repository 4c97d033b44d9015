#!/bin/sh
# Builds the image on this machine (build_for_tests.sh), prints the size of each layer, and runs the tests in it.
# Usage: test.sh NAME PYTHON [PYTEST_ARGUMENT ...]
set -eu

name=$1 python=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

engine=$("$here/build_for_tests.sh" "$name")
python3 "$here/layers.py" "$engine" "$name"
IMAGE=$name IMAGE_ENGINE=$engine "$python" -m pytest -q tests/image "$@"
