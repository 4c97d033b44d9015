#!/bin/sh
# Prints the container engine to use: docker, podman or buildah, the first one that works.
# A docker client without an engine does not count.
# $IMAGE_ENGINE names one instead. Without one, prints the engines tried and exits with 1.
set -eu

works() {
  command -v "$1" >/dev/null 2>&1 && "$1" info >/dev/null 2>&1
}

if [ -n "${IMAGE_ENGINE:-}" ]; then
  case $IMAGE_ENGINE in
    docker | podman | buildah) ;;
    *)
      echo "image: the engine must be docker, podman or buildah. Received: IMAGE_ENGINE=$IMAGE_ENGINE" >&2
      exit 1
      ;;
  esac
  if ! works "$IMAGE_ENGINE"; then
    echo "image: '$IMAGE_ENGINE info' fails, so it cannot build. Received: IMAGE_ENGINE=$IMAGE_ENGINE" >&2
    exit 1
  fi
  echo "$IMAGE_ENGINE"
  exit
fi

tried=
for engine in docker podman buildah; do
  if works "$engine"; then
    echo "$engine"
    exit
  fi
  if command -v "$engine" >/dev/null 2>&1; then
    tried="$tried $engine ('$engine info' fails),"
  else
    tried="$tried $engine (not installed),"
  fi
done
echo "image: no container engine works here:${tried%,}." >&2
echo "Install one of them; on Debian and Ubuntu, as root: apt-get install --no-install-recommends buildah crun" >&2
exit 1
