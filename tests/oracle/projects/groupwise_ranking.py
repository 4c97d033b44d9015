"""Ranks lists of documents: scores of groups, a ranking head, list-wise losses and metrics.

Ranking libraries give their model_fn by a function of a group score function and a head.
"""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
RNG = np.random.RandomState(53)
QUERIES, LENGTH, GROUP = 36, 5, 2
DOCUMENTS = RNG.uniform(-1, 1, [QUERIES, LENGTH, 3]).astype(np.float32)
TOPIC = RNG.randint(0, 4, [QUERIES, 1])
RELEVANCE = np.clip(np.round(DOCUMENTS[..., 0] + DOCUMENTS[..., 1] + 0.8), 0, 2).astype(np.float32)
RELEVANCE[::3, 3:] = -1  # lists of three: the rest is padding
HIDDEN = RNG.uniform(-0.5, 0.5, [GROUP * 3 + 2, 8]).astype(np.float32)
SCORE = RNG.uniform(-0.5, 0.5, [8, GROUP]).astype(np.float32)
TABLE = RNG.uniform(-0.5, 0.5, [4, 2]).astype(np.float32)


def softmax_loss(labels, logits):
    """Softmax cross-entropy of each list with the labels as its distribution."""
    is_valid = labels >= 0
    gains = tf.where(is_valid, labels, tf.zeros_like(labels))
    logits = tf.where(is_valid, logits, tf.fill(tf.shape(logits), -20.0))
    total = tf.reduce_sum(gains, 1)
    losses = tf.nn.softmax_cross_entropy_with_logits(
        labels=gains / tf.maximum(total, 1.0)[:, None], logits=logits
    )
    return tf1.losses.compute_weighted_loss(
        losses, total, reduction=tf1.losses.Reduction.SUM_BY_NONZERO_WEIGHTS
    )


def ndcg(topn):
    def metric(labels, logits):
        gains = tf.pow(2.0, tf.maximum(labels, 0.0)) - 1
        logits = tf.where(labels >= 0, logits, tf.fill(tf.shape(logits), -1e6))
        discounts = 1 / np.log2(np.arange(topn) + 2).astype(np.float32)
        _, order = tf.nn.top_k(logits, topn)
        reached = tf.reduce_sum(tf.gather(gains, order, batch_dims=1) * discounts, 1)
        best = tf.reduce_sum(tf.nn.top_k(gains, topn)[0] * discounts, 1)
        return tf1.metrics.mean(tf.math.divide_no_nan(reached, best), tf.cast(best > 0, tf.float32))

    return metric


def mean_reciprocal_rank(labels, logits):
    logits = tf.where(labels >= 0, logits, tf.fill(tf.shape(logits), -1e6))
    _, order = tf.nn.top_k(logits, LENGTH)
    is_hit = tf.cast(tf.gather(labels, order, batch_dims=1) >= 2, tf.float32)
    return tf1.metrics.mean(tf.reduce_max(is_hit / np.arange(1.0, LENGTH + 1, dtype=np.float32), 1))


class RankingHead:
    """Makes an EstimatorSpec of the scores of lists, as libraries did before `Head` was public."""

    def __init__(self, loss_fn, eval_metric_fns, train_op_fn):
        self._loss_fn, self._metric_fns, self._train_op_fn = loss_fn, eval_metric_fns, train_op_fn

    def create_estimator_spec(self, mode, logits, labels=None):
        if mode == tf.estimator.ModeKeys.PREDICT:
            outputs = {
                "serving_default": tf.estimator.export.RegressionOutput(logits),
                "regression": tf.estimator.export.RegressionOutput(logits),
                "predict": tf.estimator.export.PredictOutput({"scores": logits}),
            }
            return tf.estimator.EstimatorSpec(mode, predictions=logits, export_outputs=outputs)
        loss = self._loss_fn(labels, logits)
        if mode == tf.estimator.ModeKeys.EVAL:
            metrics = {f"metric/{name}": fn(labels, logits) for name, fn in self._metric_fns.items()}
            metrics["labels_mean"] = tf1.metrics.mean(labels, labels >= 0)
            return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=self._train_op_fn(loss))


def make_groupwise_ranking_fn(score_fn, head):
    """Returns a model_fn whose scores are means over all groups of neighbours that a document is in."""

    def model_fn(features, labels, mode, params, config):
        context = tf1.feature_column.input_layer(features, context_columns())
        documents = features["documents"]
        starts = np.arange(LENGTH)
        members = (starts[:, None] + np.arange(GROUP)) % LENGTH  # [groups, GROUP]
        groups = tf.reshape(tf.gather(documents, members, axis=1), [-1, LENGTH, GROUP * 3])
        context = tf.tile(context[:, None], [1, LENGTH, 1])
        scores = score_fn(tf.concat([groups, context], 2), mode, params, config)
        one_hot = tf.one_hot(members, LENGTH)  # [groups, GROUP, LENGTH]
        logits = tf.einsum("bgm,gml->bl", scores, one_hot) / GROUP
        return head.create_estimator_spec(mode, logits, labels)

    return model_fn


def context_columns():
    topic = tf.feature_column.categorical_column_with_identity("topic", 4)
    return [tf.feature_column.embedding_column(topic, 2, initializer=tf1.constant_initializer(TABLE))]


def score_fn(inputs, mode, params, config):
    with tf1.variable_scope("group_score"):
        hidden = tf1.get_variable("hidden", initializer=HIDDEN)
        output = tf1.get_variable("output", initializer=SCORE)
    if mode == tf.estimator.ModeKeys.TRAIN:
        tf1.summary.scalar("input_sparsity", tf.nn.zero_fraction(inputs))
    return tf.tensordot(tf.nn.softplus(tf.tensordot(inputs, hidden, 1)), output, 1)


def train_op_fn(loss):
    optimizer = tf1.train.AdagradOptimizer(0.1, 0.4)
    return optimizer.minimize(loss, global_step=tf1.train.get_global_step())


def input_fn(epochs, batch_size):
    features = {"documents": DOCUMENTS, "topic": TOPIC}
    data = tf.data.Dataset.from_tensor_slices((features, RELEVANCE))
    return data.repeat(epochs).batch(batch_size)


def main():
    head = RankingHead(
        softmax_loss, {"ndcg@3": ndcg(3), "ndcg@5": ndcg(5), "mrr": mean_reciprocal_rank}, train_op_fn
    )
    config = tf.estimator.RunConfig("model", save_summary_steps=1, save_checkpoints_steps=9)
    estimator = tf.estimator.Estimator(
        make_groupwise_ranking_fn(score_fn, head), config=config, params={"group_size": GROUP}
    )
    spec = {
        "documents": tf.io.FixedLenFeature([LENGTH, 3], tf.float32),
        "topic": tf.io.FixedLenFeature([1], tf.int64),
    }
    exporter = tf.estimator.BestExporter(
        serving_input_receiver_fn=tf.estimator.export.build_parsing_serving_input_receiver_fn(spec),
        compare_fn=lambda best_eval_result, current_eval_result: (
            current_eval_result["metric/ndcg@5"] > best_eval_result["metric/ndcg@5"]
        ),
        exports_to_keep=1,
    )
    metrics, _ = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(lambda: input_fn(None, 12), max_steps=18),
        tf.estimator.EvalSpec(
            lambda: input_fn(1, 10), steps=None, exporters=exporter, start_delay_secs=0, throttle_secs=0
        ),
    )
    scores = [row.tolist() for row in estimator.predict(lambda: input_fn(1, 12))]
    return {"metrics": metrics, "scores": scores[:4]}
