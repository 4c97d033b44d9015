"""Certificates of a Kubernetes for tests, each signed by a separate certificate authority, with openssl."""

import json
import subprocess
from pathlib import Path

_DAYS = 30
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Certificates:
    """Certificates and kubeconfigs in a folder."""

    def __init__(self, folder: Path, server: str):
        folder.mkdir(mode=0o700)
        self.folder = folder
        self._server = server
        self.authority = folder / "ca.crt"
        # Python 3.13 refuses an authority without the second one.
        extensions = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign")
        options = (part for extension in extensions for part in ("-addext", extension))
        self._request("ca", "/CN=kubernetes-ca", *options)

    def certificate(
        self, name: str, user: str, group: str = "", addresses: tuple[str, ...] = ()
    ) -> tuple[Path, Path]:
        """Returns the files of a new certificate and of its key."""
        subject = f"/O={group}/CN={user}" if group else f"/CN={user}"
        extensions = ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=clientAuth,serverAuth"]
        if addresses:
            extensions.append(f"subjectAltName={','.join(addresses)}")
        options = ["-CA", str(self.authority), "-CAkey", str(self.folder / "ca.key")]
        for extension in extensions:
            options += ["-addext", extension]
        return self._request(name, subject, *options)

    def kubeconfig(self, name: str, user: str, group: str = "") -> Path:
        """Returns the file with which a program is that user; its certificate has the same name."""
        certificate, key = self.certificate(name, user, group)
        cluster = {"server": self._server, "certificate-authority": str(self.authority)}
        credentials = {"client-certificate": str(certificate), "client-key": str(key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": credentials}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(json.dumps(config))
        return path

    def _request(self, name: str, subject: str, *options: str) -> tuple[Path, Path]:
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        subprocess.run(
            [
                *("openssl", "req", "-x509", *_KEY, "-days", str(_DAYS), "-subj", subject),
                *("-keyout", str(key), "-out", str(certificate), *options),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        return certificate, key
