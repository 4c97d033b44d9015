"""The demo's pipeline on Spark has the same results as in one process."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from pipelines.examples.taxi import generate
from tests.flink import runs

SPLITS = ("train", "eval")
GUIDE = Path(__file__).parents[2] / "docs" / "beam-engines.md"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    generate.write_csv(folder / "taxi.csv", 1500, 2)
    return runs.Project(folder)


@pytest.fixture(scope="module")
def local(project):
    """The root of a run in one process, and the run."""
    root = project.folder / "local"
    return root, project.run(root)


@pytest.fixture(scope="module")
def remote(project, spark):
    """The root of a run on Spark by the guide's command, and the run."""
    guide = GUIDE.read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^ *estimator-pipelines run (.*beam.spark.*)$", guide, re.MULTILINE)
    line = line.replace("--config taxi.toml --root pipeline_root", "")
    line = line.replace(".spark/job-server.jar", str(spark))
    root = project.folder / "remote"
    return root, project.run(root, *shlex.split(line))


def test_everything_runs_on_spark(local, remote):
    root, line = remote
    assert line["status"] == local[1]["status"] == "pushed"
    assert set(line["components"].values()) == {"finished"}
    said = (root / "beam" / "job_server.log").read_text(errors="replace")
    started = re.findall(r"Running job (\S+) on Spark master (\S+)", said)
    assert len({job for job, _ in started}) >= 4  # one for each component that works with Beam
    assert {master for _, master in started} == {"local[2]"}


@pytest.mark.parametrize(
    ("component", "output"), [("CsvExampleGen", "examples"), ("Transform", "transformed_examples")]
)
def test_the_files_of_examples_are_the_same(local, remote, component, output):
    expected = runs.files(local[0], component, output)
    assert len({name.partition("/")[0] for name in expected}) == len(SPLITS)
    assert sum(map(len, expected.values())) > 15_000
    assert runs.files(remote[0], component, output) == expected


@pytest.mark.parametrize("split", SPLITS)
def test_the_statistics_are_the_same(local, remote, split):
    expected, actual = runs.statistics(local[0], split), runs.statistics(remote[0], split)
    assert actual.keys() == expected.keys()
    assert len(expected) > 1000
    for path, value in expected.items():
        if isinstance(value, float):
            assert actual[path] == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True), path
        else:
            assert actual[path] == value, path


def test_the_transform_graph_is_the_same(local, remote):
    assert runs.assets(remote[0]) == runs.assets(local[0])
    expected, actual = runs.constants(local[0]), runs.constants(remote[0])
    assert actual.keys() == expected.keys()
    assert len(expected) > 5
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)


def test_the_models_metrics_are_the_same(local, remote):
    expected, actual = local[1]["metrics"], remote[1]["metrics"]
    assert len(expected) >= 5
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        assert actual[name] == pytest.approx(value, rel=1e-6, abs=1e-6), name
