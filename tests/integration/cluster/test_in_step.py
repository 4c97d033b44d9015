"""Workers that train in step, each a process: the result is that of one device with all batches."""

import functools
import shutil

import numpy as np
import pytest
import tensorflow as tf

from estimator_core.experimental.local_cluster import launch_local_cluster
from tests.integration.cluster import programs_in_step as programs
from tests.integration.cluster.programs import files

pytestmark = pytest.mark.more

SIZES = [
    pytest.param((2, False), id="two workers"),
    pytest.param((3, True), id="a chief and two workers", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=SIZES)
def trained(request, tmp_path_factory):
    """The directory of all models, and the names of the tasks."""
    size, has_chief = request.param
    root = tmp_path_factory.mktemp("in_step")
    job = functools.partial(programs.train_in_step, str(root))
    launch_local_cluster(job, size, chief=has_chief, log_dir=root / "logs")
    names = [f"worker {index}" for index in range(size - has_chief)]
    return root, ["chief 0"] * has_chief + names


def on_one_device(root, name, directory):
    """Losses and variables of one device over the concatenated batches, from the same initial values."""
    directory.mkdir()
    for path in (root / name).glob("model.ckpt-0.*"):
        shutil.copy(path, directory)
    directory = str(directory)
    tf.compat.v1.train.update_checkpoint_state(directory, f"{directory}/model.ckpt-0")
    record = programs.Record()
    estimator = programs.MODELS[name](programs.run_config(directory))
    estimator.train(programs.data, hooks=[record])
    return record.losses, record.variables


def loaded(root, name, task):
    with np.load(root / f"{name}_notes" / f"{task}.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize("name", programs.MODELS)
def test_losses_and_weights_are_those_of_one_device_and_the_same_in_all_workers(trained, name, tmp_path):
    root, tasks = trained
    losses, variables = on_one_device(root, name, tmp_path / "one_device")
    assert len(set(losses)) == programs.NUM_STEPS
    if name == "canned":  # the reported loss is the sum of the replicas' means, as in tf.estimator 2.15
        losses = np.multiply(losses, len(tasks))
    for task in tasks:
        found = loaded(root, name, task)
        np.testing.assert_allclose(found.pop("losses"), losses, rtol=1e-5)
        assert found.keys() == variables.keys()
        for key, value in variables.items():
            np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=1e-6, err_msg=key)
    first, *others = [loaded(root, name, task) for task in tasks]
    assert others
    for other in others:
        for key, value in first.items():
            np.testing.assert_array_equal(other[key], value, err_msg=key)


def test_hooks_of_the_chief_run_in_the_chief_alone(trained):
    root, tasks = trained
    assert files(root / "custom_notes", "chief_hook.") == tasks[:1]
    assert files(root / "custom_notes", "training_hook.") == tasks


@pytest.mark.parametrize("name", programs.MODELS)
def test_the_chief_alone_writes_the_checkpoint_of_one_device(trained, name):
    root, tasks = trained
    log_of = {task: (root / "logs" / f"{task.replace(' ', '-')}.log").read_text() for task in tasks}
    for task in tasks:
        assert ("Saving checkpoints" in log_of[task]) is (task == tasks[0])
        assert f"Restoring parameters from {root / name}/model.ckpt-2\n" in log_of[task]
    events = files(root / name, "events.")
    assert len(events) == 1
    summaries = [
        (event.step, value.tag)
        for path in (root / name).glob("events.*")
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == "loss"
    ]
    # The writer counts from the start of each training: steps 1 of the first, 3 and 5 of the second.
    assert sorted(summaries) == [(step, "loss") for step in (1, 3, 5)]
    estimator = programs.MODELS[name](programs.run_config(str(root / name)))
    found = loaded(root, name, tasks[0])
    del found["losses"]
    assert sorted(estimator.get_variable_names()) == sorted(key[:-2] for key in found)
    for key, value in found.items():
        np.testing.assert_array_equal(estimator.get_variable_value(key[:-2]), value)
    assert estimator.get_variable_value("global_step") == programs.NUM_STEPS


def moments_of_moments(batches, momentum=0.5):
    """Moving mean and variance as batch normalization keeps them, from those of each worker's batch."""
    mean, variance = np.zeros(3), np.ones(3)
    for workers in batches:
        mean = momentum * mean + (1 - momentum) * np.mean([x.mean(0) for x in workers], 0)
        variance = momentum * variance + (1 - momentum) * np.mean([x.var(0) for x in workers], 0)
    return mean, variance


@pytest.mark.slow
def test_moving_averages_are_over_the_batches_of_all_workers(tmp_path, monkeypatch):
    # TensorFlow Transform, which other tests import, sets it; with Keras 2, model_fn runs the updates itself.
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    job = functools.partial(programs.train_normalized, str(tmp_path))
    result = launch_local_cluster(job, 2, chief=False, log_dir=tmp_path / "logs")
    losses, variables = result.chief
    assert len(set(losses)) == programs.NUM_STEPS
    x = np.concatenate([features["x"] for features, _ in programs.data().as_numpy_iterator()])
    mean, variance = moments_of_moments(x.reshape([programs.NUM_STEPS, 2, -1, 3]))
    by_name = {name.rpartition("/")[2]: value for name, value in variables.items()}
    np.testing.assert_allclose(by_name["moving_mean:0"], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(by_name["moving_variance:0"], variance, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("is_listed", [False, True])
def test_train_and_evaluate_with_an_evaluator_on_one_device(tmp_path, is_listed):
    job = functools.partial(programs.train_and_evaluate_in_step, str(tmp_path), is_listed)
    result = launch_local_cluster(job, 2, evaluator=True, log_dir=tmp_path / "logs")
    assert result.chief is None
    metrics, exports = result.evaluator
    assert metrics["global_step"] == 9
    assert exports == []
    estimator = programs.canned(programs.run_config(str(tmp_path / "model")))
    found = estimator.evaluate(programs.data)
    assert found == pytest.approx(metrics, rel=1e-5)


@pytest.mark.slow
def test_graph_mode_has_the_server_of_train_and_evaluate(tmp_path):
    job = functools.partial(programs.train_in_graph_mode, str(tmp_path))
    losses, variables = launch_local_cluster(job, 2, chief=False, log_dir=tmp_path / "logs").chief
    (tmp_path / "canned").mkdir()
    (tmp_path / "model").rename(tmp_path / "canned")
    expected, weights = on_one_device(tmp_path, "canned", tmp_path / "one_device")
    np.testing.assert_allclose(losses, np.multiply(expected, 2), rtol=1e-5)  # as above
    for key, value in weights.items():
        np.testing.assert_allclose(variables[key], value, rtol=1e-5, atol=1e-6, err_msg=key)


@pytest.mark.slow
def test_a_warm_start_is_that_of_one_device(tmp_path):
    first = programs.custom(programs.run_config(str(tmp_path / "first")))
    path = first.train(programs.data, max_steps=3).latest_checkpoint()
    record = programs.Record()
    one_device = programs.warm_started(programs.run_config(str(tmp_path / "one_device")), path)
    one_device.train(programs.data, hooks=[record])

    job = functools.partial(programs.train_warm_started, str(tmp_path), path)
    result = launch_local_cluster(job, 2, log_dir=tmp_path / "logs")
    losses, variables = result.chief
    np.testing.assert_allclose(losses, record.losses, rtol=1e-5)
    assert variables.keys() == record.variables.keys()
    for key, value in record.variables.items():
        np.testing.assert_allclose(variables[key], value, rtol=1e-5, atol=1e-6, err_msg=key)
