import json
import subprocess
import sys

from typer.testing import CliRunner

from pipelines.cli.app import app
from pipelines.root import Root
from pipelines.root.records import RunRecord
from tests.pushed_versions import add_model


def write(root):
    record = RunRecord(
        run_id="r1", name="a", status="pushed", started="2026-01-01T00:00:00+00:00",
        config={"data": {"path": "d.csv"}}, data_fingerprint="1", log="", version="7",
        spans=({"span": 3, "version": None, "num_files": 1},),
    )  # fmt: skip
    Root(root).records.write(record)
    add_model(root / "serving" / "7")


def test_text_json_and_refusals(tmp_path):
    write(tmp_path)
    runner = CliRunner()
    result = runner.invoke(app, ["lineage", "--root", str(tmp_path)])
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "version 7 (serving)")
    result = runner.invoke(app, ["lineage", "--span", "3", "--json", "--root", str(tmp_path)])
    assert [one["run_id"] for one in json.loads(result.stdout)] == ["r1"]
    for arguments in (["8"], ["7", "--span", "3"], ["--span", "9"]):
        result = runner.invoke(app, ["lineage", *arguments, "--root", str(tmp_path)])
        assert (result.exit_code, result.stdout) == (2, "")


def test_it_imports_nothing_heavy(tmp_path):
    write(tmp_path)
    script = f"""
import sys
from pipelines.cli.app import app
app(["lineage", "--root", {str(tmp_path)!r}], standalone_mode=False)
heavy = ("tensorflow", "tfx", "pandas", "numpy", "matplotlib", "jinja2", "apache_beam")
print([name for name in heavy if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
