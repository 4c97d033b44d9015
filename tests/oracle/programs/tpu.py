"""TPUEstimator with use_tpu=False: model_fns as they were written for TPUs."""

import logging

import tensorflow as tf

from tests.oracle.programs.program import Program, Scenario

tf1 = tf.compat.v1

SIZES = [[float((7 * i + 3 * j) % 11) / 11 for j in range(3)] for i in range(32)]
KINDS = [(5 * i) % 3 for i in range(32)]


def inputs(repeat=None):
    """Returns an input_fn over the same 32 examples, in batches of the size that it is given."""

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices(({"size": SIZES}, KINDS)).repeat(repeat)
        return dataset.batch(params["batch_size"], drop_remainder=repeat is None)

    return input_fn


def _estimator(e, config, **arguments):
    def metric_fn(labels, logits):
        classes = tf.argmax(logits, 1)
        return {
            "accuracy": tf1.metrics.accuracy(labels, classes),
            "entropy": tf1.metrics.mean(-tf.nn.log_softmax(logits)),
        }

    def model_fn(features, labels, mode, params):
        with tf1.variable_scope("layer"):
            kernel = tf1.get_variable("kernel", [3, 3], initializer=tf1.glorot_uniform_initializer())
            bias = tf1.get_variable("bias", [3], initializer=tf1.zeros_initializer())
        logits = tf.matmul(features["size"], kernel) + bias
        if mode == e.ModeKeys.PREDICT:
            return e.tpu.TPUEstimatorSpec(mode, predictions={"class": tf.argmax(logits, 1), "logits": logits})
        loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == e.ModeKeys.EVAL:
            metrics = {"labels": labels, "logits": logits}
            return e.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, metrics))
        step = tf1.train.get_global_step()
        rate = tf1.train.exponential_decay(params["learning_rate"], step, 30, 0.5)
        optimizer = tf1.train.AdamOptimizer(rate)
        if params["use_tpu"]:
            optimizer = tf1.tpu.CrossShardOptimizer(optimizer)
        return e.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, step))

    tpu_config = e.tpu.RunConfig(
        model_dir=config.model_dir,
        save_summary_steps=config.save_summary_steps,
        tf_random_seed=config.tf_random_seed,
        tpu_config=e.tpu.TPUConfig(iterations_per_loop=10),
    )
    return e.tpu.TPUEstimator(
        model_fn,
        config=tpu_config,
        params={"learning_rate": 0.05},
        use_tpu=False,
        train_batch_size=8,
        eval_batch_size=5,
        predict_batch_size=3,
        export_to_tpu=False,
        **arguments,
    )


class _Lines(logging.Handler):
    """Collects the log lines that begin with one of these."""

    WANTED = (
        "Running ",
        "training_loop",
        "evaluation_loop",
        "eval_on_tpu",
        "Loss for final step",
        "global_step/sec",
        "examples/sec",
        "Saving checkpoints for",
    )

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        line = record.getMessage()
        if line.startswith(self.WANTED):
            self.lines.append(line.split(": ")[0].split(" into ")[0])


class _Count(tf1.train.SessionRunHook):
    def __init__(self, counts, name):
        self.counts, self.name = counts, name
        counts[name] = 0

    def after_run(self, run_context, run_values):
        self.counts[self.name] += 1


def on_the_host(e, model_dir):
    """The content of params, the calls of hooks and host calls, the log and the checkpoints."""
    params_seen, host_calls, counts, scaffolds = {}, [], {}, []

    def as_plain(params):
        return {name: params[name] for name in sorted(params)}

    def input_fn(params, mode):
        params_seen[f"input_fn/{mode}"] = as_plain(params)
        dataset = tf.data.Dataset.from_tensor_slices(({"x": [1.0, 2.0, 3.0, 4.0, 5.0]}, [2.0] * 5))
        dataset = dataset.repeat() if mode == e.ModeKeys.TRAIN else dataset
        return dataset.batch(params["batch_size"])

    def called_on_host(name):
        def host_fn(step, value):
            def note(step, value):
                host_calls.append([name, int(step), float(value)])
                return value

            return tf1.py_func(note, [step, value], tf.float32)

        return host_fn

    def model_fn(features, labels, mode, params, config):
        params_seen[f"model_fn/{mode}"] = as_plain(params)
        params_seen["config"] = config.tpu_config.iterations_per_loop
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        prediction = weight * features["x"]
        hooks = {f"{mode}_hooks": [_Count(counts, mode)]}
        hooks = {
            "training_hooks": hooks.get("train_hooks"),
            "evaluation_hooks": hooks.get("eval_hooks"),
            "prediction_hooks": hooks.get("infer_hooks"),
        }
        if mode == e.ModeKeys.PREDICT:
            return e.tpu.TPUEstimatorSpec(mode, predictions={"y": prediction}, **hooks)
        loss = tf.reduce_mean(tf.square(prediction - labels))
        step = tf1.train.get_global_step()
        host_call = (called_on_host(mode), [tf.identity(step), loss])
        if mode == e.ModeKeys.EVAL:
            mae = (lambda a, b: {"mae": tf1.metrics.mean_absolute_error(a, b)}, [labels, prediction])
            return e.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=mae, host_call=host_call, **hooks)

        def scaffold_fn():
            return tf1.train.Scaffold(init_fn=lambda scaffold, session: scaffolds.append("init"))

        # The host sees the step before the optimizer adds to it.
        with tf.control_dependencies(host_call[1]):
            train_op = tf1.train.GradientDescentOptimizer(0.02).minimize(loss, step)
        return e.tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, host_call=host_call, scaffold_fn=scaffold_fn, **hooks
        )

    lines = _Lines()
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(lines)
    try:
        estimator = e.tpu.TPUEstimator(
            model_fn,
            config=e.tpu.RunConfig(
                e.tpu.TPUConfig(iterations_per_loop=4),
                model_dir=model_dir,
                save_checkpoints_steps=3,
                log_step_count_steps=10,
            ),
            params={"rate": 0.02},
            use_tpu=False,
            train_batch_size=4,
            eval_batch_size=2,
            predict_batch_size=3,
        )
        estimator.train(input_fn, steps=9)
        metrics = estimator.evaluate(input_fn)
        predictions = [float(row["y"]) for row in estimator.predict(input_fn)]
    finally:
        logger.removeHandler(lines)
        logger.setLevel(level)
    return {
        "params": params_seen,
        "host_calls": host_calls,
        "hook_runs": counts,
        "scaffolds": scaffolds,
        "lines": lines.lines,
        "metrics": {name: float(value) for name, value in metrics.items()},
        "predictions": predictions,
        "own_params": estimator.params,
        "log_step_count_steps": estimator.config.log_step_count_steps,
    }


PROGRAMS = {
    "tpu_classifier": Program(inputs, _estimator, {"size": tf.io.FixedLenFeature([3], tf.float32)}, v1=True)
}
SCENARIOS = {"tpu_on_the_host": Scenario(on_the_host, v1=True)}
