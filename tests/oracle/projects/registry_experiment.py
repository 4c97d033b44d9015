"""Problems, models and hyperparameters in a registry, and an Experiment that runs schedules of them.

Sequence libraries wrote their own HParams and Experiment after tf.contrib had gone, and chose a schedule
such as continuous_train_and_eval by its name.
"""

import functools
import inspect

import numpy as np
import tensorflow.compat.v1 as tf

RNG = np.random.RandomState(41)
TOKENS = RNG.randint(1, 12, [64, 6]).astype(np.int32)
TOKENS[:, 4:] *= RNG.randint(0, 2, [64, 2]).astype(np.int32)
TARGETS = ((TOKENS == 3).any(1).astype(int) + (TOKENS == 7).any(1)).astype(np.int32)
START = RNG.uniform(-0.4, 0.4, 4000).astype(np.float32)

MODELS, PROBLEMS, HPARAMS = {}, {}, {}


def register(registry):
    def add(thing):
        registry[thing.__name__.lower()] = thing
        return thing

    return add


class HParams:
    """Hyperparameters as attributes, with the part of tf.contrib's class that was used."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def parse(self, text):
        for pair in filter(None, text.split(",")):
            name, value = pair.split("=")
            setattr(self, name, type(getattr(self, name))(value))
        return self

    def values(self):
        return dict(self.__dict__)


@register(HPARAMS)
def attention_tiny():
    return HParams(
        hidden_size=8, num_layers=1, learning_rate=0.5, warmup_steps=8, batch_size=16, clip_norm=1.0
    )


@register(PROBLEMS)
class CountTokens:
    """Classifies a sequence by how many of two tokens are in it."""

    vocabulary_size, num_classes = 12, 3

    def input_fn(self, mode, hparams, params=None):
        data = tf.data.Dataset.from_tensor_slices({"inputs": TOKENS, "targets": TARGETS})
        if mode == tf.estimator.ModeKeys.TRAIN:
            data = data.repeat()
        data = data.batch(hparams.batch_size, drop_remainder=mode == tf.estimator.ModeKeys.TRAIN)
        return data.map(lambda features: (features, features["targets"])).prefetch(2)


class Model:
    """Calls `body` with the features, and makes an EstimatorSpec of its logits."""

    def __init__(self, hparams, problem):
        self.hparams, self.problem, self._next = hparams, problem, 0

    def weights(self, name, shape):
        size = int(np.prod(shape))
        start = START[self._next : self._next + size].reshape(shape)
        self._next += size
        return tf.get_variable(name, initializer=start)

    @classmethod
    def make_model_fn(cls, hparams, problem):
        return functools.partial(cls._estimator_model_fn, hparams, problem)

    @classmethod
    def _estimator_model_fn(cls, hparams, problem, features, labels, mode, config=None, params=None):
        model = cls(hparams, problem)
        with tf.variable_scope(cls.__name__.lower()):
            logits = model.body(features["inputs"])
        if mode == tf.estimator.ModeKeys.PREDICT:
            outputs = {"outputs": tf.argmax(logits, 1), "scores": tf.nn.log_softmax(logits)}
            return tf.estimator.EstimatorSpec(mode, predictions=outputs)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        metrics = {
            "accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1)),
            "neg_log_perplexity": tf.metrics.mean(
                -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            ),
        }
        step = tf.train.get_global_step()
        ratio = (tf.cast(step, tf.float32) + 1) / hparams.warmup_steps
        rate = config.rate_scale * hparams.learning_rate * tf.minimum(ratio, tf.math.rsqrt(ratio))
        tf.summary.scalar("learning_rate", rate)
        optimizer = tf.train.GradientDescentOptimizer(rate)
        gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
        gradients, norm = tf.clip_by_global_norm(gradients, hparams.clip_norm)
        tf.summary.scalar("global_gradient_norm", norm)
        train_op = optimizer.apply_gradients(zip(gradients, variables, strict=True), step)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


@register(MODELS)
class Attention(Model):
    """Self-attention over the tokens that are not padding."""

    def body(self, inputs):
        size = self.hparams.hidden_size
        table = self.weights("embedding", [self.problem.vocabulary_size, size])
        states = tf.gather(table, inputs) * size**0.5
        is_token = tf.cast(inputs > 0, tf.float32)
        for layer in range(self.hparams.num_layers):
            with tf.variable_scope(f"layer_{layer}"):
                query, key, value = (
                    tf.tensordot(states, self.weights(name, [size, size]), 1) for name in "qkv"
                )
                scores = tf.matmul(query, key, transpose_b=True) * size**-0.5
                scores += -1e9 * (1 - is_token[:, tf.newaxis, :])
                states += tf.matmul(tf.nn.softmax(scores), value)
                inner = tf.nn.relu(tf.tensordot(states, self.weights("in", [size, 2 * size]), 1))
                states += tf.tensordot(inner, self.weights("out", [2 * size, size]), 1)
        pooled = tf.reduce_sum(states * is_token[..., tf.newaxis], 1)
        return tf.matmul(pooled, self.weights("softmax", [size, self.problem.num_classes])) / 6


class Experiment:
    """Runs an Estimator by one of its schedules."""

    def __init__(self, estimator, hparams, train_spec, eval_spec, eval_every):
        self._estimator, self._hparams = estimator, hparams
        self._train_spec, self._eval_spec, self._eval_every = train_spec, eval_spec, eval_every

    @property
    def train_steps(self):
        return self._train_spec.max_steps

    def continuous_train_and_eval(self, continuous_eval_predicate_fn=None):
        results, step = [], 0
        while step < self.train_steps:
            step = min(step + self._eval_every, self.train_steps)
            self._estimator.train(self._train_spec.input_fn, hooks=self._train_spec.hooks, max_steps=step)
            results.append(self.evaluate())
            if continuous_eval_predicate_fn and not continuous_eval_predicate_fn(results[-1]):
                break
        return results

    def train_and_evaluate(self):
        tf.estimator.train_and_evaluate(self._estimator, self._train_spec, self._eval_spec)
        return [self.evaluate()]

    def evaluate(self):
        return self._estimator.evaluate(
            self._eval_spec.input_fn, steps=self._eval_spec.steps, hooks=self._eval_spec.hooks
        )


def create_experiment(model_name, hparams_set, problem_name, hparams="", **schedule):
    hparams = HPARAMS[hparams_set]().parse(hparams)
    problem = PROBLEMS[problem_name]()
    config = tf.estimator.RunConfig(
        model_dir=schedule.pop("output_dir"),
        save_summary_steps=1,
        save_checkpoints_steps=schedule["eval_every"],
        keep_checkpoint_max=2,
    )
    config.rate_scale = 0.8  # such libraries put settings of their own on the RunConfig
    input_fns = {
        mode: functools.partial(problem.input_fn, mode, hparams)
        for mode in (tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL)
    }
    estimator = tf.estimator.Estimator(
        MODELS[model_name].make_model_fn(hparams, problem), config=config, params=hparams.values()
    )
    train_spec = tf.estimator.TrainSpec(
        input_fns[tf.estimator.ModeKeys.TRAIN], max_steps=schedule["train_steps"]
    )
    eval_spec = tf.estimator.EvalSpec(
        input_fns[tf.estimator.ModeKeys.EVAL], steps=None, start_delay_secs=0, throttle_secs=0
    )
    return Experiment(estimator, hparams, train_spec, eval_spec, schedule["eval_every"])


def main():
    seen = {}
    for name, hparams in (
        ("continuous_train_and_eval", "num_layers=2"),
        ("train_and_evaluate", "hidden_size=6,clip_norm=0.5"),
    ):
        experiment = create_experiment(
            "attention",
            "attention_tiny",
            "counttokens",
            hparams,
            output_dir=name,
            train_steps=20,
            eval_every=8,
        )
        schedule = dict(inspect.getmembers(experiment, inspect.ismethod))[name]
        seen[name] = schedule()
    return seen
