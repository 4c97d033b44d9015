"""LinearSDCA, example by example: the reference takes those of a larger batch in random order.

Its training loss is not compared: it is read now before, now after the step has changed the weights.
The weights after each step are.
"""

import itertools

import numpy as np
import tensorflow as tf

from tests.oracle import observe
from tests.oracle.programs.data import (
    FEATURES,
    FLOOR,
    KIND,
    LABELS,
    PLACE,
    SERVING_FEATURES,
    SIZE,
    SIZE_CLASS,
    SIZE_X_KIND,
    TAG,
    TAG_WEIGHTS,
    TAGS,
    WEIGHTED_TAG,
)
from tests.oracle.programs.program import STEPS, Scenario

tf1 = tf.compat.v1

# Fewer than steps: some examples come a second time.
NUM_EXAMPLES = 70


def _inputs(label):
    def sparse_tags(features, labels):
        sparse = {name: features[name].to_sparse() for name in ("tags", "tag_weights")}
        return {**features, **sparse}, labels

    def inputs(repeat=None):
        def input_fn():
            features = {name: values[:NUM_EXAMPLES] for name, values in FEATURES.items()}
            features["id"] = np.array([f"example {i}" for i in range(NUM_EXAMPLES)])
            features["tags"] = tf.ragged.constant(TAGS[:NUM_EXAMPLES], dtype=tf.string)
            features["tag_weights"] = tf.ragged.constant(TAG_WEIGHTS[:NUM_EXAMPLES], tf.float32)
            labels = LABELS[label][:NUM_EXAMPLES]
            dataset = tf.data.Dataset.from_tensor_slices((features, labels)).repeat(repeat)
            return dataset.batch(1).map(sparse_tags)

        return input_fn

    return inputs


def _weights_hook(norms):
    """Returns a hook that adds to `norms` the length of each variable after each step."""

    class WeightsHook(tf1.train.SessionRunHook):
        def begin(self):
            variables = sorted(tf1.global_variables(), key=lambda variable: variable.op.name)
            self.norms = {
                v.op.name: tf.norm(v.read_value()) for v in variables if v.dtype.base_dtype == tf.float32
            }

        def after_run(self, run_context, run_values):
            del run_values
            for name, norm in run_context.session.run(self.norms).items():
                norms.setdefault(name, []).append(float(norm))

    return WeightsHook()


def _scenario(label, make, v1=False):
    def run(e, model_dir):
        model = make(e, config=e.RunConfig(model_dir=model_dir, save_summary_steps=1))
        inputs, norms = _inputs(label), {}
        model.train(inputs(), steps=STEPS, hooks=[_weights_hook(norms)])
        variables = observe.variables_of(model.latest_checkpoint())
        rows = itertools.islice(model.predict(inputs(repeat=1)), 3)
        return {
            "norms": norms,
            "variables": {name: [v["shape"], v["dtype"]] for name, v in variables.items()},
            "values": {name: v["values"] for name, v in variables.items() if "HashTable" not in name},
            "tags": observe.tags_of(model_dir),
            "metrics": {key: float(v) for key, v in model.evaluate(inputs(repeat=1)).items()},
            "predictions": [{k: observe.as_json(v) for k, v in row.items()} for row in rows],
            "signatures": observe.signatures_after_export(e, model, SERVING_FEATURES),
        }

    return Scenario(run, v1=v1)


SCENARIOS = {
    "sdca_classifier": _scenario(
        "binary",
        lambda e, **kw: e.LinearClassifier(
            [SIZE, PLACE, KIND, FLOOR, SIZE_CLASS, SIZE_X_KIND, TAG],
            optimizer=e.experimental.LinearSDCA("id", symmetric_l2_regularization=2.0),
            **kw,
        ),
    ),
    "sdca_classifier_weighted": _scenario(
        "binary",
        lambda e, **kw: e.LinearClassifier(
            [SIZE, KIND, WEIGHTED_TAG],
            weight_column="weight",
            optimizer=e.experimental.LinearSDCA(
                "id", num_loss_partitions=2, num_table_shards=2, adaptive=True
            ),
            **kw,
        ),
    ),
    "sdca_regressor": _scenario(
        "number",
        lambda e, **kw: e.LinearRegressor(
            [SIZE, PLACE, KIND, SIZE_CLASS],
            optimizer=e.experimental.LinearSDCA(
                "id", symmetric_l1_regularization=0.3, symmetric_l2_regularization=0.5
            ),
            **kw,
        ),
    ),
    "sdca_binary_head": _scenario(
        "binary",
        lambda e, **kw: e.LinearEstimator(
            e.BinaryClassHead(name="sold"), [SIZE, FLOOR], optimizer=e.experimental.LinearSDCA("id"), **kw
        ),
    ),
    "sdca_v1_classifier": _scenario(
        "binary",
        lambda e, **kw: e.LinearClassifier(
            [SIZE, KIND, TAG],
            optimizer=e.experimental.LinearSDCA("id", symmetric_l1_regularization=0.1),
            **kw,
        ),
        v1=True,
    ),
    "sdca_v1_regressor": _scenario(
        "number",
        lambda e, **kw: e.LinearRegressor(
            [SIZE, PLACE], weight_column="weight", optimizer=e.experimental.LinearSDCA("id"), **kw
        ),
        v1=True,
    ),
}
