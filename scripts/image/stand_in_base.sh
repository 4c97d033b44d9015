#!/bin/sh
# Makes a stand-in for the base image if no registry is reachable: Debian 13 with its own
# Python 3.13, by debootstrap, under the name localhost/python-stand-in:trixie. Needs root.
# It is for tests: its Python is Debian's 3.13.5, not the release that the Dockerfile names.
# Usage: stand_in_base.sh    prints the name
set -eu

name=localhost/python-stand-in:trixie
export STORAGE_DRIVER="${STORAGE_DRIVER:-overlay}" BUILDAH_ISOLATION=chroot

if [ -z "$(buildah images --quiet "$name" 2>/dev/null)" ]; then
  mirror=$(sed -nE 's/^URIs: *([^ ]+).*/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
  root=$(mktemp -d)
  trap 'rm -rf --one-file-system "$root"' EXIT
  if ! debootstrap --variant=minbase \
    --include=python3,python3-venv,python3-pip,libpython3.13-dev,ca-certificates \
    trixie "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1; then
    tail -n 20 "$root.log" >&2
    echo "image: debootstrap could not make the stand-in for the base image; its message is above." >&2
    rm -f "$root.log"
    exit 1
  fi
  rm -f "$root.log"
  # debootstrap leaves them mounted if something was looking into them when it ended.
  umount --lazy "$root/proc" "$root/sys" 2>/dev/null || true
  # Debian lacks three things of python:3.11-slim: `python`, a pip that may install, and Python's headers
  # (installed above by libpython3.13-dev).
  ln -s python3 "$root/usr/bin/python"
  rm -f "$root"/usr/lib/python3.13/EXTERNALLY-MANAGED
  # Like Debian's images, this one does not keep apt's caches.
  printf 'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\nDPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };\n' \
    >"$root/etc/apt/apt.conf.d/docker-clean"
  rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$root" / >/dev/null
  buildah commit --quiet --rm "$container" "$name" >/dev/null
fi
echo "$name"
