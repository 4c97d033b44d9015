import contextlib
import time
from dataclasses import replace

import pytest

from pipelines.kubeflow.tfjobs import TfJobs, TrainingJobError
from pipelines.kubeflow.training_job import TrainingJob, manifest
from pipelines.kubeflow_config import TrainingJobConfig
from tests.pipelines.kubeflow.kubernetes_server import KubernetesServer, RefusedError


@pytest.fixture
def server(tmp_path):
    with contextlib.closing(KubernetesServer(tmp_path)) as started:
        yield started


def jobs_of(server):
    settings = TrainingJobConfig(api_server=server.url, namespace="ml", poll_secs=0.05)
    return TfJobs.of_settings(settings.model_dump(mode="json"))


def job(program, name="trainer-1", **settings):
    """Returns a TFJob of a chief, two workers and a parameter server that all run a program."""
    given = TrainingJob("image:1", TrainingJobConfig(**settings).model_dump(mode="json"))
    text = (
        "import json, os, sys, time\ntask = json.loads(os.environ['TF_CONFIG'])['task']\n"
        f"kind, index = task['type'], task['index']\n{program}"
    )
    return manifest(given, name, "ml", ["python", "-S", "-c", text], workers=2, ps=1)


SERVE_FOR_EVER = "if kind == 'ps': time.sleep(600)\n"


def test_a_job_has_succeeded_when_its_chief_has(server, tmp_path):
    jobs_of(server).run(job(SERVE_FOR_EVER + "print('I am', kind, index)"), tmp_path / "logs")
    logs = {file.name: file.read_text() for file in (tmp_path / "logs").iterdir()}
    assert logs["trainer-1-chief-0.log"].strip() == "I am chief 0"
    assert all(pod.kind != "PS" for pod in server.pods["trainer-1"])  # it was ended


def test_a_task_that_fails_is_the_reason(server):
    program = SERVE_FOR_EVER + (
        "if (kind, index) == ('worker', 1): print('a traceback'); sys.exit('ValueError: odd row')\n"
        "time.sleep(600)"
    )
    with pytest.raises(TrainingJobError, match=r"^trainer-1-worker-1: ValueError: odd row$"):
        jobs_of(server).run(job(program))


def test_a_task_that_was_killed_is_started_again(server, tmp_path):
    program = SERVE_FOR_EVER + (
        f"place = {str(tmp_path)!r} + f'/{{kind}}-{{index}}'\n"
        "if kind == 'worker' and not os.path.exists(place):\n"
        "  open(place, 'w').close(); os.kill(os.getpid(), 9)\n"
        "if kind == 'worker': open(place + '-done', 'w').close()\n"
        f"ends = [{str(tmp_path)!r} + f'/worker-{{number}}-done' for number in (0, 1)]\n"
        "while kind == 'chief' and not all(map(os.path.exists, ends)): time.sleep(0.05)\n"
        "time.sleep(0.5 if kind == 'chief' else 0)"
    )
    jobs_of(server).run(job(program))
    assert [pod.restarts for pod in server.pods["trainer-1"] if pod.kind == "Worker"] == [1, 1]


def test_a_job_that_takes_too_long_is_ended(server):
    with pytest.raises(TrainingJobError, match="longer than specified deadline"):
        jobs_of(server).run(job("time.sleep(600)", deadline_secs=1))


def test_a_job_that_is_there_is_waited_for(server):
    jobs = jobs_of(server)
    body = job(SERVE_FOR_EVER + "time.sleep(0.3)")
    server._submit(body)
    jobs.run(body)
    assert len(server.jobs) == 1


@pytest.mark.parametrize("lingers", [0, 3])
def test_a_job_that_has_failed_is_made_anew_by_the_next_try(server, tmp_path, lingers):
    server.lingers = lingers
    program = SERVE_FOR_EVER + (
        f"place = {str(tmp_path / 'tried')!r}\n"
        "if kind == 'chief' and not os.path.exists(place):\n"
        "  open(place, 'w').close(); sys.exit('ValueError: out of quota')\n"
        "time.sleep(0 if kind == 'chief' else 600)"
    )
    jobs, body = jobs_of(server), job(program)
    with pytest.raises(TrainingJobError, match="out of quota"):
        jobs.run(body)
    first = server.jobs["trainer-1"]["metadata"]["uid"]
    jobs.run(body)
    assert server.jobs["trainer-1"]["metadata"]["uid"] != first


def test_a_job_that_is_being_deleted_is_waited_out(server):
    server.lingers = 4
    jobs = jobs_of(server)
    body = job(SERVE_FOR_EVER)
    server._submit(job("time.sleep(600)"))
    jobs._delete("trainer-1")
    jobs.run(body)
    assert server.jobs["trainer-1"]["spec"] == body["spec"]


def test_a_job_that_does_not_go_away(server):
    server.lingers = 10**6
    server._submit(job("time.sleep(600)"))
    jobs = jobs_of(server)
    jobs._delete("trainer-1")
    with pytest.raises(
        TrainingJobError, match=r"still there 0.3 s after.*kubectl -n ml get tfjobs"
    ):
        replace(jobs, patience_secs=0.3).run(job(""))


def test_only_the_job_that_has_failed_is_deleted(server):
    server._submit(job("time.sleep(600)"))
    jobs_of(server)._delete("trainer-1", "the uid of another one")
    assert list(server.jobs) == ["trainer-1"]


@pytest.mark.parametrize("trouble", ["drops", "failures"])
def test_kubernetes_may_be_out_of_reach_for_a_while(server, tmp_path, trouble):
    naps = []

    def sleep(secs):
        naps.append(secs)
        if len(naps) == 2:
            setattr(server, trouble, 40)  # more than urllib3 tries by itself, ten times
        if len(naps) > 200:
            pytest.fail("it waits for ever")
        time.sleep(0.02)

    jobs = replace(jobs_of(server), sleep=sleep)
    jobs.run(job(SERVE_FOR_EVER + "time.sleep(0.5)"), tmp_path / "logs")
    assert getattr(server, trouble) == 0
    assert len(server.jobs) == 1


@pytest.mark.parametrize("trouble", ["drops", "failures"])
def test_a_job_goes_on_when_kubernetes_stays_out_of_reach(server, tmp_path, trouble):
    def sleep(secs):
        setattr(server, trouble, 10**6)

    times = iter(range(0, 10**6, 30))
    jobs = replace(jobs_of(server), sleep=sleep, clock=lambda: next(times))
    with pytest.raises(
        TrainingJobError, match=r"out of reach for 600 s \(reading the TFJob trainer-1"
    ):
        jobs.run(job("time.sleep(600)"), tmp_path / "logs")
    assert next(times) < 2000
    assert list(server.jobs) == ["trainer-1"]
    assert "deletionTimestamp" not in server.jobs["trainer-1"]["metadata"]


def test_logs_that_are_lost_fail_nothing(server, tmp_path):
    class Jobs(TfJobs):
        def _wait(self, name):
            found = super()._wait(name)
            server.drops = 10**6
            return found

    jobs = jobs_of(server)
    Jobs(jobs.client, jobs.namespace, jobs.poll_secs).run(job(SERVE_FOR_EVER), tmp_path / "logs")


@pytest.mark.parametrize("is_in_trouble", [False, True])
def test_a_step_that_is_stopped_ends_its_job(server, tmp_path, is_in_trouble):
    def interrupt(secs):
        server.drops = 10**6 if is_in_trouble else 0
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(jobs_of(server), sleep=interrupt).run(job("time.sleep(600)"), tmp_path / "logs")
    assert list(server.jobs) == (["trainer-1"] if is_in_trouble else [])


@pytest.mark.parametrize(
    ("code", "message"),
    [(403, "needs the verbs create, get and delete"), (404, "training operator installed")],
)
def test_what_kubernetes_refuses(server, code, message):
    server.refuses = RefusedError(code, "no")
    with pytest.raises(
        TrainingJobError, match=rf"refused the TFJob trainer-1: {code} no.*{message}"
    ):
        jobs_of(server).run(job(""))


def test_outside_of_a_cluster():
    settings = TrainingJobConfig().model_dump(mode="json")
    with pytest.raises(TrainingJobError, match=r"training_job.api_server"):
        TfJobs.of_settings(settings)
