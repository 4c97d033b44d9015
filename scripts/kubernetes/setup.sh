#!/bin/sh
# Brings what cluster.py runs into a folder:
#   bin/     Kubernetes in one program, and `pause`, built from the Go module proxy at the versions and checksums of go/
#   images/  the project's image, and one with kubectl; the cluster imports them at its next start
# containerd, etcd and the rest are Debian's; what is missing is installed with apt-get. Needs root.
# Usage: setup.sh FOLDER          $GO names a go other than the one on PATH
set -eu

folder=$1
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
image=localhost/estimator-pipelines-kubernetes:test

# cannot REASON: ends, because this machine cannot have such a cluster.
cannot() {
  echo "test-kubernetes: $1" >&2
  exit 1
}

[ "$(id -u)" = 0 ] || cannot "needs root: the cluster has namespaces, mounts and control groups of its own"
missing=
for pair in containerd:containerd runc:runc etcd:etcd-server dnsmasq:dnsmasq-base conntrack:conntrack \
  iptables:iptables socat:socat ip:iproute2 openssl:openssl pgrep:procps nsenter:util-linux; do
  command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
[ -x /usr/lib/cni/bridge ] || missing="$missing containernetworking-plugins"
if [ -n "$missing" ]; then
  echo "test-kubernetes: installing$missing with apt-get" >&2
  # shellcheck disable=SC2086
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=600 $missing; } >/dev/null 2>&1 || cannot "apt-get could not install$missing"
fi
go=${GO:-go}
command -v "$go" >/dev/null 2>&1 || go=/usr/local/go/bin/go
command -v "$go" >/dev/null 2>&1 ||
  cannot "needs a Go toolchain, 1.26 or newer (https://go.dev/doc/install), or make GO=/path/to/go test-kubernetes"

mkdir -p "$folder/bin" "$folder/images"
folder=$(cd "$folder" && pwd)

# is_new NAME STAMP: true unless the stamp is that of the last time.
is_new() {
  [ "$(cat "$folder/.$1" 2>/dev/null)" != "$2" ]
}

stamp=$(cat "$here"/go/go.* "$here"/go/*/*.go "$here/tools_image.py" | sha256sum)
if is_new programs "$stamp"; then
  echo "test-kubernetes: building Kubernetes (ten minutes and more the first time)" >&2
  version=$(sed -n 's/^\tk8s.io\/kubernetes //p' "$here/go/go.mod")
  # -mod=readonly: modules that are not in go.sum are refused.
  (cd "$here/go" && CGO_ENABLED=0 "$go" build -mod=readonly -trimpath \
    -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$folder/bin/" ./kube ./pause)
  python3 "$here/tools_image.py" "$folder/bin" "$folder/images/tools.tar"
  echo "$stamp" >"$folder/.programs"
fi

stamp=$(find Dockerfile LICENSE README.md pyproject.toml uv.lock estimator_pipelines.py estimator_core components pipelines \
  -type f -not -path '*/__pycache__/*' | sort | xargs -d '\n' sha256sum | sha256sum)
if is_new image "$stamp"; then
  engine=$(scripts/image/build_for_tests.sh "${image%:*}")
  echo "test-kubernetes: writing the image to a file" >&2
  draft=$folder/images/project.draft
  rm -f "$draft"
  case $engine in
    buildah) buildah push --quiet "${image%:*}" "docker-archive:$draft:$image" >/dev/null ;;
    *) "$engine" tag "${image%:*}" "$image" && "$engine" save --output "$draft" "$image" ;;
  esac
  mv "$draft" "$folder/images/project.tar"
  echo "$stamp" >"$folder/.image"
fi
