"""Fine-tunes a small transformer encoder for the classification of sentence pairs."""

import collections
import os
import re

import numpy as np
import tensorflow.compat.v1 as tf
from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", "data", "Where the TFRecords are, or will be written.")
flags.DEFINE_string("output_dir", "output", "Where checkpoints and results go.")
flags.DEFINE_string("init_checkpoint", "pretrained/bert.ckpt", "The pre-trained encoder.")
flags.DEFINE_integer("max_seq_length", 10, "Tokens of an example.")
flags.DEFINE_bool("do_train", True, "Whether to train.")
flags.DEFINE_bool("do_eval", True, "Whether to evaluate.")
flags.DEFINE_bool("do_predict", True, "Whether to predict.")
flags.DEFINE_integer("train_batch_size", 8, "Batch size for training.")
flags.DEFINE_integer("eval_batch_size", 6, "Batch size for evaluation.")
flags.DEFINE_integer("predict_batch_size", 5, "Batch size for prediction.")
flags.DEFINE_float("learning_rate", 1e-3, "The highest learning rate.")
flags.DEFINE_integer("num_train_steps", 24, "Steps of the training.")
flags.DEFINE_float("warmup_proportion", 0.25, "The part of the training that warms up.")
flags.DEFINE_integer("save_checkpoints_steps", 10, "Steps between checkpoints.")
flags.DEFINE_integer("iterations_per_loop", 5, "Steps per call of the estimator.")
flags.DEFINE_bool("use_tpu", False, "Whether to use a TPU.")
flags.DEFINE_string("master", None, "Address of the TPU.")
flags.DEFINE_integer("num_tpu_cores", 8, "Only with use_tpu.")

BertConfig = collections.namedtuple(
    "BertConfig",
    ["vocab_size", "hidden_size", "layers", "heads", "intermediate_size", "type_vocab_size", "dropout"],
)
CONFIG = BertConfig(
    vocab_size=30, hidden_size=8, layers=2, heads=2, intermediate_size=16, type_vocab_size=2, dropout=0.1
)
LABELS = ("contradiction", "entailment", "neutral")


def create_initializer(seed, stddev=0.2):
    return tf.truncated_normal_initializer(stddev=stddev, seed=seed)


def gelu(x):
    return x * 0.5 * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


def dense(inputs, units, name, seed, activation=None):
    """A dense layer over the last dimension."""
    with tf.variable_scope(name):
        width = inputs.shape.as_list()[-1]
        kernel = tf.get_variable("kernel", [width, units], initializer=create_initializer(seed))
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        outputs = tf.nn.bias_add(tf.tensordot(inputs, kernel, axes=1), bias)
        return activation(outputs) if activation else outputs


def layer_norm(inputs, name="LayerNorm"):
    with tf.variable_scope(name):
        width = inputs.shape.as_list()[-1]
        gamma = tf.get_variable("gamma", [width], initializer=tf.ones_initializer())
        beta = tf.get_variable("beta", [width], initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(inputs, axes=[-1], keep_dims=True)
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-6)


def dropout(inputs, rate, seed):
    return tf.nn.dropout(inputs, rate=rate, seed=seed) if rate else inputs


def attention_layer(inputs, mask, config, seed):
    batch_size = tf.shape(inputs)[0]
    length = inputs.shape.as_list()[1]
    head_size = config.hidden_size // config.heads

    def heads(name, seed):
        projected = dense(inputs, config.hidden_size, name, seed)
        projected = tf.reshape(projected, [batch_size, length, config.heads, head_size])
        return tf.transpose(projected, [0, 2, 1, 3])

    with tf.variable_scope("self"):
        query, key, value = heads("query", seed), heads("key", seed + 1), heads("value", seed + 2)
        scores = tf.matmul(query, key, transpose_b=True) / np.sqrt(head_size)
        scores += (1.0 - tf.cast(mask[:, None, None, :], tf.float32)) * -10000.0
        probabilities = dropout(tf.nn.softmax(scores), config.dropout, seed + 3)
        context = tf.transpose(tf.matmul(probabilities, value), [0, 2, 1, 3])
    return tf.reshape(context, [batch_size, length, config.hidden_size])


class BertModel:
    """The encoder: embeddings, layers of attention, and the pooled first token."""

    def __init__(self, config, is_training, input_ids, input_mask, token_type_ids, scope=None):
        if not is_training:
            config = config._replace(dropout=0.0)
        with tf.variable_scope(scope, default_name="bert"):
            with tf.variable_scope("embeddings"):
                hidden = self._embed(config, input_ids, token_type_ids)
            with tf.variable_scope("encoder"):
                for index in range(config.layers):
                    with tf.variable_scope(f"layer_{index}"):
                        hidden = self._layer(config, hidden, input_mask, seed=100 * (index + 1))
            self.sequence_output = hidden
            with tf.variable_scope("pooler"):
                first = tf.squeeze(hidden[:, 0:1, :], axis=1)
                self.pooled_output = dense(first, config.hidden_size, "dense", 90, tf.tanh)

    @staticmethod
    def _embed(config, input_ids, token_type_ids):
        words = tf.get_variable(
            "word_embeddings", [config.vocab_size, config.hidden_size], initializer=create_initializer(1)
        )
        types = tf.get_variable(
            "token_type_embeddings",
            [config.type_vocab_size, config.hidden_size],
            initializer=create_initializer(2),
        )
        positions = tf.get_variable(
            "position_embeddings", [16, config.hidden_size], initializer=create_initializer(3)
        )
        length = input_ids.shape.as_list()[1]
        one_hot = tf.one_hot(token_type_ids, depth=config.type_vocab_size)
        hidden = tf.nn.embedding_lookup(words, input_ids) + tf.tensordot(one_hot, types, axes=1)
        hidden += tf.slice(positions, [0, 0], [length, -1])[None]
        return dropout(layer_norm(hidden), config.dropout, 4)

    @staticmethod
    def _layer(config, hidden, mask, seed):
        with tf.variable_scope("attention"):
            attended = attention_layer(hidden, mask, config, seed)
            with tf.variable_scope("output"):
                attended = dense(attended, config.hidden_size, "dense", seed + 4)
                attended = dropout(attended, config.dropout, seed + 5)
                hidden = layer_norm(attended + hidden)
        with tf.variable_scope("intermediate"):
            inner = dense(hidden, config.intermediate_size, "dense", seed + 6, gelu)
        with tf.variable_scope("output"):
            inner = dense(inner, config.hidden_size, "dense", seed + 7)
            return layer_norm(dropout(inner, config.dropout, seed + 8) + hidden)


class AdamWeightDecayOptimizer(tf.train.Optimizer):
    """Adam without bias correction, with a weight decay beside the gradient."""

    def __init__(self, learning_rate, weight_decay_rate, exclude, name="AdamWeightDecayOptimizer"):
        super().__init__(False, name)
        self.learning_rate = learning_rate
        self.weight_decay_rate = weight_decay_rate
        self.beta_1, self.beta_2, self.epsilon = 0.9, 0.999, 1e-3
        self.exclude = exclude

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for grad, param in grads_and_vars:
            if grad is None or param is None:
                continue
            param_name = re.match("^(.*):\\d+$", param.name).group(1)
            slots = {
                slot: tf.get_variable(
                    name=f"{param_name}/{slot}",
                    shape=param.shape.as_list(),
                    dtype=tf.float32,
                    trainable=False,
                    initializer=tf.zeros_initializer(),
                )
                for slot in ("adam_m", "adam_v")
            }
            grad = tf.convert_to_tensor(grad)
            next_m = self.beta_1 * slots["adam_m"] + (1.0 - self.beta_1) * grad
            next_v = self.beta_2 * slots["adam_v"] + (1.0 - self.beta_2) * tf.square(grad)
            update = next_m / (tf.sqrt(next_v) + self.epsilon)
            if not any(re.search(pattern, param_name) for pattern in self.exclude):
                update += self.weight_decay_rate * param
            assignments += [
                param.assign(param - self.learning_rate * update),
                slots["adam_m"].assign(next_m),
                slots["adam_v"].assign(next_v),
            ]
        return tf.group(*assignments, name=name)


def create_optimizer(loss, init_lr, num_train_steps, num_warmup_steps):
    """Returns the op of one step, and the learning rate of it."""
    global_step = tf.train.get_or_create_global_step()
    learning_rate = tf.train.polynomial_decay(
        tf.constant(init_lr, tf.float32), global_step, num_train_steps, end_learning_rate=0.0
    )
    steps = tf.cast(global_step, tf.float32)
    warmup = init_lr * steps / float(num_warmup_steps)
    is_warmup = tf.cast(steps < float(num_warmup_steps), tf.float32)
    learning_rate = (1.0 - is_warmup) * learning_rate + is_warmup * warmup

    optimizer = AdamWeightDecayOptimizer(
        learning_rate, weight_decay_rate=0.01, exclude=["LayerNorm", "layer_norm", "bias"]
    )
    variables = tf.trainable_variables()
    grads, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), clip_norm=1.0)
    train_op = optimizer.apply_gradients(zip(grads, variables, strict=True), global_step=global_step)
    # apply_gradients leaves the step to us.
    new_global_step = global_step + 1
    return tf.group(train_op, [global_step.assign(new_global_step)]), learning_rate


def get_assignment_map_from_checkpoint(variables, init_checkpoint):
    """Returns a dict from variables of a checkpoint to the variables of ours that start from them."""
    ours = {re.sub(r":\d+$", "", variable.name) for variable in variables}
    found = [name for name, _ in tf.train.list_variables(init_checkpoint) if name in ours]
    return collections.OrderedDict((name, name) for name in found)


def model_fn_builder(config, num_labels, init_checkpoint, learning_rate, num_train_steps, warmup):
    """Returns a `model_fn` for TPUEstimator."""

    def model_fn(features, labels, mode, params):
        del labels, params
        tf.logging.info("*** Features ***")
        for name in sorted(features):
            tf.logging.info("  name = %s, shape = %s", name, features[name].shape)
        is_training = mode == tf.estimator.ModeKeys.TRAIN
        model = BertModel(
            config,
            is_training,
            features["input_ids"],
            features["input_mask"],
            features["segment_ids"],
            scope="bert",
        )
        with tf.variable_scope("classifier"):
            logits = dense(model.pooled_output, num_labels, "output", 95)
        probabilities = tf.nn.softmax(logits, axis=-1)

        scaffold_fn = None
        initialized = {}
        if init_checkpoint:
            initialized = get_assignment_map_from_checkpoint(tf.trainable_variables(), init_checkpoint)
            if FLAGS.use_tpu:

                def scaffold_fn():
                    tf.train.init_from_checkpoint(init_checkpoint, initialized)
                    return tf.train.Scaffold()
            else:
                tf.train.init_from_checkpoint(init_checkpoint, initialized)
        for variable in tf.trainable_variables():
            where = ", *INIT_FROM_CKPT*" if variable.op.name in initialized else ""
            tf.logging.info("  name = %s, shape = %s%s", variable.name, variable.shape, where)

        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode=mode,
                predictions={"probabilities": probabilities, "pooled": model.pooled_output},
                export_outputs={
                    "serving_default": tf.estimator.export.PredictOutput({"probabilities": probabilities}),
                    "classes": tf.estimator.export.ClassificationOutput(
                        scores=probabilities, classes=tf.constant([LABELS])
                    ),
                },
                scaffold_fn=scaffold_fn,
            )

        label_ids = features["label_ids"]
        is_real_example = tf.cast(features["is_real_example"], tf.float32)
        log_probs = tf.nn.log_softmax(logits, axis=-1)
        per_example_loss = -tf.reduce_sum(tf.one_hot(label_ids, num_labels) * log_probs, axis=-1)
        loss = tf.reduce_mean(per_example_loss)
        if is_training:
            train_op, rate = create_optimizer(loss, learning_rate, num_train_steps, warmup)
            tf.summary.scalar("learning_rate", rate)
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode=mode,
                loss=loss,
                train_op=train_op,
                training_hooks=[tf.train.LoggingTensorHook({"rate": rate}, every_n_iter=10)],
                scaffold_fn=scaffold_fn,
            )

        def metric_fn(per_example_loss, label_ids, logits, is_real_example):
            predictions = tf.argmax(logits, axis=-1, output_type=tf.int32)
            return {
                "eval_accuracy": tf.metrics.accuracy(
                    labels=label_ids, predictions=predictions, weights=is_real_example
                ),
                "eval_loss": tf.metrics.mean(per_example_loss, weights=is_real_example),
                "per_class": tf.metrics.mean_per_class_accuracy(label_ids, predictions, num_labels),
            }

        return tf.estimator.tpu.TPUEstimatorSpec(
            mode=mode,
            loss=loss,
            eval_metrics=(metric_fn, [per_example_loss, label_ids, logits, is_real_example]),
            scaffold_fn=scaffold_fn,
        )

    return model_fn


def file_based_input_fn_builder(input_file, seq_length, is_training, drop_remainder):
    """Returns an `input_fn` over TFRecords, which finds its batch size in `params`."""
    name_to_features = {
        "input_ids": tf.FixedLenFeature([seq_length], tf.int64),
        "input_mask": tf.FixedLenFeature([seq_length], tf.int64),
        "segment_ids": tf.FixedLenFeature([seq_length], tf.int64),
        "label_ids": tf.FixedLenFeature([], tf.int64),
        "is_real_example": tf.FixedLenFeature([], tf.int64),
    }

    def decode_record(record):
        example = tf.parse_single_example(record, name_to_features)
        return {name: tf.cast(value, tf.int32) for name, value in example.items()}

    def input_fn(params):
        dataset = tf.data.TFRecordDataset(input_file)
        if is_training:
            dataset = dataset.repeat()
            dataset = dataset.shuffle(buffer_size=20, seed=7)
        return dataset.apply(
            tf.data.experimental.map_and_batch(
                decode_record, batch_size=params["batch_size"], drop_remainder=drop_remainder
            )
        )

    return input_fn


def write_examples(path, count, seed, multiple=1):
    """Writes random examples whose label depends on their tokens, padded with unreal ones."""
    rng = np.random.RandomState(seed)
    with tf.python_io.TFRecordWriter(path) as writer:
        for number in range(count + -count % multiple):
            length, middle = rng.randint(5, FLAGS.max_seq_length + 1), 3
            ids = rng.randint(1, CONFIG.vocab_size, size=FLAGS.max_seq_length)
            positions = np.arange(FLAGS.max_seq_length)
            mask = (positions < length).astype(int)
            ids = ids * mask
            values = {
                "input_ids": ids,
                "input_mask": mask,
                "segment_ids": mask * (positions >= middle),
                "label_ids": [int(ids[1]) % len(LABELS)],
                "is_real_example": [int(number < count)],
            }
            features = {
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=[int(v) for v in value]))
                for name, value in values.items()
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


def write_pretrained(path):
    """Writes an encoder as its pre-training would have left it."""
    tf.gfile.MakeDirs(os.path.dirname(path))
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        ids = tf.placeholder(tf.int32, [None, FLAGS.max_seq_length])
        BertModel(CONFIG, False, ids, ids, ids, scope="bert")
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, path, write_meta_graph=False)


def serving_input_receiver_fn():
    shape = [None, FLAGS.max_seq_length]
    names = ("input_ids", "input_mask", "segment_ids")
    features = {name: tf.placeholder(tf.int32, shape, name=name) for name in names}
    return tf.estimator.export.build_raw_serving_input_receiver_fn(features)()


def main():
    FLAGS(["bert_classifier.py"])
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.gfile.MakeDirs(FLAGS.data_dir)
    files = {name: os.path.join(FLAGS.data_dir, f"{name}.tf_record") for name in ("train", "dev", "test")}
    write_examples(files["train"], 40, seed=1)
    write_examples(files["dev"], 20, seed=2, multiple=FLAGS.eval_batch_size)
    write_examples(files["test"], 11, seed=3)
    write_pretrained(FLAGS.init_checkpoint)

    run_config = tf.estimator.tpu.RunConfig(
        cluster=None,
        master=FLAGS.master,
        model_dir=FLAGS.output_dir,
        save_checkpoints_steps=FLAGS.save_checkpoints_steps,
        save_summary_steps=5,
        log_step_count_steps=10,
        tf_random_seed=12,
        keep_checkpoint_max=2,
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=FLAGS.iterations_per_loop,
            num_shards=FLAGS.num_tpu_cores,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        use_tpu=FLAGS.use_tpu,
        model_fn=model_fn_builder(
            CONFIG,
            len(LABELS),
            FLAGS.init_checkpoint,
            FLAGS.learning_rate,
            FLAGS.num_train_steps,
            int(FLAGS.num_train_steps * FLAGS.warmup_proportion),
        ),
        config=run_config,
        train_batch_size=FLAGS.train_batch_size,
        eval_batch_size=FLAGS.eval_batch_size,
        predict_batch_size=FLAGS.predict_batch_size,
        export_to_tpu=False,
    )
    length = FLAGS.max_seq_length
    output = {}
    if FLAGS.do_train:
        input_fn = file_based_input_fn_builder(files["train"], length, True, drop_remainder=True)
        estimator.train(input_fn=input_fn, max_steps=FLAGS.num_train_steps)
    if FLAGS.do_eval:
        input_fn = file_based_input_fn_builder(files["dev"], length, False, drop_remainder=True)
        result = estimator.evaluate(input_fn=input_fn, steps=4)
        output["evaluation"] = {key: float(value) for key, value in sorted(result.items())}
        everything = estimator.evaluate(
            input_fn=file_based_input_fn_builder(files["test"], length, False, False), name="test"
        )
        output["test"] = {key: float(value) for key, value in sorted(everything.items())}
    if FLAGS.do_predict:
        input_fn = file_based_input_fn_builder(files["test"], length, False, drop_remainder=False)
        output["predictions"] = [
            {key: [float(x) for x in value] for key, value in sorted(prediction.items())}
            for prediction in estimator.predict(input_fn=input_fn)
        ]
    estimator._export_to_tpu = False
    exported = estimator.export_saved_model("export", serving_input_receiver_fn)
    output["type_of_export_path"] = type(exported).__name__
    output["latest"] = os.path.basename(estimator.latest_checkpoint())
    output["variables"] = estimator.get_variable_names()
    return output
