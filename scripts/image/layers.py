"""Prints the layers of an image with their sizes, from the first to the last.

Usage: python3 scripts/image/layers.py ENGINE IMAGE        ENGINE is docker, podman or buildah

A size is the sum of the files that the layer adds, uncompressed, in megabytes of 10^6 bytes.
"""

import json
import pathlib
import re
import subprocess
import sys

_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def main(engine, image):
    """Prints a table of the layers, and their sum."""
    layers = (_of_buildah if engine == "buildah" else _of_history)(engine, image)
    for size, made_by in layers:
        print(f"{size / 1e6:9.1f} MB  {_in_short(made_by)}")
    print(f"{sum(size for size, _ in layers) / 1e6:9.1f} MB  {image}")


def _of_history(engine, image):
    """Returns (bytes, instruction) of each layer, from docker or podman."""
    output = _output(engine, "history", "--no-trunc", "--format", "{{.Size}}\t{{.CreatedBy}}", image)
    layers = []
    for line in reversed(output.splitlines()):
        size, made_by = line.split("\t", 1)
        number, unit = re.fullmatch(r"([\d.]+) ?(\w+)", size).groups()
        layers.append((float(number) * _UNITS[unit], made_by))
    return [layer for layer in layers if layer[0] > 0]


def _of_buildah(engine, image):
    """Returns (bytes, instruction) of each layer, from buildah's files."""
    info = json.loads(_output(engine, "info"))
    root = pathlib.Path(info["store"]["GraphRoot"])
    driver = info["store"]["GraphDriverName"]
    image_id = json.loads(_output(engine, "inspect", "--type", "image", image))["FromImageID"]
    images = json.loads((root / f"{driver}-images/images.json").read_text())
    by_id = {layer["id"]: layer for layer in json.loads((root / f"{driver}-layers/layers.json").read_text())}
    (layer_id,) = (entry["layer"] for entry in images if entry["id"] == image_id)
    sizes = []
    while layer_id:
        sizes.append(by_id[layer_id].get("diff-size", 0))
        layer_id = by_id[layer_id].get("parent")
    history = json.loads(_output(engine, "inspect", "--type", "image", image))["OCIv1"]["history"]
    made_by = [entry.get("created_by", "") for entry in history if not entry.get("empty_layer")]
    # An instruction that changed no file may still be a layer of no bytes in the history.
    layers = list(zip(reversed(sizes), made_by, strict=True))
    return [layer for layer in layers if layer[0] > 10_000]


def _in_short(made_by):
    words = " ".join(re.sub(r"--mount=\S+|\|\d+ ?|/bin/sh -c (#\(nop\))?", "", made_by).split())
    return words[:90] + ("..." if len(words) > 90 else "")


def _output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
