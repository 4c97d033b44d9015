"""Names of a Kubernetes for tests, in place of CoreDNS: writes services and pods into a file of dnsmasq.

python3 dns.py SERVER FOLDER HOSTS PID_FILE     FOLDER has ca.crt, dns.crt and dns.key
"""

import json
import os
import signal
import ssl
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_DOMAIN = "svc.cluster.local"
_LOOK_EVERY_SECS = 1.0


def hosts(services: list[Any], slices: list[Any]) -> Iterator[str]:
    """Yields the lines of a hosts file: services with an address, and the pods of those without one."""
    headless = set()
    for service in services:
        metadata, address = service["metadata"], service["spec"].get("clusterIP")
        if address == "None":
            headless.add((metadata["namespace"], metadata["name"]))
        elif address:
            yield f"{address} {metadata['name']}.{metadata['namespace']}.{_DOMAIN}"
    for slice_ in slices:
        metadata = slice_["metadata"]
        name = metadata.get("labels", {}).get("kubernetes.io/service-name")
        if (metadata["namespace"], name) not in headless:
            continue
        domain = f"{name}.{metadata['namespace']}.{_DOMAIN}"
        for endpoint in slice_.get("endpoints") or ():
            for address in endpoint["addresses"]:
                yield f"{address} {domain}"
                if endpoint.get("hostname"):
                    yield f"{address} {endpoint['hostname']}.{domain}"


def follow(listed: Callable[[str], list[Any]], file: Path, reload: Callable[[], None]) -> None:
    """Keeps the file up to date for ever."""
    last = ""
    while True:
        try:
            services = listed("/api/v1/services")
            text = "\n".join(sorted(hosts(services, listed("/apis/discovery.k8s.io/v1/endpointslices"))))
            if text != last:
                draft = file.with_suffix(".draft")
                draft.write_text(text + "\n")
                draft.replace(file)
                reload()
                last = text
        except OSError as error:  # the API server or dnsmasq is not there yet
            print(error, flush=True)
        time.sleep(_LOOK_EVERY_SECS)


def main(server: str, folder: str, file: str, pid_file: str) -> None:
    """Follows the API server; the pid file is dnsmasq's."""
    context = ssl.create_default_context(cafile=f"{folder}/ca.crt")
    context.load_cert_chain(f"{folder}/dns.crt", f"{folder}/dns.key")

    def listed(path: str) -> list[Any]:
        with urllib.request.urlopen(server + path, context=context, timeout=30) as answer:
            return list(json.load(answer)["items"])

    def reload() -> None:
        os.kill(int(Path(pid_file).read_text()), signal.SIGHUP)

    follow(listed, Path(file), reload)


if __name__ == "__main__":
    main(*sys.argv[1:])
