"""Programs in the style of TensorFlow 1's days for TPUs, with changed imports only.

One is built as the BERT programs were, one as the ResNet ones.
"""

import collections
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import estimator_core
from tests.estimator_core.programs import assert_same
from tests.oracle import observe

NUM_CORES = 2
SEQUENCE_LENGTH = 6
VOCABULARY = 12


# As BERT's run_classifier.py and optimization.py


class AdamWeightDecayOptimizer(tf.train.Optimizer):
    """Adam with decay of weights that does all its updates itself, variable by variable."""

    def __init__(self, learning_rate, weight_decay_rate):
        super().__init__(False, "AdamWeightDecayOptimizer")
        self.learning_rate = learning_rate
        self.weight_decay_rate = weight_decay_rate

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for grad, param in grads_and_vars:
            if grad is None or param is None:
                continue
            param_name = re.match("^(.*):\\d+$", param.name).group(1)
            m, v = (
                tf.get_variable(
                    name=f"{param_name}/adam_{slot}",
                    shape=param.shape.as_list(),
                    dtype=tf.float32,
                    trainable=False,
                    initializer=tf.zeros_initializer(),
                )
                for slot in "mv"
            )
            next_m = tf.multiply(0.9, m) + tf.multiply(0.1, grad)
            next_v = tf.multiply(0.999, v) + tf.multiply(0.001, tf.square(grad))
            update = next_m / (tf.sqrt(next_v) + 1e-6)
            if "bias" not in param_name:
                update += self.weight_decay_rate * param
            next_param = param - self.learning_rate * update
            assignments += [param.assign(next_param), m.assign(next_m), v.assign(next_v)]
        return tf.group(*assignments, name=name)


def create_optimizer(loss, init_lr, num_train_steps, use_tpu):
    global_step = tf.train.get_or_create_global_step()
    learning_rate = tf.train.polynomial_decay(init_lr, global_step, num_train_steps, 0.0)
    optimizer = AdamWeightDecayOptimizer(learning_rate, weight_decay_rate=0.01)
    if use_tpu:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    tvars = tf.trainable_variables()
    grads = tf.gradients(loss, tvars)
    if use_tpu:  # the CrossShardOptimizer adds them up, and is not asked to compute them
        grads = [tf.convert_to_tensor(grad) / NUM_CORES for grad in grads]
    train_op = optimizer.apply_gradients(zip(grads, tvars, strict=True), global_step=global_step)
    return tf.group(train_op, [global_step.assign(global_step + 1)])


def create_model(input_ids, input_mask, labels, num_labels):
    with tf.variable_scope("bert/embeddings"):
        table = tf.get_variable(
            "word_embeddings", [VOCABULARY, 4], initializer=tf.truncated_normal_initializer(seed=1)
        )
        embedded = tf.nn.embedding_lookup(table, input_ids)
    weights = tf.cast(input_mask, tf.float32)[:, :, tf.newaxis]
    pooled = tf.reduce_sum(embedded * weights, axis=1) / tf.reduce_sum(weights, axis=1)
    output_weights = tf.get_variable(
        "output_weights", [num_labels, 4], initializer=tf.truncated_normal_initializer(seed=2)
    )
    output_bias = tf.get_variable("output_bias", [num_labels], initializer=tf.zeros_initializer())
    logits = tf.nn.bias_add(tf.matmul(pooled, output_weights, transpose_b=True), output_bias)
    log_probs = tf.nn.log_softmax(logits, axis=-1)
    per_example_loss = -tf.reduce_sum(tf.one_hot(labels, num_labels) * log_probs, axis=-1)
    return tf.reduce_mean(per_example_loss), per_example_loss, logits


def bert_model_fn_builder(num_labels, init_checkpoint, learning_rate, num_train_steps, use_tpu):
    def model_fn(features, labels, mode, params):
        total_loss, per_example_loss, logits = create_model(
            features["input_ids"], features["input_mask"], features["label_ids"], num_labels
        )
        scaffold_fn = None
        if init_checkpoint:
            names = [name for name, _ in tf.train.list_variables(init_checkpoint)]
            assignment_map = collections.OrderedDict(
                (name, name) for name in names if name.startswith("bert/") and "adam" not in name
            )
            if use_tpu:

                def tpu_scaffold():
                    tf.train.init_from_checkpoint(init_checkpoint, assignment_map)
                    return tf.train.Scaffold()

                scaffold_fn = tpu_scaffold
            else:
                tf.train.init_from_checkpoint(init_checkpoint, assignment_map)
        if mode == tf.estimator.ModeKeys.TRAIN:
            train_op = create_optimizer(total_loss, learning_rate, num_train_steps, use_tpu)
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode=mode, loss=total_loss, train_op=train_op, scaffold_fn=scaffold_fn
            )
        if mode == tf.estimator.ModeKeys.EVAL:

            def metric_fn(per_example_loss, label_ids, logits):
                predictions = tf.argmax(logits, axis=-1, output_type=tf.int32)
                accuracy = tf.metrics.accuracy(labels=label_ids, predictions=predictions)
                return {"eval_accuracy": accuracy, "eval_loss": tf.metrics.mean(values=per_example_loss)}

            eval_metrics = (metric_fn, [per_example_loss, features["label_ids"], logits])
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode=mode, loss=total_loss, eval_metrics=eval_metrics, scaffold_fn=scaffold_fn
            )
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode=mode, predictions={"probabilities": tf.nn.softmax(logits)}, scaffold_fn=scaffold_fn
        )

    return model_fn


def bert_input_fn_builder(is_training, drop_remainder):
    random = np.random.RandomState(0)
    ids = random.randint(0, VOCABULARY, [40, SEQUENCE_LENGTH]).astype(np.int32)
    mask = np.arange(SEQUENCE_LENGTH) < random.randint(1, SEQUENCE_LENGTH + 1, [40, 1])
    labels = (ids[:, 0] >= VOCABULARY // 2).astype(np.int32)

    def input_fn(params):
        d = tf.data.Dataset.from_tensor_slices(
            {"input_ids": ids, "input_mask": mask.astype(np.int32), "label_ids": labels}
        )
        if is_training:
            d = d.repeat()
        return d.batch(batch_size=params["batch_size"], drop_remainder=drop_remainder)

    return input_fn


@pytest.fixture
def installed(uninstalled):
    estimator_core.install()


def bert_estimator(model_dir, use_tpu, init_checkpoint=None):
    is_per_host = tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2
    run_config = tf.estimator.tpu.RunConfig(
        cluster=None,
        master=None,
        model_dir=model_dir,
        save_checkpoints_steps=1000,
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=1000, num_shards=NUM_CORES, per_host_input_for_training=is_per_host
        ),
    )
    return tf.estimator.tpu.TPUEstimator(
        use_tpu=use_tpu,
        model_fn=bert_model_fn_builder(2, init_checkpoint, 0.1, 40, use_tpu),
        config=run_config,
        train_batch_size=8,
        eval_batch_size=8,
        predict_batch_size=16,
    )


@pytest.mark.more
def test_bert_trains_on_two_cores_as_on_one_device_and_warm_starts(installed, tmp_path):
    """The same program trains on two cores as on one device, and a second one starts from its checkpoint."""
    metrics = []
    for use_tpu in (False, True):
        estimator = bert_estimator(str(tmp_path / f"bert_{use_tpu}"), use_tpu)
        estimator.train(input_fn=bert_input_fn_builder(True, True), max_steps=20)
        metrics.append(estimator.evaluate(bert_input_fn_builder(False, True), steps=5))
    assert_same(metrics[1], metrics[0], rtol=1e-4)
    assert len(list(estimator.predict(bert_input_fn_builder(False, False)))) == 40

    tuned = bert_estimator(str(tmp_path / "tuned"), True, estimator.latest_checkpoint())
    tuned.train(input_fn=bert_input_fn_builder(True, True), max_steps=1)
    names = ("bert/embeddings/word_embeddings", "output_weights")
    moved = [
        np.abs(tuned.get_variable_value(name) - estimator.get_variable_value(name)).max() for name in names
    ]
    assert moved[0] < 0.4 < moved[1]  # one step of Adam is 0.32; the output starts anew


# As the ResNet programs: tf.layers' batch normalization by hand, and summaries of a host call


def batch_norm(inputs, training, name):
    """Does as tf.layers.batch_normalization: averages, kept by UPDATE_OPS."""
    with tf.variable_scope(name):
        size = inputs.shape[-1]
        gamma = tf.get_variable("gamma", [size], initializer=tf.ones_initializer())
        beta = tf.get_variable("beta", [size], initializer=tf.zeros_initializer())
        averages = [
            tf.get_variable(f"moving_{kind}", [size], initializer=start, trainable=False)
            for kind, start in (("mean", tf.zeros_initializer()), ("variance", tf.ones_initializer()))
        ]
        if not training:
            return tf.nn.batch_normalization(inputs, *averages, beta, gamma, 1e-3)
        moments = tf.nn.moments(inputs, [0, 1, 2])
        for average, moment in zip(averages, moments, strict=True):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, average.assign_sub((average - moment) * 0.1))
        return tf.nn.batch_normalization(inputs, *moments, beta, gamma, 1e-3)


def resnet_model_fn(features, labels, mode, params):
    if params["transpose_input"]:
        features = tf.transpose(features, [3, 0, 1, 2])  # HWCN to NHWC
    training = mode == tf.estimator.ModeKeys.TRAIN
    kernel = tf.get_variable("conv/kernel", [3, 3, 1, 4], initializer=tf.variance_scaling_initializer(seed=1))
    net = tf.nn.relu(batch_norm(tf.nn.conv2d(features, kernel, 1, "SAME"), training, "bn"))
    net = tf.reduce_mean(net, [1, 2])
    dense = tf.get_variable("dense/kernel", [4, 2], initializer=tf.random_normal_initializer(seed=2))
    logits = net @ dense
    cross_entropy = tf.losses.softmax_cross_entropy(logits=logits, onehot_labels=tf.one_hot(labels, 2))
    loss = cross_entropy + 1e-4 * tf.add_n(
        [tf.nn.l2_loss(v) for v in tf.trainable_variables() if "bn" not in v.name]
    )
    host_call, train_op = None, None
    if mode == tf.estimator.ModeKeys.TRAIN:
        global_step = tf.train.get_global_step()
        learning_rate = tf.train.piecewise_constant(global_step, [10], [0.1, 0.01])
        optimizer = tf.train.MomentumOptimizer(learning_rate, 0.9, use_nesterov=True)
        if params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(update_ops):
            train_op = optimizer.minimize(loss, global_step)

        def host_call_fn(gs, loss, lr):
            gs = gs[0]
            writer = tf.compat.v2.summary.create_file_writer(
                params["model_dir"], max_queue=params["iterations_per_loop"]
            )
            with writer.as_default(), tf.compat.v2.summary.record_if(True):
                tf.compat.v2.summary.scalar("loss", loss[0], step=gs)
                tf.compat.v2.summary.scalar("learning_rate", lr[0], step=gs)
                return tf.summary.all_v2_summary_ops()

        gs_t = tf.reshape(global_step, [1])
        host_call = (host_call_fn, [gs_t, tf.reshape(loss, [1]), tf.reshape(learning_rate, [1])])
    eval_metrics = None
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(labels, logits):
            return {"top_1_accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))}

        eval_metrics = (metric_fn, [labels, logits])
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode=mode, loss=loss, train_op=train_op, host_call=host_call, eval_metrics=eval_metrics
    )


class ImageNetInput:
    """Light and dark images; every host would take part of them."""

    def __init__(self, transpose_input):
        self.transpose_input = transpose_input

    def input_fn(self, params):
        if "context" in params:
            index = params["context"].current_input_fn_deployment()[1]
            num_hosts = params["context"].num_hosts
        else:
            index, num_hosts = 0, 1
        random = np.random.RandomState(0)
        labels = np.tile([0, 1], 16).astype(np.int32)
        shift = np.where(labels, 1.0, -1.0).reshape(-1, 1, 1, 1)
        images = (random.randn(32, 6, 6, 1) + shift).astype(np.float32)
        dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shard(num_hosts, index)
        dataset = dataset.repeat().batch(params["batch_size"], drop_remainder=True)
        if self.transpose_input:
            dataset = dataset.map(lambda images, labels: (tf.transpose(images, [1, 2, 3, 0]), labels))
        return dataset


def resnet_estimator(model_dir, use_tpu, transpose_input):
    config = tf.estimator.tpu.RunConfig(
        model_dir=model_dir,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=5, num_shards=NUM_CORES),
        save_summary_steps=None,
    )
    params = {"transpose_input": transpose_input, "model_dir": f"{model_dir}/host", "iterations_per_loop": 5}
    return tf.estimator.tpu.TPUEstimator(
        use_tpu=use_tpu,
        model_fn=resnet_model_fn,
        config=config,
        params=params,
        train_batch_size=8,
        eval_batch_size=8,
        batch_axis=[3, 0] if transpose_input else None,
        export_to_tpu=False,
    )


@pytest.mark.more
def test_resnet_trains_the_same_with_transposed_batches(installed, tmp_path):
    values = []
    for transpose in (False, True):
        estimator = resnet_estimator(str(tmp_path / f"resnet_{transpose}"), True, transpose)
        estimator.train(ImageNetInput(transpose).input_fn, max_steps=12)
        assert estimator.evaluate(ImageNetInput(transpose).input_fn, steps=4)["top_1_accuracy"] > 0.9
        values.append(estimator.get_variable_value("conv/kernel"))
    np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-5)  # however the batch lies
    found = collections.defaultdict(dict)
    for event in observe.events_of(f"{estimator.model_dir}/host"):
        for value in event.summary.value:
            found[value.tag][event.step] = float(tf.make_ndarray(value.tensor))
    assert sorted(found["loss"]) == list(range(12))
    rates = [found["learning_rate"][step] for step in range(12)]
    np.testing.assert_allclose(rates, [0.1] * 11 + [0.01])


def test_the_batch_normalization_of_shards_is_that_of_their_own_batches(installed, tmp_path):
    """The averages after a step, by hand, from the first half of the first batch."""
    estimator = resnet_estimator(str(tmp_path), True, False)
    estimator.train(ImageNetInput(False).input_fn, max_steps=1)
    with tf.Graph().as_default(), tf.Session() as session:
        images, _ = tf.data.make_one_shot_iterator(
            ImageNetInput(False).input_fn({"batch_size": 4})
        ).get_next()
        initializer = tf.variance_scaling_initializer(seed=1)
        convolved = tf.nn.conv2d(images, initializer([3, 3, 1, 4]), 1, "SAME")
        mean = session.run(tf.reduce_mean(convolved, [0, 1, 2]))
    np.testing.assert_allclose(
        estimator.get_variable_value("bn/moving_mean"), 0.1 * mean, rtol=1e-5, atol=1e-6
    )


def test_names_of_tensorflow_1_in_tensorflow_2(installed):
    import tensorflow

    assert tensorflow.tpu.CrossShardOptimizer is tf.tpu.CrossShardOptimizer
    assert tensorflow.tpu.cross_replica_sum is tf.tpu.cross_replica_sum
    assert tensorflow.tpu.experimental  # the other names stay
