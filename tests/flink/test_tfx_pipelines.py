"""TFX pipelines of teams on a real Flink cluster, by `run --pipeline`."""

import time

import pytest

from tests.flink import runs
from tests.tfx_pipelines import projects

# Jobs of Flink: CsvExampleGen, StatisticsGen, Transform and Evaluator; CsvExampleGen and the team's own.
JOBS = {"taxi": 4, "bills": 2, "stock": 2}


def jobs(flink):
    return {job["id"]: job["status"] for job in flink.read("jobs")["jobs"]}


@pytest.mark.parametrize("name", projects.NAMES)
def test_a_pipeline_of_a_team_runs_on_flink_and_is_unchanged_afterwards(name, flink, tmp_path):
    root, before = tmp_path / "root", jobs(flink)
    projects.lay(name, tmp_path)
    command = (*projects.options(name, tmp_path), *runs.on_flink(flink))

    first = runs.finished(runs.start(tmp_path, root, *command), root)
    assert first["status"] == projects.STATUS[name]
    assert set(first["components"].values()) == {"finished"}
    projects.assert_made(name, tmp_path, root)
    made = {job: status for job, status in jobs(flink).items() if job not in before}
    assert len(made) >= JOBS[name]
    assert set(made.values()) == {"FINISHED"}

    second = runs.finished(runs.start(tmp_path, root, *command), root)
    print(first, second, sep="\n")
    projects.assert_unchanged(name, runs.record(root, second["run_id"]))
    assert len(jobs(flink).keys() - before.keys() - made.keys()) == len(projects.AGAIN[name])


def test_a_run_on_flink_that_was_killed_in_a_job_is_resumed(flink, tmp_path):
    root, before = tmp_path / "root", jobs(flink)
    projects.lay("taxi", tmp_path)
    command = (*projects.options("taxi", tmp_path), *runs.on_flink(flink))
    process = runs.start(tmp_path, root, *command)
    in_transform = running_job(flink, before, process, root / "artifacts", "ExampleValidator")
    process.kill()
    process.wait()
    (file,) = (root / "runs").glob("*.json")
    assert runs.record(root, file.stem)["status"] == "running"

    resumed = runs.finished(runs.start(tmp_path, root, "--resume", "--runner", "beam"), root)
    steps = runs.record(root, file.stem)["components"]
    print(jobs(flink)[in_transform], *steps, sep="\n")
    assert (resumed["run_id"], resumed["status"]) == (file.stem, "pushed")
    kept = {step["name"] for step in steps if step["reason"] == "it was finished when the run stopped"}
    assert kept == {"CsvExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator"}
    projects.assert_made("taxi", tmp_path, root)


def running_job(flink, before, process, artifacts, finished, secs=600):
    """Waits for a job with tasks that run, after a component has finished; returns its id."""
    end = time.monotonic() + secs
    while time.monotonic() < end:
        assert process.poll() is None, process.stderr.read()[-4000:]
        states = jobs(flink)
        if [*(artifacts / finished).glob("*/step.json")]:
            for job, status in states.items():
                if job not in before and status == "RUNNING":
                    return job
        time.sleep(0.1)
    raise TimeoutError(f"no job has begun after {finished}")
