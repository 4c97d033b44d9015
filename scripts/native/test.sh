#!/bin/sh
# Runs README's commands on a system that has TFX's own set: Debian 13 (glibc 2.41, Python 3.13), made by debootstrap
# in a folder and entered with chroot. The committed state of this checkout is tested. Needs root; debootstrap is
# installed with apt-get if it is missing.
# Usage: test.sh FOLDER [COMMAND]    the command, by a shell in the checkout, instead of `make demo test`
set -eu

folder=$1 command=${2:-make demo test}
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../.." && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=$folder/debian-13

# cannot REASON: ends, because this machine cannot make or enter such a system.
cannot() {
  echo "test-native: $1" >&2
  exit 1
}

unshare --mount mount -t proc proc /mnt 2>/dev/null || cannot "needs root, and the right to mount"
command -v debootstrap >/dev/null 2>&1 ||
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap; } >/dev/null 2>&1 ||
  cannot "needs debootstrap, which apt-get cannot install here"
if [ ! -e "$root/.complete" ]; then
  echo "test-native: making a Debian 13 in $root" >&2
  mirror=$(sed -nE 's/^URIs: *([^ ]+).*/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
  rm -rf "$root"
  debootstrap --variant=minbase --include=ca-certificates,git,make,python3,python3-dev,python3-pip,python3-venv,libgomp1,procps \
    trixie "$root" ${mirror:+"$mirror"} >"$folder/debootstrap.log" 2>&1 || {
    tail -n 20 "$folder/debootstrap.log" >&2
    cannot "debootstrap failed"
  }
  touch "$root/.complete"
fi

# pip's and uv's settings of this machine hold inside, too.
mkdir -p "$root/run/secrets" "$root/root/.cache/uv"
"$here/../image/index_settings.sh" "$root/run/secrets"

# The checkout may be another user's.
[ -d "$root/src/.git" ] || git init --quiet "$root/src"
git -C "$root/src" -c safe.directory='*' fetch --quiet "$checkout" HEAD || cannot "cannot read the commits of $checkout"
git -C "$root/src" reset --quiet --hard FETCH_HEAD

# The mounts are of this process alone and end with it.
exec unshare --mount sh -eu -c '
  root=$1 command=$2
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  if cache=$(readlink -e "$HOME/.cache/uv"); then mount --bind "$cache" "$root/root/.cache/uv"; fi
  exec env -i HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot "$root" sh -eu -c ". /run/secrets/indexes; export UV_LINK_MODE=copy; cd /src; $command"
' sh "$root" "$command"
