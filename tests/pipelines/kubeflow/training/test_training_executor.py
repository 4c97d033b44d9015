"""A Trainer whose cluster is an indexed Job, on a Kubernetes whose pods are real processes."""

import re

import pytest

from pipelines.root import Root


def settings_of(server, restarts=5):
    job = f'kubeflow.training_job={{api_server = "{server.url}", poll_secs = 0.2, restarts = {restarts}}}'
    return ("trainer.workers=1", "trainer.ps=1", job)


def worker_that_runs(pods):
    """Returns the worker once it has printed something."""
    workers = (pod for pod in pods if pod.kind == "Worker" and pod.log.stat().st_size)
    return next(workers, None)


@pytest.mark.slow
def test_the_cluster_trains_in_a_job_and_the_model_is_pushed(tmp_path, run_here, little_settings, server):
    server.kill_once = worker_that_runs
    root = tmp_path / "root"
    record = run_here(root, *little_settings, *settings_of(server), "trainer.train_steps=400")
    assert record.status == "pushed", record.reason
    assert record.metrics["auc"] > 0.9
    assert server.kill_once is None  # the worker was killed, and started again
    (body,) = server.jobs.values()
    conditions = {one["type"]: one["status"] for one in body["status"]["conditions"]}
    assert conditions["Complete"] == "True"
    (container,) = body["spec"]["template"]["spec"]["containers"]
    assert container["command"][:4] == ["python", "-P", "-m", "pipelines.kubeflow.indexed_task"]
    assert container["volumeMounts"][0]["mountPath"] == str(tmp_path)  # where the root is
    assert len(Root(root).versions.served()) == 1
    assert not list(root.glob("training/*"))


@pytest.mark.slow
def test_a_chief_of_an_emptied_node_goes_on_from_its_checkpoint(tmp_path, run_here, little_settings, server):
    evicted = []

    def evict_once(pods):
        (chief, *_) = (pod for pod in pods if pod.kind == "Chief")
        if not evicted and any(saved_steps(chief.log)):  # one that is not 0
            evicted.append(chief)
            chief.evict()

    server.kill_once = evict_once
    settings = (*settings_of(server, restarts=1), "trainer.train_steps=1000")
    record = run_here(tmp_path / "root", *little_settings, *settings)
    assert record.status == "pushed", record.reason
    logs = sorted(tmp_path.glob("trainer-*-0-*.log"), key=lambda log: log.stat().st_mtime)
    text = "".join(log.read_text(errors="replace") for log in logs)
    before, after = text.split("SIGTERM has ended this task.")
    # The chief sets the variables back to its checkpoint: without it, it would begin at 0.
    assert 0 < max(steps_in(before)) <= steps_in(after)[0]


def saved_steps(log):
    return steps_in(log.read_text(errors="replace"))


def steps_in(text):
    """Returns the steps of the checkpoints that a log tells of."""
    return [int(step) for step in re.findall(r"Saving checkpoints for (\d+) ", text)]


@pytest.mark.slow
def test_what_the_users_code_raises_in_a_task_is_the_reason(tmp_path, run_here, little_settings, server):
    module = tmp_path / "breaking_module.py"
    module.write_text(
        "import json, os\nimport estimator_core as estimator\nimport tensorflow as tf\n"
        "def preprocessing_fn(inputs):\n"
        "    size, sold = (tf.reshape(tf.sparse.to_dense(inputs[k]), [-1, 1]) for k in ('size', 'sold'))\n"
        "    return {'x': size, 'y': tf.cast(sold == 'yes', tf.int64)}\n"
        "def trainer_fn(args, schema):\n"
        "    if json.loads(os.environ.get('TF_CONFIG', '{}')):\n"
        "        raise ArithmeticError('row 7 is odd')\n"
        "    def input_fn():\n"
        "        return tf.data.Dataset.from_tensors(({'x': [[1.0]]}, [[1]]))\n"
        "    column = tf.feature_column.numeric_column('x')\n"
        "    made = estimator.LinearClassifier([column], model_dir=args.serving_model_dir)\n"
        "    exporter = estimator.FinalExporter('serving', lambda: None)\n"
        "    return {'estimator': made, 'train_spec': estimator.TrainSpec(input_fn, max_steps=5),\n"
        "            'eval_spec': estimator.EvalSpec(input_fn, exporters=[exporter]),\n"
        "            'eval_input_receiver_fn': lambda: None}\n"
    )
    record = run_here(
        tmp_path / "root",
        *little_settings[:2],
        *settings_of(server),
        f"module.file={module}",
        "evaluator.label=y",
        "data.problem_type=binary",
    )
    assert record.status == "failed"
    assert record.reason.startswith("Trainer: TrainingJobError: trainer-")
    assert "ArithmeticError: row 7 is odd" in record.reason
    assert "breaking_module.py, line 9" in record.reason
