"""Runs the commands of the pages on reports, retention and the cache on one root."""

import json
import re

import pytest

from tests.docs.markdown import commands, inline_code, read
from tests.pipelines.runs.retention.conftest import RootOfRuns

SPANS = tuple({"span": number, "version": None, "num_files": 1} for number in (6, 7))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with `pipeline_root`: four runs with their files and steps, two versions."""
    folder = tmp_path_factory.mktemp("root_commands")
    root = RootOfRuns(folder / "pipeline_root")
    root.config = {**root.config, "retention": {"artifacts": 2, "runs": 3}}
    root.add_run(70, status="not_blessed", spans=SPANS[:1])
    root.add_run(60, version=7, spans=SPANS[1:], metrics={"auc": 0.75})
    root.add_run(50, version=12, spans=SPANS, metrics={"auc": 0.78}, baseline_version="7")
    root.add_run(40, status="not_blessed", spans=SPANS[1:], reason="auc is worse")
    return folder


def run_ids(folder):
    return sorted(file.stem for file in (folder / "pipeline_root" / "runs").glob("*.json"))


def test_the_commands_on_reports(folder, warm_command):
    ids = run_ids(folder)
    put_in = {"20260131-030000": ids[1], "A": "7", "B": ids[2]}
    said = {}
    for words in commands(read("docs/reports.md")):
        assert words[0] == "estimator-pipelines"
        arguments = [put_in.get(word, word) for word in words[1:]]
        done = warm_command(*arguments, cwd=folder)
        assert done.returncode == 0, (words, done.stderr[-2_000:])
        said[" ".join(words[1:])] = done.stdout
    newest, report, index, compared, serving, of_span = said.values()
    assert newest.strip() == str(folder / "pipeline_root" / "runs" / f"{ids[-1]}.html")
    assert report.strip() == "page.html"
    assert f"run {ids[1]}" in (folder / "page.html").read_text()
    assert index.strip().endswith("pipeline_root/runs/index.html")
    assert ids[0] in (folder / "pipeline_root" / "runs" / "index.html").read_text()
    assert "0.78" in compared
    assert serving.startswith("version 12 (serving)")
    assert re.findall(r"run {8}(\S+)", of_span) == ids[1:]


def test_the_commands_on_retention(folder, warm_command):
    before = run_ids(folder)
    dry, real, other = commands(read("docs/retention.md"))
    assert dry == [*real, "--dry-run"]
    for words, counted in ((dry, "would remove"), (real, "removed"), (other, "removed")):
        done = warm_command(*words[1:], cwd=folder)
        assert done.returncode == 0, done.stderr[-2_000:]
        assert done.stdout.splitlines()[-1].startswith(counted)
        assert run_ids(folder) == (before if words == dry else before[1:])
    # As on the page, one line is left of a removed run.
    (line,) = (folder / "pipeline_root" / "runs" / "pruned.jsonl").read_text().splitlines()
    assert json.loads(line)["run_id"] == before[0]
    assert len(line) < 300


def test_the_command_on_the_cache(folder, warm_command):
    assert "run --resume" in inline_code(read("docs/cache.md"))
    done = warm_command("run", "--resume", cwd=folder)
    assert done.returncode == 2
    assert f"its newest run {run_ids(folder)[-1]} has ended (not_blessed)" in done.stderr
