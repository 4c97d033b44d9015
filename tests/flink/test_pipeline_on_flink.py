"""The demo's pipeline on a real Flink cluster has the same results as in one process."""

import json
import time

import numpy as np
import pytest

from pipelines.examples.taxi import generate
from tests.flink import runs

SPLITS = ("train", "eval")
BEAM_COMPONENTS = ("CsvExampleGen", "StatisticsGen", "Transform", "Evaluator")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    generate.write_csv(folder / "taxi.csv", 3000, 2)
    return runs.Project(folder)


@pytest.fixture(scope="module")
def local(project):
    """The root of a run in one process."""
    root = project.folder / "local"
    assert set(project.run(root)["components"].values()) == {"finished"}
    return root


@pytest.fixture(scope="module")
def remote(project, flink):
    """The root of a run on Flink by the guide's command, and the run."""
    root = project.folder / "remote"
    return root, project.run(root, *runs.guide_arguments(flink))


def test_everything_runs_on_the_cluster(remote, flink):
    _, line = remote
    assert line["status"] == "pushed"
    assert set(line["components"].values()) == {"finished"}
    states = [job["status"] for job in flink.read("jobs")["jobs"]]
    assert len(states) >= len(BEAM_COMPONENTS)
    assert set(states) == {"FINISHED"}


@pytest.mark.parametrize(
    ("component", "output"), [("CsvExampleGen", "examples"), ("Transform", "transformed_examples")]
)
def test_the_files_of_examples_are_the_same(local, remote, component, output):
    expected = runs.files(local, component, output)
    assert len({name.partition("/")[0] for name in expected}) == len(SPLITS)
    assert sum(map(len, expected.values())) > 30_000
    assert runs.files(remote[0], component, output) == expected


@pytest.mark.parametrize("split", SPLITS)
def test_the_statistics_are_the_same(local, remote, split):
    expected, actual = runs.statistics(local, split), runs.statistics(remote[0], split)
    assert actual.keys() == expected.keys()
    assert len(expected) > 1000
    for path, value in expected.items():
        if isinstance(value, float):
            assert actual[path] == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True), path
        else:
            assert actual[path] == value, path


def test_the_transform_graph_is_the_same(local, remote):
    assert_same_graph(graph(local), graph(remote[0]))


def graph(root):
    return runs.assets(root), runs.constants(root)


def assert_same_graph(graph, other):
    (vocabularies, expected), (others, actual) = graph, other
    assert others == vocabularies
    assert actual.keys() == expected.keys()
    assert len(expected) > 5
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)


def test_the_models_metrics_are_the_same(local, remote):
    """The one trained and evaluated with everything on Flink, the other without it."""
    (record,) = (local / "runs").glob("*.json")
    expected = json.loads(record.read_text())["metrics"]
    assert len(expected) >= 5
    assert remote[1]["metrics"].keys() == expected.keys()
    for name, value in expected.items():
        assert remote[1]["metrics"][name] == pytest.approx(value, rel=1e-6, abs=1e-6), name


@pytest.fixture(scope="module")
def after_a_kill(project, local, flink):
    """A run on Flink in the root of the local one, with other code, whose task manager was killed."""
    with project.module.open("a") as module:
        module.write("\nTHE_CODE_HAS_CHANGED = True\n")
    before = {job["id"] for job in flink.read("jobs")["jobs"]}
    expected = graph(local)
    process = project.start(local, *runs.on_flink(flink))
    job = first_running_job(flink, before, process)
    flink.kill_task_manager()
    flink.add_task_manager()
    return runs.finished(process, local), job, expected


def first_running_job(flink, before, process, secs=600):
    """Waits until a new job has tasks that run, and returns its id."""
    end = time.monotonic() + secs
    while time.monotonic() < end:
        assert process.poll() is None, process.stderr.read()[-4000:]
        for job in flink.read("jobs")["jobs"]:
            if job["id"] not in before and job["status"] == "RUNNING":
                states = [part["status"] for part in flink.read(f"jobs/{job['id']}")["vertices"]]
                # The first steps are over, others read their outputs.
                if "FINISHED" in states and "RUNNING" in states:
                    return job["id"]
        time.sleep(0.1)
    raise TimeoutError("no job has begun")


def test_a_run_on_flink_takes_what_a_local_one_made_from_the_cache(after_a_kill):
    line, *_ = after_a_kill
    cached = {name for name, state in line["components"].items() if state == "cached"}
    assert cached >= {"CsvExampleGen", "StatisticsGen", "SchemaGen"}
    assert line["components"]["Transform"] == line["components"]["Evaluator"] == "finished"


def test_a_run_ends_right_though_a_task_manager_was_killed_in_transform(after_a_kill, local, flink):
    line, job, expected = after_a_kill
    assert line["status"] in ("pushed", "not_blessed")  # as good a model as the first one, or a bit worse
    read = flink.read(f"jobs/{job}")
    assert read["state"] == "FINISHED"
    assert read["timestamps"]["RESTARTING"] > 0
    assert_same_graph(expected, graph(local))


def test_the_metrics_are_the_same(project, local, after_a_kill):
    """The same model, evaluated on Flink and then in one process, with a slice more."""
    on_flink, *_ = after_a_kill
    here = project.run(local, "--set", 'evaluator.slices=[[], ["payment_type"]]')
    assert here["components"]["Trainer"] == "cached"
    assert here["components"]["Evaluator"] == "finished"
    assert here["metrics"].keys() == on_flink["metrics"].keys()
    for name, value in on_flink["metrics"].items():
        assert here["metrics"][name] == pytest.approx(value, rel=1e-6, abs=1e-6), name
    # Other checks are against the live model, which has changed since then.
    expected, actual = (trivial_checks(line) for line in (on_flink, here))
    assert actual.keys() == expected.keys()
    assert len(expected) >= 2
    for metric, check in expected.items():
        assert actual[metric]["passed"] == check["passed"]
        for key in ("value", "low", "high"):
            assert actual[metric][key] == pytest.approx(check[key], rel=1e-6), (metric, key)


def trivial_checks(line):
    return {check["metric"]: check for check in line["checks"] if check["against"] == "trivial"}
