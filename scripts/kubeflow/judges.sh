#!/bin/sh
# Builds what the tests of the compiled pipeline are judged with, into .kubeflow/ of this checkout:
# versitygw, an S3 server, from the Go module proxy, at the version and checksums of tests/kubeflow/go.
# Usage: judges.sh TARGET_DIR          $GO names a go other than the one on PATH
set -eu

target=$1
here=$(cd "$(dirname "$0")" && pwd)
module=$here/../../tests/kubeflow/go
go=${GO:-go}
if ! command -v "$go" >/dev/null 2>&1; then
  go=/usr/local/go/bin/go
fi
if ! command -v "$go" >/dev/null 2>&1; then
  echo "test-kubeflow: a Go toolchain (1.26 or newer) builds the S3 server, and there is none on PATH." >&2
  echo "Install it (https://go.dev/doc/install), or name one: make GO=/path/to/go test-kubeflow" >&2
  exit 1
fi

mkdir -p "$target/bin"
stamp=$(cat "$module/go.mod" "$module/go.sum" | sha256sum | cut -d ' ' -f 1)
if [ "$(cat "$target/.built" 2>/dev/null)" != "$stamp" ] || [ ! -x "$target/bin/versitygw" ]; then
  echo "test-kubeflow: building versitygw (some minutes the first time)" >&2
  # -mod=readonly: what go.sum does not name is refused.
  (cd "$module" && CGO_ENABLED=0 "$go" build -mod=readonly -trimpath -ldflags "-s -w" \
    -o "$target/bin/versitygw" github.com/versity/versitygw/cmd/versitygw)
  echo "$stamp" >"$target/.built"
fi
