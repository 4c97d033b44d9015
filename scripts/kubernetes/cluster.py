"""A Kubernetes of one node on this machine, for tests: all of it runs in separate namespaces. Needs root.

    scripts/kubernetes/setup.sh .kubernetes
    python scripts/kubernetes/cluster.py .kubernetes

It runs until Ctrl-C. The network is not connected with the machine's: `kubectl` works inside of it.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.kubernetes.certificates import Certificates
from scripts.kubernetes.machine import kept_sysctls, new_cgroups, new_folders

START_SECS = 240
NODE, NODE_ADDRESS = "node1", "10.90.0.1"

_FOLDER = Path(__file__).parent
_SERVER = f"https://{NODE_ADDRESS}:6443"
_SERVICES, _SERVICE_ADDRESS, _PODS = "10.92.0.0/24", "10.92.0.1", "10.91.0.0/24"
_CGROUP = "estimator-kubernetes"
# Paths that the programs can't be told otherwise; each is another folder in the namespace.
_MOUNTS = {
    "/var/lib/kubelet": "kubelet",
    "/var/lib/cni": "cni-state",
    "/var/log/pods": "pod-logs",
    "/var/log/containers": "container-logs",
    "/run/containerd": "run-containerd",
    "/run/netns": "run-netns",
}
_PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)


class Cluster:
    """A control plane and a node, from programs and images in a folder; a context manager.

    Its state is new at each start; only the images stay.
    """

    def __init__(self, folder: Path, audit: Sequence[Mapping[str, Any]] = ()):
        self._folder = folder.resolve()
        self.state = self._folder / "state"
        self._audit = [*audit, {"level": "None"}]
        self._holder: subprocess.Popen[bytes] | None = None
        self._init = ""
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> "Cluster":
        with contextlib.ExitStack() as exits:
            exits.enter_context(kept_sysctls())
            exits.enter_context(new_cgroups(_CGROUP))
            self._lay_out()
            exits.enter_context(new_folders(_MOUNTS))
            self._enter_namespaces()
            exits.callback(self._end)
            self._start_containerd()
            self._start_control_plane()
            self._start_node()
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def inside(self, *command: str) -> list[str]:
        """Returns a command that runs in the cluster's namespaces, in the present folder."""
        options = ["--mount", "--net", "--pid", f"--wd={Path.cwd()}"]
        return ["nsenter", f"--target={self._init}", *options, "--", *command]

    def run_inside(self, *command: str) -> str:
        """Runs a command in the cluster's namespaces, and returns its output."""
        return subprocess.run(self.inside(*command), stdout=subprocess.PIPE, text=True, check=True).stdout

    def kubectl(self, *arguments: str, text: str | None = None, check: bool = True) -> str:
        """Runs kubectl as an administrator and returns its output, or raises RuntimeError with it."""
        ran = subprocess.run(
            self.inside(*self.as_admin(*arguments)), input=text, capture_output=True, text=True, check=False
        )
        if check and ran.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {ran.stderr.strip()}")
        return ran.stdout

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Creates or changes objects."""
        self.kubectl("apply", "-f", "-", text="\n---\n".join(map(json.dumps, objects)))

    def read(self, *arguments: str) -> Any:
        """Returns the objects that `kubectl get` finds."""
        return json.loads(self.kubectl("get", *arguments, "--output=json"))

    def _lay_out(self) -> None:
        """Makes the folder of the state anew, with the configuration files and certificates."""
        shutil.rmtree(self.state, ignore_errors=True)
        for name in (*_MOUNTS.values(), "bin", "cni", "etcd", "logs", "opt", "volumes"):
            (self.state / name).mkdir(parents=True)
        for name in _PROGRAMS:
            (self.state / "bin" / name).symlink_to(self._folder / "bin/kube")
        (self.state / "resolv.conf").write_text(f"nameserver {NODE_ADDRESS}\n")
        values = {"FOLDER": self._folder, "STATE": self.state, "NODE": NODE_ADDRESS}
        for source in ("containerd.toml", "kubelet.yaml", "cni.conflist"):
            text = (_FOLDER / source).read_text()
            for key, value in {**values, "CGROUP": _CGROUP}.items():
                text = text.replace(f"@{key}@", str(value))
            folder = self.state / "cni" if source == "cni.conflist" else self.state
            (folder / source).write_text(text)
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": self._audit}
        (self.state / "audit.json").write_text(json.dumps(policy))
        certificates = Certificates(self.state / "pki", _SERVER)
        names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
        addresses = [f"IP:{address}" for address in (NODE_ADDRESS, _SERVICE_ADDRESS, "127.0.0.1")]
        certificates.certificate(
            "apiserver", "kube-apiserver", addresses=(*addresses, *(f"DNS:{name}" for name in names))
        )
        certificates.certificate("service-accounts", "service-accounts")
        certificates.certificate("dns", "dns", "system:masters")
        certificates.kubeconfig("admin", "admin", "system:masters")
        certificates.kubeconfig("controller-manager", "system:kube-controller-manager")
        certificates.kubeconfig("scheduler", "system:kube-scheduler")
        certificates.kubeconfig("proxy", "system:kube-proxy")
        certificates.kubeconfig("kubelet-client", f"system:node:{NODE}", "system:nodes")
        certificates.certificate("kubelet", NODE, addresses=(f"DNS:{NODE}", f"IP:{NODE_ADDRESS}"))

    def _enter_namespaces(self) -> None:
        """Starts the first process of the namespaces; all others end with it, and it with this process."""
        steps = ["mount --make-rshared /"]
        for path, name in _MOUNTS.items():
            steps += [f"mount --bind '{self.state / name}' {path}", f"mount --make-rshared {path}"]
        steps += [
            "ip link set lo up",
            # A bridge is the node's network card: not all kernels have dummy devices.
            "ip link add node0 type bridge",
            f"ip addr add {NODE_ADDRESS}/24 dev node0",
            "ip link set node0 up",
            "ip route add default via 10.90.0.254 dev node0 onlink",
            f"touch '{self.state}/ready'",
            f"exec '{self._folder / 'bin/pause'}'",
        ]
        self._holder = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "--pid"),
                *("--fork", "--kill-child", "--mount-proc", "--propagation", "private"),
                *("sh", "-euc", "\n".join(steps)),
            ]
        )
        _wait_for((self.state / "ready").exists, "namespaces", self._holder)
        command = ["pgrep", "--parent", str(self._holder.pid)]
        self._init = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def _start(self, name: str, *command: str) -> None:
        """Starts a program in the namespaces; its log is in `logs/`."""
        with (self.state / "logs" / f"{name}.log").open("wb") as log:
            self._programs[name] = subprocess.Popen(
                self.inside(*command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for this process
            )

    def _start_containerd(self) -> None:
        self._start("containerd", "containerd", "--config", str(self.state / "containerd.toml"))
        self._wait_for_command("containerd", "ctr", "version")
        # An earlier cluster that was killed has left them.
        for name in self.run_inside("ctr", "-n", "k8s.io", "containers", "list", "-q").split():
            self.run_inside("ctr", "-n", "k8s.io", "containers", "rm", name)
        for image in sorted(self._folder.glob("images/*.tar")):
            print(f"kubernetes: importing {image.stem}", file=sys.stderr)
            self.run_inside("ctr", "-n", "k8s.io", "images", "import", str(image))
            image.unlink()

    def _start_control_plane(self) -> None:
        state, pki = self.state, self.state / "pki"
        self._start(
            "etcd",
            *("etcd", f"--data-dir={state / 'etcd'}", "--unsafe-no-fsync"),
            *("--listen-client-urls=http://127.0.0.1:2379", "--listen-peer-urls=http://127.0.0.1:2380"),
            "--advertise-client-urls=http://127.0.0.1:2379",
        )
        self._start(
            "kube-apiserver",
            *(str(state / "bin/kube-apiserver"), "--etcd-servers=http://127.0.0.1:2379"),
            "--feature-gates=WatchList=false",  # needs etcd 3.5
            *(f"--service-cluster-ip-range={_SERVICES}", f"--advertise-address={NODE_ADDRESS}"),
            *(f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key"),
            *(f"--client-ca-file={pki}/ca.crt", f"--cert-dir={pki}"),
            *("--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={pki}/service-accounts.crt",
            f"--service-account-signing-key-file={pki}/service-accounts.key",
            f"--kubelet-client-certificate={pki}/admin.crt",
            f"--kubelet-client-key={pki}/admin.key",
            *("--kubelet-preferred-address-types=InternalIP", "--allow-privileged=true"),
            *(f"--audit-policy-file={state}/audit.json", f"--audit-log-path={state}/audit.log"),
        )
        self._wait_for_command("kube-apiserver", *self.as_admin("get", "--raw=/readyz"))
        self._start(
            "kube-controller-manager",
            *(str(state / "bin/kube-controller-manager"), "--leader-elect=false"),
            *(f"--kubeconfig={pki}/controller-manager.kubeconfig", "--bind-address=127.0.0.1"),
            *(f"--root-ca-file={pki}/ca.crt", "--use-service-account-credentials=true"),
            f"--service-account-private-key-file={pki}/service-accounts.key",
            f"--cert-dir={pki}",
        )
        self._start(
            "kube-scheduler",
            *(str(state / "bin/kube-scheduler"), "--leader-elect=false", f"--cert-dir={pki}"),
            *(f"--kubeconfig={pki}/scheduler.kubeconfig", "--bind-address=127.0.0.1"),
        )

    def _start_node(self) -> None:
        state, pki = self.state, self.state / "pki"
        self._start(
            "kubelet",
            *(str(state / "bin/kubelet"), f"--config={state}/kubelet.yaml"),
            *(f"--kubeconfig={pki}/kubelet-client.kubeconfig", f"--hostname-override={NODE}"),
            f"--node-ip={NODE_ADDRESS}",
        )
        self._start(
            "kube-proxy",
            *(str(state / "bin/kube-proxy"), f"--kubeconfig={pki}/proxy.kubeconfig"),
            *(f"--hostname-override={NODE}", "--proxy-mode=iptables", f"--cluster-cidr={_PODS}"),
            "--masquerade-all",  # bridged answers would pass by iptables
            *("--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0"),
            "--conntrack-tcp-timeout-close-wait=0",
        )
        hosts, pid_file = state / "hosts", state / "dnsmasq.pid"
        hosts.touch()
        self._start(
            "dnsmasq",
            *("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root"),
            *("--no-resolv", "--no-hosts", f"--addn-hosts={hosts}", f"--pid-file={pid_file}"),
            *(f"--listen-address={NODE_ADDRESS}", "--bind-interfaces", "--local=/cluster.local/"),
            "--log-facility=-",
        )
        script = str(_FOLDER / "dns.py")
        self._start("dns", sys.executable, script, _SERVER, str(state / "pki"), str(hosts), str(pid_file))
        ready = ("wait", f"node/{NODE}", "--for=condition=Ready", "--timeout=2s")
        self._wait_for_command("kubelet", *self.as_admin(*ready))

    def as_admin(self, *arguments: str) -> list[str]:
        """Returns a command of kubectl, for the cluster's namespaces."""
        kubectl = str(self.state / "bin/kubectl")
        return [kubectl, f"--kubeconfig={self.state / 'pki/admin.kubeconfig'}", *arguments]

    def _wait_for_command(self, name: str, *command: str) -> None:
        """Waits until a command succeeds, which asks the program of that name."""

        def succeeds() -> bool:
            return not subprocess.run(self.inside(*command), capture_output=True, check=False).returncode

        _wait_for(succeeds, f"{name} ({self.state}/logs/{name}.log)", self._programs[name])

    def _end(self) -> None:
        """Ends all processes of the namespaces: first politely, then with the namespaces."""
        assert self._holder is not None
        with contextlib.suppress(RuntimeError):
            self.kubectl("delete", "namespaces", "--all", "--wait=false", check=False)
            self.kubectl("delete", "pods", "--all", "--all-namespaces", "--timeout=60s", check=False)
        for name in ("containerd", "etcd"):
            subprocess.run(self.inside("pkill", "-TERM", "-x", name), check=False, capture_output=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._programs["containerd"].wait(20)
        os.kill(int(self._init), signal.SIGTERM)  # its end is that of all others
        self._holder.wait()
        for program in self._programs.values():
            program.wait(30)


def _wait_for(is_true: Any, what: str, process: "subprocess.Popen[bytes]") -> None:
    """Waits until a function returns True."""
    deadline = time.monotonic() + START_SECS
    while not is_true():
        if process.poll() is not None:
            raise RuntimeError(f"The cluster's {what} ended with exit code {process.returncode}.")
        if time.monotonic() > deadline:
            raise RuntimeError(f"The cluster's {what} was not ready after {START_SECS} s.")
        time.sleep(0.5)


def main() -> None:
    """Runs a cluster until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), Cluster(folder) as cluster:
        kubectl = cluster.inside(*cluster.as_admin())
        print(" ".join(kubectl), flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
