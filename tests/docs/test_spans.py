"""The page on spans shows the real output of the commands, and its configuration is a valid one."""

import json
import re
import shlex
import subprocess
import sys

import pytest

from pipelines.config.load import load_config
from pipelines.data.spans import describe_spans
from tests.docs.markdown import ROOT, read

PAGE = read("docs/spans.md")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
SH, OUTPUT = ([text for name, text in BLOCKS if name == kind] for kind in ("sh", ""))
MAKE, PLAN = SH[0].split("done\n")
RUN, RUNS = SH[1].splitlines()


@pytest.fixture
def trips(tmp_path):
    """The folder in which the loop of the page has made three spans."""
    commands = MAKE.replace("python", shlex.quote(sys.executable)) + "done\n"
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    subprocess.run(["bash", "-ec", commands], cwd=tmp_path, env=environment, check=True)
    return tmp_path


def arguments(command):
    """Returns the words after `estimator-pipelines`."""
    words = shlex.split(command)
    assert words[0] == "estimator-pipelines"
    return words[1:]


def test_the_configuration_is_valid_and_so_are_the_other_forms(tmp_path):
    file = tmp_path / "trips.toml"
    file.write_text(re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1])
    assert load_config(file).data.spans == "last 2"
    forms = re.search(r"\| `data\.spans` \| reads \|\n\|---\|---\|\n(.*?)\n\n", PAGE, re.DOTALL)[1]
    selections = re.findall(r'`"([^"]+)"`', forms)
    assert len(selections) == 9
    for spans in selections:
        path = "{YYYY}-{MM}-{DD}.csv" if "2026" in spans else "{SPAN:4}.csv"
        load_config(data=path, label="y", settings=[f"data.spans={spans}"])


def test_the_plan_says_what_is_shown(trips, warm_command):
    result = warm_command(*arguments(PLAN), cwd=trips)
    assert result.returncode == 0
    assert result.stdout.startswith(OUTPUT[0])
    assert sorted(path.name for path in trips.iterdir()) == ["trips"]


@pytest.mark.slow
def test_the_run_says_what_is_shown(trips, warm_command):
    result = warm_command(*arguments(RUN), cwd=trips)
    assert result.returncode == 0
    assert OUTPUT[1] in result.stderr
    line = json.loads(result.stdout.splitlines()[-1])
    assert (line["status"], describe_spans(line["spans"])) == ("pushed", "2..3 (version 1)")
    assert "2..3 (version 1)" in warm_command(*arguments(RUNS), cwd=trips).stdout
