#!/bin/sh
# Builds the Dockerfile with docker, podman or buildah, whichever works.
# The host's package indexes are passed as secrets, so no layer contains them.
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
  # localhost/... names an image on this machine, which cannot be pulled.
  case $engine:$base in
    podman:localhost/*) set -- "$@" --pull=never ;;
    buildah:localhost/*) set -- "$@" --pull-never ;;
  esac
fi

echo "image: building $name with $engine" >&2
status=0
case $engine in
  docker) DOCKER_BUILDKIT=1 docker build "$@" "$context" || status=$? ;;
  podman) podman build --layers "$@" "$context" || status=$? ;;
  buildah)
    # chroot needs neither user namespaces nor a runtime, so it works inside a container, too.
    BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} buildah build --layers "$@" "$context" || status=$?
    ;;
esac

# Was the base image the cause? Images on this machine are not pulled.
if [ "$status" != 0 ]; then
  wanted=${base:-$(sed -n 's/^ARG PYTHON_IMAGE=//p' "$context/Dockerfile")}
  case $wanted in */*) ;; *) wanted=docker.io/library/$wanted ;; esac
  case $wanted in
    localhost/*) ;;
    *)
      if ! timeout 120 "$engine" pull "$wanted" >/dev/null 2>&1; then
        echo "image: $engine cannot pull the base image $wanted. Name one that it can, such as a mirror's copy:" \
          "make image IMAGE_BASE=NAME; for tests, as root with buildah and debootstrap, make a stand-in:" \
          "make image IMAGE_BASE=\$(scripts/image/stand_in_base.sh)" >&2
      fi
      ;;
  esac
fi
exit "$status"
