"""Through kfp's own client, against a server on the loopback."""

import logging

import pytest

from pipelines.errors import BadInputError
from pipelines.kubeflow.server.recurring import Recurrence
from pipelines.kubeflow.server.submission import Server, ServerError, read_token
from tests.pipelines.kubeflow.loopback import RefusedError

TEXT = """
pipelineInfo: {name: taxi}
schemaVersion: 2.1.0
defaultPipelineRoot: minio://bucket/root
root:
  dag: {tasks: {}}
  inputDefinitions:
    parameters:
      steps: {defaultValue: 5.0, parameterType: NUMBER_INTEGER, isOptional: true}
---
platforms: {kubernetes: {}}
"""


@pytest.fixture
def server(kfp_server):
    return Server(kfp_server.url)


def daily(hour):
    return Recurrence(cron=f"0 30 {hour} * * *")


def test_a_run_is_started(kfp_server, server):
    made = server.submit(TEXT, "retrain", {"steps": "7"}, service_account="me")
    (run,) = kfp_server.runs.values()
    assert made.run_id == run["run_id"]
    assert made.status == "PENDING"
    assert run["runtime_config"] == {"parameters": {"steps": 7}, "pipeline_root": "minio://bucket/root"}
    assert run["service_account"] == "me"
    assert run["display_name"].startswith("taxi-")
    (experiment,) = kfp_server.experiments.values()
    assert experiment["display_name"] == "retrain"
    assert run["experiment_id"] == experiment["experiment_id"]
    # Both documents of the YAML reach the server.
    uploads = [body for _, path, body in kfp_server.requests if "upload" in path]
    assert all(body.strip() == TEXT.strip() for body in uploads)


def test_the_same_content_is_one_version(kfp_server, server):
    first, second = (server.submit(TEXT, "retrain", {}) for _ in range(2))
    assert first.version_id == second.version_id
    assert first.run_id != second.run_id
    other = server.submit(TEXT.replace("5.0", "6.0"), "retrain", {})
    assert other.version_id != first.version_id
    assert other.pipeline_id == first.pipeline_id
    assert server.submit(TEXT.replace("5.0", "6.0"), "retrain", {}).version_id == other.version_id
    assert server.submit(TEXT, "retrain", {}).version_id == first.version_id
    uploads = [path for _, path, _ in kfp_server.requests if "upload" in path]
    assert uploads == ["pipelines/upload", "pipelines/upload_version"]
    assert len(kfp_server.pipelines) == 1


def test_a_recurring_run_is_made_disabled_and_deleted(kfp_server, server):
    made = server.submit(TEXT, "retrain", {"steps": "9"}, recurrence=Recurrence(cron="0 30 3 * * 1-5"))
    recurring = kfp_server.recurring[made.recurring_run_id]
    assert recurring["trigger"] == {"cron_schedule": {"cron": "0 30 3 * * 1-5"}}
    assert recurring["max_concurrency"] == 1
    assert recurring["no_catchup"] is True
    assert recurring["runtime_config"]["parameters"] == {"steps": 9}
    assert made.run_id is None
    assert made.status == "ENABLED"
    server.disable_recurring_run(made.recurring_run_id)
    assert recurring["status"] == "DISABLED"
    server.enable_recurring_run(made.recurring_run_id)
    assert recurring["status"] == "ENABLED"
    run_id = kfp_server.start(made.recurring_run_id)
    server.delete_recurring_run(made.recurring_run_id)
    assert not kfp_server.recurring
    assert (list(kfp_server.runs), kfp_server.lost_runs) == ([run_id], [])
    with pytest.raises(ServerError, match=r"404.*there is no recurring run"):
        server.enable_recurring_run(made.recurring_run_id)


def test_a_pipeline_has_one_schedule(kfp_server, server):
    first = server.submit(TEXT, "retrain", {}, recurrence=daily(3))
    other = server.submit(TEXT.replace("taxi", "bus"), "retrain", {}, recurrence=daily(3))
    assert first.replaced == other.replaced == ()
    second = server.submit(TEXT.replace("5.0", "6.0"), "weekly", {}, recurrence=daily(4))
    assert second.replaced == (first.recurring_run_id,)
    assert set(kfp_server.recurring) == {second.recurring_run_id, other.recurring_run_id}


def test_a_schedule_that_a_killed_submit_has_left_is_replaced_too(kfp_server, server, monkeypatch):
    first = server.submit(TEXT, "retrain", {}, recurrence=daily(3))

    def be_killed(recurring_run_id):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(server, "delete_recurring_run", be_killed)
        with pytest.raises(KeyboardInterrupt):
            server.submit(TEXT, "retrain", {}, recurrence=daily(4))
    left = set(kfp_server.recurring)
    assert len(left) == 2
    third = server.submit(TEXT, "retrain", {}, recurrence=daily(5))
    assert first.recurring_run_id in left
    assert set(third.replaced) == left
    assert list(kfp_server.recurring) == [third.recurring_run_id]


def test_the_schedule_stays_when_there_can_be_no_new_one(kfp_server, server):
    first = server.submit(TEXT, "retrain", {}, recurrence=daily(3))
    route = kfp_server._route

    def refuse(method, path, query, body):
        if (method, path) == ("POST", "recurringruns"):
            raise RefusedError(403, "not you")
        return route(method, path, query, body)

    kfp_server._route = refuse
    with pytest.raises(ServerError, match="403"):
        server.submit(TEXT, "retrain", {}, recurrence=daily(4))
    assert list(kfp_server.recurring) == [first.recurring_run_id]


def test_a_namespace_has_pipelines_of_its_own(kfp_server):
    ours = Server(kfp_server.url, "ours")
    first, second = (ours.submit(TEXT, "retrain", {}) for _ in range(2))
    theirs = Server(kfp_server.url, "theirs").submit(TEXT, "retrain", {})
    assert first.version_id == second.version_id
    assert theirs.pipeline_id != first.pipeline_id
    assert [one["namespace"] for one in kfp_server.pipelines.values()] == ["ours", "theirs"]


def test_two_pipelines_or_experiments_of_one_name(kfp_server, server):
    made = server.submit(TEXT, "retrain", {})
    kfp_server.experiments["2"] = kfp_server.experiments[made.experiment_id]
    with pytest.raises(ServerError, match=r"answer can't be used \(making the.*Multiple experiments"):
        server.submit(TEXT, "retrain", {})
    kfp_server.pipelines["2"] = {**kfp_server.pipelines[made.pipeline_id], "pipeline_id": "2"}
    with pytest.raises(ServerError, match=r"has 2 pipelines of the name 'taxi'.*kubeflow.name"):
        server.submit(TEXT, "retrain", {})


def test_a_token_gives_access_to_the_server(kfp_server, tmp_path):
    kfp_server.token = "abc.def"
    with pytest.raises(ServerError, match=r"401.*--token-file"):
        Server(kfp_server.url, "ours").submit(TEXT, "retrain", {})
    file = tmp_path / "token"
    file.write_text("abc.def\n")
    Server(kfp_server.url, "ours", read_token(file)).submit(TEXT, "retrain", {})
    assert len(kfp_server.runs) == 1


@pytest.mark.parametrize("content", [None, "", "  \n", "two words"])
def test_a_file_without_a_token(tmp_path, content):
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    with pytest.raises(BadInputError, match=f"--token-file: {file}"):
        read_token(file)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELED"])
def test_it_waits_for_the_run_to_end(kfp_server, server, state):
    made = server.submit(TEXT, "retrain", {})
    kfp_server.states = ["PENDING", "RUNNING", state]
    naps = []
    assert server.wait(made.run_id, 60, sleep=naps.append, clock=lambda: 0.0) == state
    assert len(naps) == 2


def test_it_waits_no_longer_than_it_should(kfp_server, server):
    made = server.submit(TEXT, "retrain", {})
    kfp_server.states = ["RUNNING"]
    times = iter([0.0, 30.0, 61.0])
    with pytest.raises(ServerError, match="still RUNNING after 60 s"):
        server.wait(made.run_id, 60, sleep=lambda secs: None, clock=lambda: next(times))


def test_parameters_are_checked_before_anything_is_uploaded(kfp_server):
    with pytest.raises(BadInputError, match="step: the pipeline has no such parameter"):
        Server(kfp_server.url).submit(TEXT, "retrain", {"step": "7"})
    assert not [path for _, path, _ in kfp_server.requests if "upload" in path]


def test_what_the_server_refuses_says_what_where_and_why(kfp_server, server):
    with pytest.raises(ServerError, match=f"{kfp_server.url} has refused uploading.*400.*2.1.0"):
        server.submit(TEXT.replace("2.1.0", "2.0.0"), "retrain", {})
    kfp_server.refuses = RefusedError(403, "not yours")
    with pytest.raises(ServerError, match=r"403.*not yours.*--namespace"):
        server.submit(TEXT, "retrain", {})


def test_a_server_that_is_not_there(kfp_server, caplog):
    url = kfp_server.url
    kfp_server.close()
    with pytest.raises(ServerError, match=rf"{url} cannot be reached.*port-forward"):
        Server(url).submit(TEXT, "retrain", {})
    assert [one.getMessage() for one in caplog.records if "Retrying" in one.getMessage()] == []
    assert logging.getLogger("urllib3.connectionpool").level == logging.NOTSET


def test_a_host_that_is_no_address():
    with pytest.raises(BadInputError, match="Received: 'localhost:8080'"):
        Server("localhost:8080")
