"""The dashboard and the alert rules of docs/monitoring, held against the metrics that a root has."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from pipelines.cli.app import app
from pipelines.root import Root
from tests.pipelines.run_records import make_record
from tests.pushed_versions import add_model

FOLDER = Path(__file__).parents[2] / "docs" / "monitoring"


@pytest.fixture
def exported(tmp_path, monkeypatch):
    """The names of the metrics of a root with a schedule, a run of it, and a version."""
    root = Root(tmp_path / "root")
    invoke = CliRunner().invoke
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("x,y\n1,0\n")
    create = "schedule create --data data.csv --label y --every 6h --name nightly --root root"
    assert invoke(app, create.split()).exit_code == 0
    record = make_record(
        name="data",
        finished="2026-01-02T03:05:05+00:00",
        version="7",
        metrics={"auc": 0.75},
        scheduled_by="nightly/20260102T030405Z",
    )
    root.records.write(record)
    add_model(root.serving / "7")
    text = invoke(app, ["schedule", "metrics", "--root", "root"]).stdout
    families = text_string_to_metric_families(text)
    return {f"{family.name}_total" if family.type == "counter" else family.name for family in families}


def expressions():
    """Returns the PromQL of both files."""
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    variables = [item["definition"] for item in dashboard["templating"]["list"][1:]]
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    assert len(group["rules"]) == 6
    return [*(target["expr"] for target in targets), *variables, *(rule["expr"] for rule in group["rules"])]


def test_every_metric_is_one_that_a_root_exports(exported):
    used = set(re.findall(r"estimator_pipelines_\w+", " ".join(expressions())))
    assert len(used) > 15
    assert used <= exported


def test_the_panels_of_the_dashboard_lie_beside_and_below_each_other():
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for position in (panel["gridPos"] for panel in panels)
        for x in range(position["x"], position["x"] + position["w"])
        for y in range(position["y"], position["y"] + position["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23  # Grafana has 24 columns


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool comes with Prometheus")
def test_the_alerts_fire_when_they_should():
    cases = Path(__file__).with_name("alerts_test.yml")
    for arguments in (["check", "rules", FOLDER / "alerts.yml"], ["test", "rules", cases]):
        result = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
