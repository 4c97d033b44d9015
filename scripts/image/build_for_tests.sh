#!/bin/sh
# Builds the image on this machine and prints the engine that built it.
# If no engine works, buildah is installed with apt-get, as root. If no registry is reachable, a
# stand-in for the base image is made (stand_in_base.sh), with a message.
# Usage: build_for_tests.sh NAME
set -eu

name=$1
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

# install PACKAGE ...: installs system packages.
install() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    return 1
  fi
  echo "image: installing $* with apt-get" >&2
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

engine=$("$here/engine.sh" 2>/dev/null) || { install buildah crun && engine=$("$here/engine.sh"); } ||
  exec "$here/engine.sh"

base=$(sed -n 's/^ARG PYTHON_IMAGE=//p' Dockerfile)
if pulled=$(timeout 600 "$engine" pull "docker.io/library/$base" 2>&1); then
  base=
else
  echo "image: $engine cannot pull $base:" >&2
  echo "$pulled" | tail -n 1 >&2
  if [ "$engine" != buildah ]; then
    echo "image: a stand-in for it needs buildah; name it with IMAGE_ENGINE=buildah" >&2
    exit 1
  fi
  command -v debootstrap >/dev/null 2>&1 || install debootstrap || {
    echo "image: a stand-in for it needs debootstrap, and root." >&2
    exit 1
  }
  base=$("$here/stand_in_base.sh")
  echo "image: $base, Debian's own Python, stands in for it" >&2
fi

"$here/build.sh" "$name" "$base" >&2
echo "$engine"
