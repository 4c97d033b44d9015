"""Finds boxes in small pictures: anchors, a TPUEstimator, a host call and average precision as in COCO.

The precision is computed by Python over all pictures of an evaluation, so its update op is a py_func.
"""

import numpy as np
import tensorflow.compat.v1 as tf

RNG = np.random.RandomState(29)
CELLS, SIZE = 4, 16
STEP = SIZE // CELLS


def pictures(count):
    """Returns pictures with one bright box each, and the boxes as (y, x, height, width)."""
    images = (0.1 * RNG.randn(count, SIZE, SIZE, 1)).astype(np.float32)
    corners, sizes = RNG.randint(0, SIZE - 6, [count, 2]), RNG.randint(3, 7, [count, 2])
    for image, (y, x), (height, width) in zip(images, corners, sizes, strict=True):
        image[y : y + height, x : x + width] += 1
    return images, np.concatenate([corners, sizes], 1).astype(np.float32)


IMAGES, BOXES = pictures(48)
FILTERS = (0.3 * RNG.randn(3, 3, 1, 6)).astype(np.float32)
POOLED = (0.3 * RNG.randn(3, 3, 6, 8)).astype(np.float32)
OUTPUT = (0.2 * RNG.randn(8, 5)).astype(np.float32)
ANCHORS = (
    np.stack([*np.meshgrid(np.arange(CELLS), np.arange(CELLS), indexing="ij")], -1)
    .reshape(-1, 2)
    .astype(np.float32)
    * STEP
)


def iou(one, others):
    low = np.maximum(one[:2], others[:, :2])
    high = np.minimum(one[:2] + one[2:], others[:, :2] + others[:, 2:])
    both = np.prod(np.maximum(high - low, 0), 1)
    return both / (np.prod(one[2:]) + np.prod(others[:, 2:], 1) - both)


class AveragePrecision:
    """Keeps the detections of an evaluation, and computes AP from them at its end."""

    names = ("AP", "AP50", "AP75", "AR")

    def __init__(self):
        self._found = []

    def _update(self, boxes, scores, truth):
        for picture_boxes, picture_scores, true_box in zip(boxes, scores, truth, strict=True):
            order = np.argsort(-picture_scores, kind="stable")[:3]
            overlaps = iou(true_box, picture_boxes[order])
            picture = len(self._found)
            for index, overlap in zip(order, overlaps, strict=True):
                self._found.append((picture_scores[index], overlap, picture))
        return np.float32(0)

    def _evaluate(self):
        scores, overlaps, pictures = map(np.array, zip(*self._found, strict=True))
        order = np.argsort(-scores, kind="stable")
        precisions, recalls = [], []
        for threshold in np.arange(0.5, 1.0, 0.05):
            hits, done = [], set()
            for index in order:
                is_hit = overlaps[index] >= threshold and pictures[index] not in done
                hits.append(is_hit)
                done.update([pictures[index]] if is_hit else [])
            cumulative = np.cumsum(hits)
            precision = cumulative / np.arange(1, len(hits) + 1)
            precisions.append(np.sum(precision * hits) / len(set(pictures)))
            recalls.append(cumulative[-1] / len(set(pictures)))
        self._found = []
        return [np.mean(precisions), precisions[0], precisions[5], np.mean(recalls)]

    def metric_fn(self, boxes, scores, truth, losses):
        update_op = tf.py_func(self._update, [boxes, scores, truth], tf.float32)
        values = tf.py_func(lambda: np.array(self._evaluate(), np.float32), [], tf.float32, stateful=True)
        values = tf.reshape(values, [len(self.names)])
        metrics = {name: (values[i], update_op) for i, name in enumerate(self.names)}
        return {**metrics, "box_loss": tf.metrics.mean(losses)}


def host_call_fn(global_step, box_loss, learning_rate):
    step = tf.reshape(global_step, [])
    writer = tf.compat.v2.summary.create_file_writer("host", max_queue=5)
    with writer.as_default(), tf.compat.v2.summary.record_if(tf.equal(step % 3, 0)):
        tf.compat.v2.summary.scalar("box_loss", tf.reduce_mean(box_loss), step)
        tf.compat.v2.summary.scalar("rate", tf.reduce_mean(learning_rate), step)
        return tf.summary.all_v2_summary_ops()


def model_fn(features, labels, mode, params):
    images = features["image"] if isinstance(features, dict) else features
    maps = tf.nn.relu(tf.nn.conv2d(images, tf.get_variable("filters", initializer=FILTERS), 2, "SAME"))
    maps = tf.tanh(tf.nn.conv2d(maps, tf.get_variable("pooled", initializer=POOLED), 2, "SAME"))
    outputs = tf.tensordot(maps, tf.get_variable("output", initializer=OUTPUT), 1)
    outputs = tf.reshape(outputs, [-1, CELLS * CELLS, 5])
    corners = ANCHORS + STEP * tf.tanh(outputs[..., 1:3])
    sizes = STEP * tf.exp(outputs[..., 3:])
    boxes, logits = tf.concat([corners, sizes], 2), outputs[..., 0]
    if mode == tf.estimator.ModeKeys.PREDICT:
        best = tf.argmax(logits, 1)
        predictions = {"box": tf.gather(boxes, best, batch_dims=1), "anchor": best}
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions=predictions)
    distance = tf.norm(ANCHORS - labels[:, None, :2], axis=2)
    target = tf.one_hot(tf.argmin(distance, 1), CELLS * CELLS)
    focus = tf.square(target - tf.sigmoid(logits))
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=logits)
    errors = tf.reduce_sum(target[..., None] * tf.abs(boxes - labels[:, None]), [1, 2]) / STEP
    loss = tf.reduce_mean(tf.reduce_sum(focus * entropy, 1)) + params["box_weight"] * tf.reduce_mean(errors)
    if mode == tf.estimator.ModeKeys.EVAL:
        tensors = {"boxes": boxes, "scores": tf.sigmoid(logits), "truth": labels, "losses": errors}
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(AveragePrecision().metric_fn, tensors)
        )
    step = tf.train.get_or_create_global_step()
    rate = tf.train.cosine_decay(params["learning_rate"], step, 60)
    optimizer = tf.train.MomentumOptimizer(rate, 0.9)
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    host_call = (host_call_fn, [tf.reshape(step, [1]), tf.reshape(errors, [-1]), tf.reshape(rate, [1])])
    with tf.control_dependencies([host_call[1][0]]):
        train_op = optimizer.minimize(loss, step)
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=host_call)


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices((IMAGES, BOXES))
    return data.repeat(params.get("epochs")).batch(params["batch_size"], drop_remainder=True)


def main():
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=tf.estimator.tpu.RunConfig(
            model_dir="model",
            save_summary_steps=2,
            save_checkpoints_steps=16,
            tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=8),
        ),
        params={"learning_rate": 0.05, "box_weight": 0.5},
        use_tpu=False,
        train_batch_size=12,
        eval_batch_size=16,
        predict_batch_size=8,
    )
    estimator.train(input_fn, max_steps=48)
    metrics = estimator.evaluate(input_fn, steps=3)
    found = list(estimator.predict(lambda params: input_fn({**params, "epochs": 1})))
    return {
        "metrics": metrics,
        "boxes": [row["box"].tolist() for row in found[:4]],
        "anchors": [int(row["anchor"]) for row in found],
    }
