"""The demo on Kubeflow: pushed; its pods and its files; again by a recurring run; with bad data."""

import pytest

from tests.kubeflow_cluster.cluster import main_container
from tests.kubeflow_cluster.conftest import PIPELINE, STEPS
from tests.kubeflow_cluster.kubeflow import until

COMPONENTS = {
    *("CsvExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "Transform", "Trainer"),
    *("Evaluator", "ServingCheck", "Pusher"),
}
# docs/kubeflow.md, The steps: a version serves since the first run, and these compare with it.
REPEATED = {"ExampleValidator", "Evaluator", "ServingCheck", "Pusher"}


@pytest.fixture(scope="module")
def demo_steps(demo_run, cluster):
    """The pods of the steps of the first run, by step."""
    return dict(cluster.steps(demo_run[1]["run_id"]))


def test_the_demo_is_pushed(demo_run, demo_steps, volume):
    code, made = demo_run
    assert (code, made["status"]) == (0, "SUCCEEDED")
    record = volume.records("demo")[made["run_id"]]
    assert record["status"] == "pushed"
    assert 0.55 < record["metrics"]["auc"] < 1
    assert {component["name"]: component["status"] for component in record["components"]} == dict.fromkeys(
        COMPONENTS, "finished"
    )
    assert demo_steps.keys() == COMPONENTS | {"Plan", "Record", "End"}
    assert f"serving/{record['version']}/saved_model.pb" in volume.modes("demo")


def test_the_parameter_of_the_run_arrives(demo_run, volume):
    record = volume.records("demo")[demo_run[1]["run_id"]]
    assert record["config"]["trainer"]["train_steps"] == STEPS  # the configuration has another number


def test_pods_have_their_settings(demo_run, demo_steps, usable, secret):
    target, cluster, _ = usable
    for step, pod in demo_steps.items():
        container = main_container(pod)
        assert container.image == target.image
        variables = {item.name: item for item in container.env}
        assert variables["TAXI_CITY"].value == ("Boston" if step == "Trainer" else "Chicago")
        reference = variables["STORE_KEY"].value_from.secret_key_ref
        assert (reference.name, reference.key) == (secret, "key")
        field = variables["KFP_RUN_ID"].value_from.field_ref.field_path
        assert field == "metadata.labels['pipeline/runid']"
        assert variables["ESTIMATOR_PIPELINES_RETRIES"].value == ("2" if step == "End" else "1")
        claims = {
            item.name: item.persistent_volume_claim.claim_name
            for item in pod.spec.volumes
            if item.persistent_volume_claim
        }
        mounts = {item.mount_path: claims.get(item.name) for item in container.volume_mounts}
        assert mounts[target.mount] == cluster.claim
        assert pod.spec.node_selector["kubernetes.io/os"] == "linux"
        assert (PIPELINE, "Exists") in [(item.key, item.operator) for item in pod.spec.tolerations]
    trainer = demo_steps["Trainer"]
    resources = main_container(trainer).resources
    assert resources.limits == resources.requests == {"cpu": "1", "memory": "3Gi"}
    assert trainer.spec.active_deadline_seconds == 3000


def test_only_the_user_of_the_steps_can_write_to_the_files(demo_run, volume):
    """Argo's executor starts containers with a umask of 0."""
    modes = volume.modes("demo")
    assert len(modes) > 20
    assert {path: oct(mode) for path, (mode, _) in modes.items() if mode & 0o022} == {}
    assert len({user for _, user in modes.values()}) == 1


def test_a_recurring_run_comes_from_the_cache(demo_run, kubeflow, cluster, demo, volume):
    command = ("schedule", "create", "--config", demo, "--cron", "* * * * *", "--name", PIPELINE)
    code, made = kubeflow.command(*command, "--param", f"train_steps={STEPS}", "--replace")
    assert code == 0
    recurring = made["recurring_run_id"]
    try:
        (run,) = until(lambda: kubeflow.runs_of(recurring, made["experiment_id"]), 300)
        assert kubeflow.command("schedule", "disable", PIPELINE)[0] == 0
        assert kubeflow.wait(run) == "SUCCEEDED"
    finally:
        assert kubeflow.command("schedule", "delete", PIPELINE)[0] == 0
    record = volume.records("demo")[run]
    cached = {component["name"] for component in record["components"] if component["status"] == "cached"}
    assert cached == COMPONENTS - REPEATED
    assert {step for step, _ in cluster.steps(run)} == REPEATED | {"Plan", "Record", "End"}


def test_a_column_that_went_bad_fails_the_run_and_says_why(demo_run, kubeflow, cluster, demo, volume):
    volume.change_column("taxi.csv", "bad.csv", "trip_miles", "far")
    before = volume.records("demo")
    code, made = kubeflow.command(
        *("submit", "--config", demo, "--param", f"data_path={volume.inside('bad.csv')}", "--wait")
    )
    assert (code, made["status"]) == (1, "FAILED")
    record = volume.records("demo")[made["run_id"]]
    assert record["status"] == "failed"
    assert "trip_miles" in record["reason"]
    assert record["version"] is None
    assert record["serving_version"] == before[demo_run[1]["run_id"]]["version"]
    steps = cluster.steps(made["run_id"])
    assert steps[-1][0] == "End"
    step, pod = steps[-2]
    assert record["reason"].startswith(f"{step}: ")
    assert record["reason"] in cluster.log(pod.metadata.name)
    assert "Pusher" not in dict(steps)
