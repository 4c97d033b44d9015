"""The CronJob that `schedule manifest --kind kubernetes` prints, applied as it is."""

import contextlib
import datetime
import itertools
import json
import os
import time

import pytest
import yaml

from pipelines.config.pod_spec import restricted
from tests.kubernetes.namespace import CLAIM, IMAGE, MOUNT, USER, inside
from tests.tfx_pipelines import projects

NAME = "pipelines-nightly"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
TEAM = f"""
[kubeflow]
image = "{IMAGE}"
[[kubeflow.volumes]]
claim = "{CLAIM}"
path = "{MOUNT}"
[pipeline]
file = "pipeline.py"
[pipeline.arguments]
"""


@contextlib.contextmanager
def cron_job(demo, name, *create, folder=""):
    """A schedule in a new root, and its CronJob, which is suspended; it looks every minute.

    `name` is that of the schedule and of the root, `create` are options of `schedule create`, and the runs
    work in `folder` of the volume.
    """
    root = ("--root", inside(name))
    command = ("env", "-C", inside(folder), "python", "-m", "estimator_pipelines", "schedule")
    demo.run(f"create-{name}", *command, "create", *create, "--name", name, *root)
    text = demo.run(
        f"manifest-{name}", *(*command, "manifest", "--kind", "kubernetes", "--cron", "* * * * *", *root)
    )
    manifest = yaml.safe_load(text)
    assert manifest["metadata"]["name"] == f"pipelines-{name}"
    manifest["spec"]["suspend"] = True
    demo.apply(manifest)
    yield demo
    demo.kubectl(*("delete", "cronjob", f"pipelines-{name}", "--cascade=foreground", "--timeout=180s"))


@pytest.fixture(scope="module")
def schedule(demo):
    create = ("--config", inside("taxi.toml"), "--cron", "*/2 * * * *", "--grace", "10m")
    with cron_job(demo, "nightly", *create):
        yield demo


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", projects.NAMES)
def test_a_tfx_pipeline_of_a_team_runs_and_is_unchanged_at_the_next_time(demo, name):
    folder, root = demo.volume / "teams" / name, demo.volume / name
    projects.lay(name, folder)
    arguments = projects.arguments(name, inside(f"teams/{name}")).items()
    lines = (f'{key} = "{value}"\n' for key, value in arguments)
    (folder / "team.toml").write_text(TEAM + "".join(lines))
    for path in (folder, *folder.rglob("*")):
        os.chown(path, USER, USER)

    def ended_runs():
        files = sorted((root / "runs").glob("*.json"))
        runs = [json.loads(file.read_text()) for file in files]
        return [run for run in runs if run["status"] != "running"]

    create = ("--config", "team.toml", "--every", "2m")
    with cron_job(demo, name, *create, folder=folder.relative_to(demo.volume)):
        suspend(demo, False, name=f"pipelines-{name}")
        demo.wait_for(lambda: len(ended_runs()) > 1, "there are no two runs", 1200)
        suspend(demo, True, name=f"pipelines-{name}")
        print(demo.kubectl("get", "jobs,pods"))
        runs = ended_runs()[:2]
        for run in runs:
            print(run["run_id"], run["status"], run["reason"])
            for step in run["components"]:
                print("  ", step["name"], step["status"], step["reason"])
        assert runs[0]["status"] == projects.STATUS[name]
        projects.assert_unchanged(name, runs[1])
        assert len({run["scheduled_by"] for run in runs}) == 2
        projects.assert_made(name, folder, root)


def suspend(demo, is_suspended, name=NAME, **changes):
    spec = {"suspend": is_suspended, **changes}
    demo.kubectl("patch", "cronjob", name, "--patch", yaml.safe_dump({"spec": spec}))


def jobs(demo):
    """Returns the jobs of the CronJob by the time for which each was started."""
    return {
        datetime.datetime.fromisoformat(job["metadata"]["annotations"][SCHEDULED]): job
        for job in demo.read("jobs")["items"]
        if SCHEDULED in job["metadata"].get("annotations", {})
    }


def wait_until_second(second):
    time.sleep((second - time.time()) % 60)


def listed(demo, name):
    """Returns the lines of `schedule list`."""
    return demo.run(
        name, *("python", "-m", "estimator_pipelines", "schedule", "list"), *("--root", inside("nightly"))
    )


@pytest.mark.timeout(3600)
def test_what_is_due_runs_and_one_job_at_a_time(schedule):
    suspend(schedule, False)
    seen = {}  # the CronJob keeps its last job only

    def is_active():
        active = schedule.read("cronjob", NAME)["status"].get("active")
        seen.update(jobs(schedule))  # after it: a job that is no longer active has its end
        return active

    (first,) = schedule.wait_for(is_active, "no job was started", 200)
    pods = f"batch.kubernetes.io/job-name={first['name']}"
    (pod,) = schedule.wait_for(lambda: schedule.pods(pods), "the job has no pod")
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"] == restricted()
    # The run takes longer than the minute to the next job, which is not started while it runs.
    most = 0
    while (active := is_active()) and active[0]["uid"] == first["uid"]:
        most = max(most, len(active))
        time.sleep(2)
    assert most == 1
    schedule.wait_for(lambda: is_active() or len(seen) > 1, "no job follows", 100)
    suspend(schedule, True)
    # The first tick may not have been due yet when the first job looked.
    schedule.wait_for(lambda: not is_active(), "a job does not end", 1500)
    # The first job has pushed; the next one has found nothing new if a time was due since then.
    (_,) = (schedule.volume / "nightly/serving").glob("*/saved_model.pb")
    listed(schedule, "list-due")
    spans = sorted((job["status"]["startTime"], job["status"]["completionTime"]) for job in seen.values())
    print(spans)
    assert len(spans) > 1
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


@pytest.mark.timeout(1800)
def test_times_that_were_missed_are_made_up_for_once(schedule):
    suspend(schedule, True)
    before = set(jobs(schedule))
    wait_until_second(30)
    time.sleep(120)  # two times pass
    suspend(schedule, False)
    schedule.wait_for(lambda: set(jobs(schedule)) - before, "the missed time was not made up for", 25)
    suspend(schedule, True)
    (made,) = set(jobs(schedule)) - before
    now = datetime.datetime.now(datetime.timezone.utc)
    assert (now - made).total_seconds() < 60 + 30  # it is the last one
    schedule.wait_for(
        lambda: jobs(schedule)[made]["status"].get("completionTime"), "the job does not end", 900
    )
    assert "unchanged" in listed(schedule, "list-missed")


@pytest.mark.timeout(1800)
def test_a_time_is_not_made_up_for_after_the_deadline(schedule):
    suspend(schedule, True, startingDeadlineSeconds=15)
    before = set(jobs(schedule))
    wait_until_second(30)
    suspend(schedule, False)
    time.sleep(20)
    assert set(jobs(schedule)) == before
    schedule.wait_for(lambda: set(jobs(schedule)) - before, "the next time has no job", 60)
    suspend(schedule, True)
