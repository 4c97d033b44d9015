"""Jobs on a Kubernetes of the loopback whose pods are processes."""

import os
import time
from dataclasses import replace

import pytest
from kubernetes.client import ApiClient

from pipelines.config.kubeflow import KubeflowConfig, TrainingJobConfig
from pipelines.kubeflow.training.cluster_jobs import ClusterJobs, TrainingJobError, jobs_of_settings
from pipelines.kubeflow.training.indexed_job import manifest
from pipelines.kubeflow.training.training_job import training_job
from pipelines.steps.causes import describe_cause
from tests.pipelines.kubeflow.loopback import RefusedError
from tests.pipelines.kubeflow.training.test_job_pods import REFUSED_CERTIFICATE

HEAD = "import json, os, sys, time\n"
TASK = "task = json.loads(os.environ['TF_CONFIG'])['task']\nkind, index = task['type'], task['index']\n"
SERVE_FOR_EVER = "if kind == 'ps': time.sleep(600)\n"

# A program in a pod of an indexed Job: the work of `indexed_task` around it is the real thing.
INDEXED = """
from pathlib import Path
from pipelines.kubeflow import indexed_task
os.environ['TF_CONFIG'] = indexed_task.pod_tf_config(os.environ)
def play():
    try:
        exec({program!r}, globals())
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
            return 1
        return error.code or 0
    return 0
def end(code):
    sys.stdout.flush()
    os._exit(code)
is_chief = json.loads(os.environ['TF_CONFIG'])['task']['type'] == 'chief'
end(indexed_task.run_task(Path({file!r}), is_chief, play, end, lambda secs: time.sleep(0.05)))
"""


def running(server):
    return [pod for pod in server.pods["trainer-1"] if pod.phase == "Running"]


def job(server, jobs, program, name="trainer-1", **settings):
    """Returns a job of a chief, two workers and a parameter server that all run a program."""
    given = training_job(KubeflowConfig(image="image:1", training_job=settings))
    body = manifest(given, name, "ml", "task.json", workers=2, ps=1)
    file = str(server.folder / "task.json")
    text = HEAD + INDEXED.format(program=TASK + program, file=file)
    (container,) = body["spec"]["template"]["spec"]["containers"]
    container["command"] = ["python", "-S", "-c", text]
    return body


@pytest.mark.more
def test_a_job_has_succeeded_when_its_chief_has(server, jobs, tmp_path):
    body = job(server, jobs, SERVE_FOR_EVER + "print('I am', kind, index)")
    jobs.run(body, tmp_path / "logs")
    logs = [file.read_text() for file in (tmp_path / "logs").iterdir()]
    assert sum("I am chief 0" in log for log in logs) == 1
    assert all(pod.kind != "PS" or pod.code == 0 for pod in server.pods["trainer-1"])
    assert not running(server)


@pytest.mark.more
def test_a_task_that_fails_is_the_reason(server, jobs):
    program = SERVE_FOR_EVER + (
        "if (kind, index) == ('worker', 1): print('a traceback', flush=True); "
        "sys.exit('ValueError: odd row')\n"
        "time.sleep(600)"
    )
    with pytest.raises(TrainingJobError, match=r"^trainer-1-2-\w+: ValueError: odd row$"):
        jobs.run(job(server, jobs, program))
    assert not running(server)


KILLED_ONCE = (
    "place = {folder!r} + f'/{{kind}}-{{index}}'\n"
    "if kind == 'worker' and not os.path.exists(place):\n"
    "  open(place, 'w').close(); {end}\n"
    "if kind == 'worker': open(place + '-done', 'w').close()\n"
    "ends = [{folder!r} + f'/worker-{{number}}-done' for number in (0, 1)]\n"
    "while kind == 'chief' and not all(map(os.path.exists, ends)): time.sleep(0.05)\n"
    "time.sleep(0.5 if kind == 'chief' else 0)"
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(143)"])
def test_a_task_that_was_killed_is_started_again(server, jobs, tmp_path, end):
    program = SERVE_FOR_EVER + KILLED_ONCE.format(folder=str(tmp_path), end=end)
    jobs.run(job(server, jobs, program))
    tries = [pod.restarts + 1 for pod in server.pods["trainer-1"] if pod.kind == "Worker"]
    assert sum(tries) == 4  # each of the two began twice


@pytest.mark.more
def test_a_task_that_fails_is_to_blame_and_not_one_that_was_killed_before(server, jobs, tmp_path):
    program = SERVE_FOR_EVER + (
        f"place = {str(tmp_path / 'killed')!r}\n"
        "if kind == 'worker' and index == 0 and not os.path.exists(place):\n"
        "  open(place, 'w').close(); print('step 7', flush=True); os.kill(os.getpid(), 9)\n"
        "while not os.path.exists(place): time.sleep(0.05)\n"
        "time.sleep(0.5)\n"
        "if kind == 'chief': sys.exit('ValueError: odd row')\n"
        "time.sleep(600)"
    )
    with pytest.raises(TrainingJobError, match=r": ValueError: odd row$"):
        jobs.run(job(server, jobs, program))


@pytest.mark.more
def test_tasks_that_are_killed_again_and_again_fail_the_job(server, jobs):
    program = "if kind == 'chief': print('step 7', flush=True); os.kill(os.getpid(), 9)\ntime.sleep(600)"
    with pytest.raises(TrainingJobError, match=r"failed: .*exit code 137 \(Error\): step 7$"):
        jobs.run(job(server, jobs, program, restarts=2))


@pytest.mark.more
def test_a_job_that_takes_too_long_is_ended(server, jobs):
    with pytest.raises(TrainingJobError, match="longer than specified deadline"):
        jobs.run(job(server, jobs, "time.sleep(600)", deadline_secs=1))
    assert not running(server)


@pytest.mark.more
def test_a_job_that_is_there_is_waited_for(server, jobs):
    body = job(server, jobs, SERVE_FOR_EVER + "time.sleep(0.3)")
    server.submit(body)
    jobs.run(body)
    assert len(server.jobs) == 1


@pytest.mark.more
@pytest.mark.parametrize("lingers", [0, 3])
def test_a_job_that_has_failed_is_made_anew_by_the_next_try(server, jobs, tmp_path, lingers):
    server.lingers = lingers
    program = SERVE_FOR_EVER + (
        f"place = {str(tmp_path / 'tried')!r}\n"
        "if kind == 'chief' and not os.path.exists(place):\n"
        "  open(place, 'w').close(); sys.exit('ValueError: out of quota')\n"
        "time.sleep(0 if kind == 'chief' else 600)"
    )
    body = job(server, jobs, program)
    with pytest.raises(TrainingJobError, match="out of quota"):
        jobs.run(body)
    first = server.jobs["trainer-1"]["metadata"]["uid"]
    jobs.run(body)
    assert server.jobs["trainer-1"]["metadata"]["uid"] != first


@pytest.fixture
def earlier(server, jobs):
    """A job of the same name, which runs for long."""
    server.submit(job(server, jobs, "time.sleep(600)"))


@pytest.mark.usefixtures("earlier")
def test_a_job_that_is_being_deleted_is_waited_out(server, jobs):
    server.lingers = 4
    jobs._delete("trainer-1")
    body = job(server, jobs, SERVE_FOR_EVER)
    jobs.run(body)
    assert server.jobs["trainer-1"]["spec"] == body["spec"]


@pytest.mark.usefixtures("earlier")
def test_a_job_that_stays_is_an_error(server, jobs):
    server.lingers = 10**6
    jobs._delete("trainer-1")
    with pytest.raises(TrainingJobError, match=r"still exists 0.3 s after.*kubectl -n ml get jobs\."):
        replace(jobs, patience_secs=0.3).run(job(server, jobs, ""))


@pytest.mark.usefixtures("earlier")
def test_only_the_job_that_has_failed_is_deleted(server, jobs):
    jobs._delete("trainer-1", "the uid of another one")
    assert list(server.jobs) == ["trainer-1"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("trouble", ["drops", "failures"])
def test_kubernetes_may_be_out_of_reach_for_a_while(server, jobs, tmp_path, trouble):
    naps = []

    def sleep(secs):
        naps.append(secs)
        if len(naps) == 2:
            setattr(server, trouble, 40)  # more than urllib3 tries by itself, ten times
        if len(naps) > 200:
            pytest.fail("it waits for ever")
        time.sleep(0.02)

    body = job(server, jobs, SERVE_FOR_EVER + "time.sleep(0.5)")
    replace(jobs, sleep=sleep).run(body, tmp_path / "logs")
    assert getattr(server, trouble) == 0
    assert len(server.jobs) == 1


def test_a_certificate_that_is_refused_is_no_reason_to_wait(server, jobs, monkeypatch):
    def refuse(*arguments, **options):
        raise REFUSED_CERTIFICATE

    body = job(server, jobs, "")
    monkeypatch.setattr(ApiClient, "call_api", refuse)
    message = r"certificate of Kubernetes' API is refused \(submitting the Job"
    with pytest.raises(TrainingJobError, match=message):
        replace(jobs, sleep=lambda secs: pytest.fail("it waits")).run(body)


@pytest.mark.parametrize("trouble", ["drops", "failures"])
def test_a_job_goes_on_when_kubernetes_stays_out_of_reach(server, jobs, tmp_path, trouble):
    def sleep(secs):
        setattr(server, trouble, 10**6)

    times = iter(range(0, 10**6, 30))
    patient = replace(jobs, sleep=sleep, clock=lambda: next(times))
    with pytest.raises(TrainingJobError, match=r"out of reach for 600 s \(reading the \w+ trainer-1"):
        patient.run(job(server, jobs, "time.sleep(600)"), tmp_path / "logs")
    assert next(times) < 2000
    assert list(server.jobs) == ["trainer-1"]
    assert "deletionTimestamp" not in server.jobs["trainer-1"]["metadata"]


@pytest.mark.more
def test_logs_that_are_lost_fail_nothing(server, jobs, tmp_path):
    class Jobs(ClusterJobs):
        def _wait(self, name):
            found = super()._wait(name)
            server.drops = 10**6
            return found

    body = job(server, jobs, SERVE_FOR_EVER)
    Jobs(jobs.client, jobs.namespace, jobs.poll_secs).run(body, tmp_path / "logs")


@pytest.mark.parametrize("is_in_trouble", [False, True])
def test_a_step_that_is_stopped_ends_its_job(server, jobs, tmp_path, is_in_trouble):
    def interrupt(secs):
        server.drops = 10**6 if is_in_trouble else 0
        raise KeyboardInterrupt

    body = job(server, jobs, "time.sleep(600)")
    with pytest.raises(KeyboardInterrupt):
        replace(jobs, sleep=interrupt).run(body, tmp_path / "logs")
    assert list(server.jobs) == (["trainer-1"] if is_in_trouble else [])
    if not is_in_trouble:
        assert not server.services  # it has gone with its job


FORBIDDEN = "needs the verbs create, get and delete of jobs.batch and of services"


@pytest.mark.parametrize(
    ("code", "message"), [(403, FORBIDDEN), (404, "Is ml a namespace of this Kubernetes")]
)
def test_what_kubernetes_refuses(server, jobs, code, message):
    server.refuses = RefusedError(code, "no")
    with pytest.raises(TrainingJobError, match=rf"refused the \w+ trainer-1: {code} no.*{message}") as raised:
        jobs.run(job(server, jobs, ""))
    assert "ApiException" not in describe_cause(raised.value)  # nor the headers of its answer


@pytest.mark.usefixtures("earlier")
def test_no_process_of_a_test_stays(server, jobs):
    replace(jobs, patience_secs=5)._create_service(server.jobs["trainer-1"])
    while "trainer-1" not in server.pods:
        time.sleep(0.05)
    processes = [pod.process.pid for pod in server.pods["trainer-1"]]
    server.close()
    for pid in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_outside_of_a_cluster():
    with pytest.raises(TrainingJobError, match=r"training_job.api_server"):
        jobs_of_settings(TrainingJobConfig())
