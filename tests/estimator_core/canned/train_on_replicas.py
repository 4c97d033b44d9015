"""Trains a composed model on one and on two replicas; prints the losses as JSON."""

import json

import numpy as np
import tensorflow as tf

import estimator_core as est
from estimator_core.canned import compose
from estimator_core.logits import dnn_logit_fn_builder, linear_logit_fn_builder
from estimator_core.named_optimizers import NAMED_OPTIMIZERS

tf1 = tf.compat.v1

fc = tf.feature_column
ID = fc.categorical_column_with_identity("id", 5)
COLUMNS = [fc.numeric_column("x"), fc.embedding_column(ID, 2, initializer=tf.ones_initializer())]
BATCH = {"x": np.float32([1.0, 2.0, -1.0, 0.5]), "id": np.array([0, 3, 3, 1])}
LABELS = np.float32([1.0, 0.0, 2.0, 3.0])


def losses(optimizer, num_replicas):
    head = est.RegressionHead()
    model_fn = compose(
        head,
        [
            (dnn_logit_fn_builder(1, [], COLUMNS), optimizer, 0.05),
            (linear_logit_fn_builder(1, [ID]), optimizer, 0.05),
        ],
    )
    size = 4 // num_replicas
    with tf.Graph().as_default():
        tf1.set_random_seed(1)
        strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(num_replicas)])

        @tf.autograph.experimental.do_not_convert
        def replica_fn():
            context = tf.distribute.get_replica_context()
            start = size * tf.get_static_value(context.replica_id_in_sync_group)
            part = slice(start, start + size)
            features = {key: tf.constant(value[part]) for key, value in BATCH.items()}
            spec = model_fn(features, tf.constant(LABELS[part]), "train")
            with tf.control_dependencies([spec.train_op]):
                return tf.identity(spec.loss)

        with strategy.scope():
            tf1.train.get_or_create_global_step()
            per_replica = strategy.extended.call_for_each_replica(replica_fn)
            loss = strategy.reduce("MEAN", per_replica, axis=None)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for variable in tf1.trainable_variables():
                if variable.op.name == "dnn/logits/kernel":
                    for copy in strategy.experimental_local_results(variable):
                        session.run(copy.assign(np.float32([[0.5], [-0.5], [0.25]])))
            return [float(session.run(loss)) for _ in range(5)]


def main():
    cpu = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, devices)
    print(json.dumps({name: {n: losses(name, n) for n in (1, 2)} for name in NAMED_OPTIMIZERS}))


if __name__ == "__main__":
    main()
