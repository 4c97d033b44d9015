import tensorflow as tf

import estimator_core as est
from estimator_core.hooks.keep_checkpoints import KeepCheckpoints

tf1 = tf.compat.v1


def test_an_object_based_saver_keeps_as_many_checkpoints_as_the_config_says():
    for keep, expected in ((3, 3), (None, 0)):  # None and 0 keep all
        config = est.RunConfig(keep_checkpoint_max=keep, keep_checkpoint_every_n_hours=7)
        with tf.Graph().as_default():
            scaffold = tf1.train.Scaffold(saver=tf1.train.Saver([tf.Variable(1.0)]))
            KeepCheckpoints(scaffold, config).after_create_session(None, None)
        saver_def = scaffold.saver.saver_def
        assert saver_def.max_to_keep == expected
        assert saver_def.keep_checkpoint_every_n_hours == 7
