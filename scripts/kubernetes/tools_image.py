"""Writes an image with kubectl and the container that holds a pod's namespaces, as `docker save` does.

python3 tools_image.py PROGRAMS FILE.tar     PROGRAMS is the folder with kube and pause
"""

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path

NAME = "localhost/kubernetes-tools:test"


def write_image(programs: Path, file: Path) -> None:
    """Writes the image."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as layer:
        layer.add(programs / "pause", "pause", filter=_of_everyone)
        layer.add(programs / "kube", "kubectl", filter=_of_everyone)
    digest = hashlib.sha256(packed.getvalue()).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"User": "1000:1000", "Entrypoint": ["/pause"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    with tarfile.open(file, "w") as archive:
        for name, content in (
            ("config.json", json.dumps(config).encode()),
            ("layer.tar", packed.getvalue()),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def _of_everyone(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mode, entry.uid, entry.gid = 0o755, 0, 0
    return entry


if __name__ == "__main__":
    write_image(*map(Path, sys.argv[1:]))
