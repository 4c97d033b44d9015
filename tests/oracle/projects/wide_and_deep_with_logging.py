"""A wide-and-deep census script of 2018, which logs tensors of the canned head by their names."""

import numpy as np
import tensorflow.compat.v1 as tf

RNG = np.random.RandomState(2)
AGE = RNG.uniform(18, 70, 90).astype(np.float32)
JOB = RNG.choice(["clerk", "cook", "smith"], 90)
INCOME = ((AGE > 40) ^ (JOB == "cook")).astype(np.int64)
TENSORS_TO_LOG = {"average_loss": "head/truediv", "loss": "head/weighted_loss/Sum"}


def input_fn(num_epochs=1):
    features = {"age": AGE / 50 - 1, "job": JOB}
    return tf.data.Dataset.from_tensor_slices((features, INCOME)).repeat(num_epochs).batch(30)


def main():
    age = tf.feature_column.numeric_column("age")
    buckets = tf.feature_column.bucketized_column(age, [-0.4, 0.0])
    job = tf.feature_column.categorical_column_with_vocabulary_list("job", ["clerk", "cook", "smith"])
    crossed = tf.feature_column.crossed_column([buckets, "job"], 50)
    config = tf.estimator.RunConfig("model", save_summary_steps=6, log_step_count_steps=6)
    model = tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=[buckets, job, crossed],
        dnn_feature_columns=[age],
        dnn_hidden_units=["4", "2"],
        linear_optimizer=tf.train.FtrlOptimizer(0.05, l2_regularization_strength=0.1),
        dnn_optimizer=lambda: tf.train.GradientDescentOptimizer(0.0),  # initial values are random
        config=config,
    )
    logged = []

    def note(values):
        logged.append({name: float(value) for name, value in values.items()})
        return ""

    hook = tf.train.LoggingTensorHook(TENSORS_TO_LOG, every_n_iter=4, formatter=note)
    model.train(lambda: input_fn(1), hooks=[_ConstantWeights()], steps=1)
    model.train(lambda: input_fn(5), hooks=[hook])
    evaluated = []

    def note_probabilities(values):
        evaluated.append(np.asarray(values["p"])[:3].tolist())
        return ""

    probabilities = tf.train.LoggingTensorHook(
        {"p": "head/predictions/probabilities"}, every_n_iter=2, formatter=note_probabilities
    )
    metrics = model.evaluate(input_fn, hooks=[probabilities])
    return {"logged": logged, "metrics": metrics, "probabilities": evaluated}


class _ConstantWeights(tf.train.SessionRunHook):
    """Sets the weights of the network after they were initialized at random."""

    def begin(self):
        kernels = [v for v in tf.trainable_variables() if "kernel" in v.op.name]
        self._assign = [tf.assign(v, tf.ones_like(v) * 0.3) for v in kernels]

    def after_create_session(self, session, coord):
        session.run(self._assign)
