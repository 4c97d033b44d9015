import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.programs import batch_of, checkpoints


def estimator_with(own_parts, model_dir, **config):
    """An Estimator of one weight whose spec has what `own_parts(weight, step)` returns."""

    def model_fn(features, labels, mode):
        weight = tf.Variable(0.0, name="weight")
        step = tf1.train.get_or_create_global_step()
        loss = (features - weight) ** 2
        train_op = tf1.train.GradientDescentOptimizer(0.25).minimize(loss, step, var_list=[weight])
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op, **own_parts(weight, step))

    return est.Estimator(model_fn, model_dir, est.RunConfig(save_checkpoints_steps=2, **config))


input_fn = batch_of(2.0, repeat=None)


def object_based_saver(weight, step):
    return {"scaffold": tf1.train.Scaffold(saver=tf.train.Checkpoint(weight=weight, step=step))}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"keep_checkpoint_max": 3}, [4, 6, 7]),
        ({"keep_checkpoint_max": None}, [0, 2, 4, 6, 7]),
        ({"keep_checkpoint_max": 3, "keep_checkpoint_every_n_hours": None}, [4, 6, 7]),
        ({"keep_checkpoint_max": 3, "keep_checkpoint_every_n_hours": 1e-9}, [0, 2, 4, 6, 7]),
    ],
    ids=str,
)
def test_an_object_based_saver_keeps_the_checkpoints_that_the_config_asks_for(tmp_path, settings, kept):
    estimator_with(object_based_saver, tmp_path, **settings).train(input_fn, steps=7)
    assert checkpoints(tmp_path) == kept


@pytest.mark.more
def test_an_object_based_saver_deletes_what_an_earlier_training_kept(tmp_path):
    estimator_with(object_based_saver, tmp_path).train(input_fn, steps=7)
    assert checkpoints(tmp_path) == [0, 2, 4, 6, 7]
    estimator_with(object_based_saver, tmp_path, keep_checkpoint_max=2).train(input_fn, steps=1)
    assert checkpoints(tmp_path) == [7, 8]


def test_nothing_is_deleted_if_a_users_own_hook_saves(tmp_path):
    def own_saver(weight, step):
        saver = tf1.train.Saver([weight, step], max_to_keep=None)
        return {"training_hooks": [est.CheckpointSaverHook(str(tmp_path), save_steps=2, saver=saver)]}

    estimator = estimator_with(own_saver, tmp_path, keep_checkpoint_max=2).train(input_fn, steps=7)
    estimator.train(input_fn, steps=2)
    assert checkpoints(tmp_path) == [0, 2, 4, 6, 7, 9]
