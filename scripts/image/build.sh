#!/bin/sh
# Builds the Dockerfile with docker, podman or buildah, whichever works here.
# The host's package indexes are handed in as secrets: they become part of no layer.
# Usage: build.sh NAME [BASE_IMAGE]
set -eu

name=$1 base=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
context=$(cd "$here/../.." && pwd)

engine=$("$here/engine.sh")
secrets=$(mktemp -d)
trap 'rm -rf "$secrets"' EXIT
"$here/index_settings.sh" "$secrets"

set -- --tag "$name" --file "$context/Dockerfile" \
  --label "org.opencontainers.image.created=$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
  --label "org.opencontainers.image.version=$(sed -nE 's/^version = "(.*)"$/\1/p' "$context/pyproject.toml")"
if revision=$(git -C "$context" rev-parse HEAD 2>/dev/null); then
  set -- "$@" --label "org.opencontainers.image.revision=$revision"
fi
for secret in indexes uv_toml certificates; do
  set -- "$@" --secret "id=$secret,src=$secrets/$secret"
done
if [ -n "$base" ]; then
  set -- "$@" --build-arg "PYTHON_IMAGE=$base"
  # What is called localhost/... is on this machine, and nowhere to be pulled from.
  case $engine:$base in
    podman:localhost/*) set -- "$@" --pull=never ;;
    buildah:localhost/*) set -- "$@" --pull-never ;;
  esac
fi

echo "image: building $name with $engine" >&2
case $engine in
  docker) DOCKER_BUILDKIT=1 docker build "$@" "$context" ;;
  podman) podman build --layers "$@" "$context" ;;
  buildah)
    # chroot needs neither user namespaces nor a runtime: it works inside a container, too.
    BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} buildah build --layers "$@" "$context"
    ;;
esac
