import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.root import Root

ROOT = Root(Path("/data/taxi"))


def test_the_folders_of_a_root_have_their_paths():
    found = {
        "runs": ROOT.runs, "runs/index.html": ROOT.index, "runs/openlineage.jsonl": ROOT.openlineage,
        "runs/details": ROOT.run_details, "runs/r1.json": ROOT.records.file("r1"),
        "runs/r1.html": ROOT.report("r1"), "runs/details/r1": ROOT.details("r1").folder, "logs": ROOT.logs,
        "logs/r1.log": ROOT.log("r1"), "serving": ROOT.serving, "withdrawn": ROOT.withdrawn,
        "artifacts": ROOT.artifacts, "data": ROOT.data, "schema/schema.pbtxt": ROOT.schema.file,
        "schedules": ROOT.schedules, "beam": ROOT.beam, "kept": ROOT.kept,
        "kept/r1/model": ROOT.kept_artifact("r1", "model"), "requests": ROOT.requests,
        "kubeflow": ROOT.kubeflow, "kubeflow_local": ROOT.local_kubeflow,
    }  # fmt: skip
    assert {name: str(path) for name, path in found.items()} == {name: f"/data/taxi/{name}" for name in found}


def test_it_is_its_absolute_path_in_messages_and_a_value(tmp_path, monkeypatch):
    root = Root(tmp_path)
    assert (f"{root}", os.fspath(root)) == (str(tmp_path), str(tmp_path))
    assert os.path.isdir(root)
    assert (tmp_path / "logs").relative_to(root) == Path("logs")
    assert (tmp_path / "logs").is_relative_to(root)
    monkeypatch.chdir(tmp_path)
    assert Root(Path("root")) == Root(tmp_path / "root")
    assert Root(Path("root")).log("r1") == tmp_path / "root" / "logs" / "r1.log"
    assert {Root(tmp_path), Root(tmp_path)} == {Root(tmp_path)}
    with pytest.raises(AttributeError):
        Root(tmp_path).path = Path("/")


def test_looking_makes_no_folder(tmp_path):
    root = Root(tmp_path / "root")
    assert root.records.read_all() == root.pruned.read_all() == root.versions.served() == []
    assert (root.schema.read(), root.versions.serving(), root.versions.origin()) == (None, None, None)
    assert not root.lock.is_held()
    assert not root.path.exists()


def test_the_version_before_a_run_is_not_the_one_that_it_pushed(tmp_path):
    from tests.pushed_versions import serve_version

    versions = Root(tmp_path).versions
    assert versions.served_before("run-1") is None
    for version, run_id in ((5, "run-1"), (70, "run-2")):
        serve_version(tmp_path / "serving", version, run_id)
    found = [versions.served_before(run_id) for run_id in ("run-1", "run-2", "run-3")]
    assert found == ["70", "5", "70"]
    assert [(version, origin.pipeline_run_id) for version, origin in versions.origins()] == [
        (5, "run-1"),
        (70, "run-2"),
    ]


def test_the_module_of_the_root_loads_nothing_heavy():
    program = "import sys\nfrom pipelines.root import Root\nprint('pydantic' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"
