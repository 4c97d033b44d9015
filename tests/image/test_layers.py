"""scripts/image/layers.py, with stand-ins for the engines."""

import json
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/image/layers.py"


def layers(tmp_path, engine, body):
    program = tmp_path / "bin" / engine
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return subprocess.run(
        [sys.executable, SCRIPT, engine, "mine"],
        env={"PATH": f"{program.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


def test_of_docker_from_the_first_to_the_last(tmp_path):
    history = "0B\\tUSER 1000\\n1.5kB\\tCOPY project /opt\\n3.07GB\\tCOPY venv /opt\\n130MB\\tbase\\n"
    assert layers(tmp_path, "docker", f"printf '{history}'") == [
        "    130.0 MB  base",
        "   3070.0 MB  COPY venv /opt",
        "      0.0 MB  COPY project /opt",
        "   3200.0 MB  mine",
    ]


def test_of_buildah_from_its_files(tmp_path):
    for kind, content in {
        "images/images.json": [{"id": "i1", "layer": "l3"}, {"id": "i0", "layer": "l1"}],
        "layers/layers.json": [
            {"id": "l3", "parent": "l2", "diff-size": 5_700_000},
            {"id": "l1", "diff-size": 257_000_000},
            {"id": "l2", "parent": "l1", "diff-size": 3_073_200_000},
        ],
    }.items():
        file = tmp_path / f"overlay-{kind}"
        file.parent.mkdir()
        file.write_text(json.dumps(content))
    info = {"store": {"GraphRoot": str(tmp_path), "GraphDriverName": "overlay"}}
    history = [
        {"created_by": "base"},
        {"created_by": "/bin/sh -c #(nop) COPY venv"},
        {"created_by": "ENV A=1", "empty_layer": True},
        {"created_by": "/bin/sh -c #(nop) COPY project"},
    ]
    inspected = {"FromImageID": "i1", "OCIv1": {"history": history}}
    (tmp_path / "info").write_text(json.dumps(info))
    (tmp_path / "inspect").write_text(json.dumps(inspected))
    assert layers(tmp_path, "buildah", f'cat "{tmp_path}/$1"') == [
        "    257.0 MB  base",
        "   3073.2 MB  COPY venv",
        "      5.7 MB  COPY project",
        "   3335.9 MB  mine",
    ]
