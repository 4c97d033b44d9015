import contextlib

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


def test_a_step_that_is_stopped_ends_its_job(server):
    def interrupt(secs):
        raise KeyboardInterrupt

    from dataclasses import replace

    with pytest.raises(KeyboardInterrupt):
        replace(jobs_of(server), sleep=interrupt).run(job("time.sleep(600)"))
    assert server.jobs == {}


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
