#!/bin/sh
# Builds the programs that check the compiled pipeline in tests, into .kubeflow/ of this checkout, at the
# versions and checksums of tests/kubeflow/go: `admit`, which reads a pipeline into KFP's own types. Of
# tests/kubeflow/go-kubernetes: `submit`, which checks jobs like Kubernetes' API server.
# Usage: judges.sh TARGET_DIR          $GO names a go other than the one on PATH
set -eu

target=$1
here=$(cd "$(dirname "$0")" && pwd)
module=$here/../../tests/kubeflow/go
kubernetes=$here/../../tests/kubeflow/go-kubernetes
go=${GO:-go}
if ! command -v "$go" >/dev/null 2>&1; then
  go=/usr/local/go/bin/go
fi
if ! command -v "$go" >/dev/null 2>&1; then
  echo "test-kubeflow: a Go toolchain (1.26 or newer) is needed to build the judges, and none is on PATH." >&2
  echo "Install it (https://go.dev/doc/install), or name one: make GO=/path/to/go test-kubeflow" >&2
  exit 1
fi

mkdir -p "$target/bin"
stamp=$(cat "$module"/go.* "$module"/*/*.go "$kubernetes"/go.* "$kubernetes"/*/*.go | sha256sum | cut -d ' ' -f 1)
if [ "$(cat "$target/.built" 2>/dev/null)" != "$stamp" ] || [ ! -x "$target/bin/admit" ] \
  || [ ! -x "$target/bin/submit" ]; then
  echo "test-kubeflow: building admit and submit (many minutes the first time)" >&2
  # -mod=readonly: modules that are not in go.sum are refused.
  (cd "$module" && CGO_ENABLED=0 "$go" build -mod=readonly -trimpath -ldflags "-s -w" -o "$target/bin/" ./admit)
  (cd "$kubernetes" && CGO_ENABLED=0 "$go" build -mod=readonly -ldflags "-s -w" -o "$target/bin/" ./submit)
  echo "$stamp" >"$target/.built"
fi
