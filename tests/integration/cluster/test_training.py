"""Chief, workers, parameter servers and an evaluator, each a process, train real models."""

import functools
import re

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import v1
from estimator_core.experimental import launch_local_cluster
from tests.integration.cluster import programs
from tests.integration.cluster.programs import MAX_STEPS, MODELS, NUM_WORKERS, files
from tests.oracle import placement

pytestmark = pytest.mark.more

# A worker stops when the step was reached before its own step began. So each of the others may finish a
# step that began earlier, and make one more whose read of the global step came before the last.
LAST_STEP = MAX_STEPS + 2 * (NUM_WORKERS - 1)
ALL = ["chief 0", "worker 0", "worker 1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The directory of all models, and the results of the tasks."""
    root = tmp_path_factory.mktemp("cluster")
    job = functools.partial(programs.train_models, str(root))
    logs = root / "logs"
    results = launch_local_cluster(job, NUM_WORKERS, num_ps=2, evaluator=True, log_dir=logs)
    return root, results


@pytest.mark.parametrize("name", MODELS)
def test_all_workers_train_up_to_max_steps_or_a_few_steps_later(trained, name):
    root, _ = trained
    step = est.Estimator(programs.one_weight_model_fn, model_dir=str(root / name)).get_variable_value(
        "global_step"
    )
    assert MAX_STEPS <= step <= LAST_STEP
    _, results = trained
    assert results.chief[name] is None
    metrics, exports = results.evaluator[name]
    assert exports == []
    assert MAX_STEPS <= metrics["global_step"] <= LAST_STEP
    root, _ = trained
    assert files(root / f"{name}_notes", "five.") == ALL
    assert len(files(root / name, "events.")) == 1
    assert len(list((root / name / "eval").iterdir())) == 1
    path = tf.train.latest_checkpoint(str(root / name))
    shards = files(root / name, f"{path.rpartition('/')[2]}.data-")
    assert shards == ["00000-of-00002", "00001-of-00002"]


def test_the_weight_is_that_of_so_many_steps(trained):
    root, results = trained
    metrics, _ = results.evaluator["custom"]
    # 2 - 2 / 2^40 is 2 in float32, whatever worker made the step and however old its weight was; a
    # gradient that was taken twice goes past it, and is taken back by the next.
    np.testing.assert_allclose(metrics["loss"], 0.0, atol=1e-6)
    estimator = est.Estimator(programs.one_weight_model_fn, model_dir=str(root / "custom"))
    np.testing.assert_allclose(estimator.get_variable_value("weight"), 2.0, atol=1e-3)


def test_hooks_of_the_chief_run_in_the_chief_alone_and_each_task_has_its_log(trained):
    root, _ = trained
    notes = root / "custom_notes"
    assert files(notes, "chief_hook.") == ["chief 0"]
    assert files(notes, "training_hook.") == ALL
    names = sorted(path.name for path in (root / "logs").iterdir())
    assert names == [
        "chief-0.log", "evaluator-0.log", "ps-0.log", "ps-1.log", "worker-0.log", "worker-1.log",
    ]  # fmt: skip
    chief, worker = ((root / "logs" / f"{name}-0.log").read_text() for name in ("chief", "worker"))
    assert re.search(r"Saving checkpoints for 0 into .*/custom/model.ckpt", chief)
    assert "Saving checkpoints" not in worker
    assert "Loss for final step" in worker


@pytest.mark.parametrize(
    ("name", "api", "make"),
    [("canned", est, placement.dnn_linear_combined), ("canned_v1", v1, placement.small_slices)],
)
def test_the_checkpoint_is_restored_on_one_device(trained, name, api, make):
    root, results = trained
    metrics, _ = results.evaluator[name]
    estimator = make(api, est.RunConfig(model_dir=str(root / name)))
    found = estimator.evaluate(programs.canned_input_fn, steps=2)
    assert found["global_step"] == metrics["global_step"]
    np.testing.assert_allclose(found["loss"], metrics["loss"], rtol=1e-5)
    estimator.train(programs.canned_input_fn, steps=1)
    assert estimator.get_variable_value("global_step") == metrics["global_step"] + 1
