"""The checkpoint that a training ends with."""

import json
import os
import shutil

import pytest
import tensorflow as tf

import estimator_core
from estimator_core import tf1
from pipelines.tabular.best_checkpoint import BestCheckpointExporter


def model_fn(features, labels, mode):
    """The weight is the step."""
    del labels
    weight = tf1.get_variable("weight", [], initializer=tf.zeros_initializer())
    step = tf1.train.get_global_step()
    with tf.control_dependencies([weight.assign_add(1.0)]):
        train_op = step.assign_add(1)
    outputs = {"weight": weight + 0.0 * features["x"]}
    return estimator_core.EstimatorSpec(
        mode, predictions=outputs, loss=tf.reduce_sum(features["x"]) * 0.0, train_op=train_op
    )


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [1.0]}, [0.0])).repeat()


def receive():
    x = tf1.placeholder(tf.float32, [None])
    return estimator_core.export.ServingInputReceiver({"x": x}, {"x": x})


@pytest.fixture
def estimator(tmp_path):
    config = estimator_core.RunConfig(save_checkpoints_steps=10**6, keep_checkpoint_max=1)
    return estimator_core.Estimator(model_fn, str(tmp_path / "model"), config)


def train(estimator, exporter, losses):
    """Makes ten steps for each loss, and exports; returns the last result."""
    for number, loss in enumerate(losses, 1):
        estimator.train(input_fn, max_steps=10 * number)
        result = exporter.export(
            estimator,
            os.path.join(estimator.model_dir, "export"),
            estimator.latest_checkpoint(),
            None if loss is None else {"average_loss": loss},
            is_the_final_export=number == len(losses),
        )
        assert (result is None) == (number < len(losses))
    return result


def served(exported):
    model = tf.saved_model.load(os.fsdecode(exported))
    (output,) = model.signatures["serving_default"](x=tf.constant([0.0])).values()
    return float(output[0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("losses", "best"),
    [
        ([0.5, 0.3, 0.4, 0.45], 20),
        ([0.5, 0.3, 0.3, 0.2], 40),
        ([0.1, 0.3, float("nan")], 10),
        ([float("nan"), 0.3, 0.4], 20),
        ([None, None], 20),
    ],
)
def test_the_lowest_loss_is_exported_and_the_newest_checkpoint(estimator, losses, best):
    exported = train(estimator, BestCheckpointExporter("tabular", receive), losses)
    assert served(exported) == best
    assert estimator.latest_checkpoint().endswith(f"model.ckpt-{best}")
    assert estimator.get_variable_value("weight") == best
    (prediction,) = estimator.predict(lambda: input_fn().take(1))
    assert prediction["weight"] == best
    moved = estimator.model_dir + "-moved"
    shutil.copytree(estimator.model_dir, moved)
    assert tf.train.latest_checkpoint(moved) == os.path.join(moved, f"model.ckpt-{best}")
    kept = {name.partition(".")[0] for name in os.listdir(os.path.join(estimator.model_dir, "best"))}
    assert kept == {"model", "best"}


def test_another_process_goes_on_with_the_best_so_far(estimator):
    folder = os.path.join(estimator.model_dir, "best")
    for number, loss in enumerate([0.2, 0.3], 1):
        estimator.train(input_fn, max_steps=10 * number)
        exporter = BestCheckpointExporter("tabular", receive)
        checkpoint = estimator.latest_checkpoint()
        exporter.export(estimator, "unused", checkpoint, {"average_loss": loss}, False)
        with open(os.path.join(folder, "best.json")) as stream:
            assert json.load(stream) == {
                "checkpoint": "model.ckpt-10",
                "metrics": {"average_loss": "0.2"},
                "losses": {"10": "0.2", "20": "0.3"} if number == 2 else {"10": "0.2"},
            }
    assert exporter.name == "tabular"
    assert not any("ckpt-20" in name for name in os.listdir(folder))
