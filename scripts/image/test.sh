#!/bin/sh
# Builds the image on this machine, prints the size of each layer, and runs the tests in it.
# If no engine works, buildah is installed with apt-get, as root. If no registry is reachable, a
# stand-in for the base image is made (stand_in_base.sh), with a message.
# Usage: test.sh NAME PYTHON [PYTEST_ARGUMENT ...]
set -eu

name=$1 python=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

# install PACKAGE ...: installs system packages.
install() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    return 1
  fi
  echo "test-image: installing $* with apt-get" >&2
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

engine=$("$here/engine.sh" 2>/dev/null) || { install buildah crun && engine=$("$here/engine.sh"); } ||
  exec "$here/engine.sh"

base=$(sed -n 's/^ARG PYTHON_IMAGE=//p' Dockerfile)
if pulled=$(timeout 600 "$engine" pull "docker.io/library/$base" 2>&1); then
  base=
else
  echo "test-image: $engine cannot pull $base:" >&2
  echo "$pulled" | tail -n 1 >&2
  if [ "$engine" != buildah ]; then
    echo "test-image: a stand-in for it needs buildah: IMAGE_ENGINE=buildah make test-image" >&2
    exit 1
  fi
  command -v debootstrap >/dev/null 2>&1 || install debootstrap || {
    echo "test-image: a stand-in for it needs debootstrap, and root." >&2
    exit 1
  }
  base=$("$here/stand_in_base.sh")
  echo "test-image: $base, Debian's own Python, stands in for it" >&2
fi

"$here/build.sh" "$name" "$base"
python3 "$here/layers.py" "$engine" "$name"
IMAGE=$name IMAGE_ENGINE=$engine "$python" -m pytest -q tests/image "$@"
