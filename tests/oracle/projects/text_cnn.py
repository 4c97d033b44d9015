"""Classifies sentences by convolutions over their words, read through queues."""

import argparse
import csv
import os
import random

import numpy as np
import tensorflow.compat.v1 as tf

WORDS = ["<pad>", "good", "great", "fine", "nice", "bad", "poor", "awful", "sad", "film", "book"]
GOOD, BAD = set(WORDS[1:5]), set(WORDS[5:9])
LENGTH = 6

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", default=8, type=int)
parser.add_argument("--train_steps", default=20, type=int)
parser.add_argument("--model_dir", default="text_cnn")
parser.add_argument("--filter_sizes", default="2,3")
parser.add_argument("--num_filters", default=4, type=int)
parser.add_argument("--embedding_dim", default=5, type=int)
parser.add_argument("--dropout", default=0.25, type=float)


def sentences(count, seed):
    """Returns lists of word indices, and whether good words outnumber bad ones."""
    rng = random.Random(seed)
    ids, labels = [], []
    for _ in range(count):
        words = rng.choices(range(1, len(WORDS)), k=rng.randint(3, LENGTH))
        score = sum(WORDS[w] in GOOD for w in words) - sum(WORDS[w] in BAD for w in words)
        ids.append(words + [0] * (LENGTH - len(words)))
        labels.append(int(score > 0))
    return ids, labels


def write_csv(path, count, seed):
    with open(path, "w", newline="") as output:
        writer = csv.writer(output)
        for ids, label in zip(*sentences(count, seed), strict=True):
            writer.writerow([*ids, label])


def train_input_fn(files, batch_size):
    """Reads lines of the files, forever, through a queue of names and one of examples."""
    with tf.name_scope("input"):
        filename_queue = tf.train.string_input_producer(files, shuffle=False)
        _, line = tf.TextLineReader().read(filename_queue)
        columns = tf.decode_csv(line, record_defaults=[[0]] * (LENGTH + 1))
        tokens, label = tf.stack(columns[:-1]), columns[-1]
        tokens, label = tf.train.batch([tokens, label], batch_size=batch_size, capacity=4 * batch_size)
    return {"tokens": tokens}, label


def eval_input_fn(ids, labels, batch_size):
    """Goes once around arrays; the last batch may be smaller."""
    tokens, label = tf.train.slice_input_producer(
        [tf.constant(ids), tf.constant(labels)], num_epochs=1, shuffle=False
    )
    tokens, label = tf.train.batch([tokens, label], batch_size, num_threads=1, allow_smaller_final_batch=True)
    return {"tokens": tokens}, label


class LossHistoryHook(tf.train.SessionRunHook):
    """Keeps the loss of each step, and the calls of its methods."""

    def __init__(self, loss_name):
        self._loss_name = loss_name
        self.losses = []
        self.calls = []

    def begin(self):
        self._step = tf.train.get_global_step()
        self._loss = tf.get_default_graph().get_tensor_by_name(self._loss_name)
        self.calls.append("begin")

    def after_create_session(self, session, coord):
        self.calls.append(f"after_create_session at {session.run(self._step)}")
        self.calls.append(f"should_stop {coord.should_stop()}")

    def before_run(self, run_context):
        if not self.losses:
            fetches = run_context.original_args.fetches
            self.calls.append(f"first fetches {sorted(fetches) if isinstance(fetches, dict) else fetches}")
        return tf.train.SessionRunArgs(fetches={"loss": self._loss, "step": self._step})

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results["loss"]))
        if run_context.stop_requested:
            self.calls.append(f"stop requested after {len(self.losses)} calls")

    def end(self, session):
        self.calls.append(f"end at {session.run(self._step)}")


class CheckpointNotes(tf.train.CheckpointSaverListener):
    """Notes when checkpoints are written."""

    def __init__(self):
        self.notes = []

    def begin(self):
        self.notes.append("begin")

    def before_save(self, session, global_step_value):
        self.notes.append(f"before {global_step_value}")

    def after_save(self, session, global_step_value):
        self.notes.append(f"after {global_step_value}")

    def end(self, session, global_step_value):
        self.notes.append(f"end {global_step_value}")


class CountedEvaluation(tf.train.SessionRunHook):
    """Counts batches; given by the model_fn itself."""

    batches = 0
    weights = None

    def before_run(self, run_context):
        return tf.train.SessionRunArgs("batch_mean:0")

    def after_run(self, run_context, run_values):
        CountedEvaluation.batches += 1

    def end(self, session):
        name = "conv-2/kernel:0"
        [kernel] = [v for v in tf.global_variables() if v.name == name]
        CountedEvaluation.weights = float(np.abs(session.run(kernel)).sum())


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    uniform = tf.random_uniform_initializer(-0.5, 0.5, seed=1)
    with tf.variable_scope("embedding"):
        embedding = tf.get_variable("W", [len(WORDS), params["embedding_dim"]], initializer=uniform)
        words = tf.nn.embedding_lookup(embedding, features["tokens"])
    pooled = []
    for size in params["filter_sizes"]:
        conv = tf.layers.conv1d(
            words,
            filters=params["num_filters"],
            kernel_size=size,
            padding="valid",
            activation=tf.nn.tanh,
            kernel_initializer=tf.glorot_uniform_initializer(seed=size),
            kernel_regularizer=lambda kernel: 0.01 * tf.nn.l2_loss(kernel),
            name=f"conv-{size}",
        )
        pooled.append(tf.reduce_max(conv, axis=1))
    hidden = tf.concat(pooled, axis=1)
    hidden = tf.layers.dropout(hidden, rate=params["dropout"], training=training, seed=9)
    hidden = tf.layers.dense(
        hidden, 6, activation=tf.nn.elu, kernel_initializer=tf.glorot_normal_initializer(seed=7)
    )
    hidden = tf.layers.batch_normalization(hidden, training=training, momentum=0.9)
    logits = tf.layers.dense(
        hidden, 2, name="logits", kernel_initializer=tf.truncated_normal_initializer(stddev=0.3, seed=8)
    )
    predictions = {"classes": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits, name="soft")}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions)

    cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    loss = tf.identity(tf.losses.get_total_loss(), name="total_loss")
    tf.summary.scalar("cross_entropy", cross_entropy)
    accuracy = tf.metrics.accuracy(labels, predictions["classes"], name="acc_op")
    tf.identity(accuracy[1], name="train_accuracy")
    tf.summary.scalar("train_accuracy", accuracy[1])
    if mode == tf.estimator.ModeKeys.EVAL:
        tf.reduce_mean(logits, name="batch_mean")
        return tf.estimator.EstimatorSpec(
            mode,
            loss=loss,
            eval_metric_ops={
                "accuracy": accuracy,
                "recall": tf.metrics.recall(labels, predictions["classes"]),
                "top": tf.metrics.recall_at_k(tf.cast(labels, tf.int64), logits, k=1),
            },
            evaluation_hooks=[
                CountedEvaluation(),
                tf.train.SummarySaverHook(
                    save_steps=1,
                    output_dir=os.path.join(params["model_dir"], "eval_batches"),
                    summary_op=tf.summary.merge([tf.summary.scalar("of_a_batch", cross_entropy)]),
                ),
            ],
        )

    rate = tf.train.exponential_decay(0.02, tf.train.get_global_step(), 5, 0.9, staircase=True)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdagradOptimizer(rate).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
        training_chief_hooks=[
            tf.train.StepCounterHook(every_n_steps=6, output_dir=os.path.join(params["model_dir"], "speed"))
        ],
    )


def main():
    args = parser.parse_args([])
    tf.logging.set_verbosity(tf.logging.INFO)
    files = ["part-0.csv", "part-1.csv"]
    write_csv(files[0], 30, seed=1)
    write_csv(files[1], 25, seed=2)
    eval_ids, eval_labels = sentences(21, seed=3)

    classifier = tf.estimator.Estimator(
        model_fn=model_fn,
        model_dir=args.model_dir,
        config=tf.estimator.RunConfig(
            tf_random_seed=19, save_checkpoints_steps=None, save_checkpoints_secs=None, save_summary_steps=4
        ),
        params={
            "filter_sizes": [int(size) for size in args.filter_sizes.split(",")],
            "num_filters": args.num_filters,
            "embedding_dim": args.embedding_dim,
            "dropout": args.dropout,
            "model_dir": args.model_dir,
        },
    )
    history, notes, shown = LossHistoryHook("total_loss:0"), CheckpointNotes(), []

    def formatter(values):
        shown.append({name: np.asarray(value).tolist() for name, value in sorted(values.items())})
        return f"{len(shown)} times"

    classifier.train(
        lambda: train_input_fn(files, args.batch_size),
        hooks=[
            tf.train.LoggingTensorHook(
                tensors={"accuracy": "train_accuracy", "loss": "total_loss"},
                every_n_iter=8,
                at_end=True,
                formatter=formatter,
            ),
            tf.train.CheckpointSaverHook(args.model_dir, save_steps=7, listeners=[notes]),
            history,
            tf.train.StopAtStepHook(last_step=args.train_steps),
            tf.train.NanTensorHook("total_loss:0"),
        ],
    )
    classifier.train(
        lambda: train_input_fn(files, args.batch_size), hooks=[history, tf.train.StopAtStepHook(num_steps=3)]
    )
    evaluation = classifier.evaluate(lambda: eval_input_fn(eval_ids, eval_labels, 8))
    some = classifier.evaluate(lambda: eval_input_fn(eval_ids, eval_labels, 8), steps=2, name="some")
    batches = classifier.predict(
        lambda: eval_input_fn(eval_ids, eval_labels, 8)[0], yield_single_examples=False
    )
    predicted = [{name: values.tolist() for name, values in batch.items()} for batch in batches]
    first = next(classifier.predict(lambda: eval_input_fn(eval_ids, eval_labels, 8), ["classes"]))
    return {
        "losses": history.losses,
        "calls": history.calls,
        "saved": notes.notes,
        "shown": shown,
        "evaluation": {name: float(value) for name, value in sorted(evaluation.items())},
        "two_batches": {name: float(value) for name, value in sorted(some.items())},
        "evaluated_batches": CountedEvaluation.batches,
        "weights": CountedEvaluation.weights,
        "predicted": predicted,
        "first": {name: value.tolist() for name, value in first.items()},
        "variables": classifier.get_variable_names(),
    }
