import json

import pandas
import pytest

from pipelines.serving.request_files import RequestSample, SampleLimits
from tests.pipelines import sum_models


@pytest.fixture
def root(push):
    """A root with 200 requests, all from Moss; the training data were from Oslo."""
    root = push("classifier", 5)
    frame = pandas.DataFrame({"x": [float(x) for x in range(200)], "city": ["Oslo"] * 200})
    sum_models.keep_statistics(root, 5, frame)
    sample = RequestSample(root / "requests", SampleLimits(1.0), lambda: 1_000.0)
    cells = {"x": [float(x) for x in range(200)], "city": [b"Moss"] * 200}
    sample.add(5, cells, 200)
    sample.write()
    return root


def test_columns_that_have_drifted_are_named_and_json_has_every_measure(warm_command, root):
    result = warm_command("requests", "--root", root)
    assert result.returncode == 0
    *_, last = result.stdout.splitlines()
    assert last == "200 rows of requests to version 5. Columns that have drifted: city."
    assert "'Moss' was 0 % of the values, now 100 %" in result.stdout
    first, *others = measures = json.loads(warm_command("requests", "--root", root, "--json").stdout)
    excess = [one["value"] - max(one["limit"], one["by_chance"]) for one in measures]
    assert excess == sorted(excess, reverse=True)
    text = first.pop("text")
    assert first.pop("by_chance") < 1
    assert first == {
        "column": "city", "measure": "l_infinity", "value": 1.0, "limit": 0.1, "drifted": True
    }  # fmt: skip
    assert text == "'Moss' was 0 % of the values, now 100 %"
    assert [one["drifted"] for one in others] == [False] * 3


@pytest.mark.parametrize(
    ("version", "message"),
    [("5", "There are no requests to version 5 in "), ("4", "There is no version 4 in ")],
)
def test_without_requests_it_says_how_to_keep_some(warm_command, push, version, message):
    result = warm_command("requests", "--root", push("regressor", 5), "--version", version)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(message)


def test_few_rows_are_not_judged(warm_command, push):
    root = push("classifier", 5)
    sample = RequestSample(root / "requests", SampleLimits(1.0), lambda: 1_000.0)
    sample.add(5, {"x": [1.0] * 99}, 99)
    sample.write()
    result = warm_command("requests", "--root", root)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Requests to version 5 in" in result.stderr
    assert "too few to compare distributions (at least 100 are needed)" in result.stderr
