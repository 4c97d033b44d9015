"""Trees that see text: trained by the generic trainer_fn, exported, and asked."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_transform.tf_metadata import schema_utils

import estimator_core
from pipelines.tabular import training
from pipelines.tabular.model_selection import read_candidates
from pipelines.tabular.plan import TextFeature
from pipelines.tabular.preprocessing import BUCKET_KEY, NUMERIC_KEY
from tests.pipelines.tabular.one_number_one_city import (
    BINARY,
    REGRESSION,
    SCHEMA,
    WithNotes,
    make_plan,
    serialize,
    trainer_args,
)

NUM_ROWS = 400


@pytest.mark.more
@pytest.mark.parametrize("label", [BINARY, REGRESSION])
def test_what_is_served_is_what_was_judged(tmp_path, monkeypatch, label):
    """The label depends on word 3 alone."""
    dtype = tf.string if label is BINARY else tf.float32
    monkeypatch.setattr(training.tft, "TFTransformOutput", lambda path: WithNotes(dtype))
    random = np.random.default_rng(5)
    rows = []
    for _ in range(NUM_ROWS):
        words = random.integers(0, 8, random.integers(0, 4)).tolist()
        x, city = float(random.uniform(-2, 2)), int(random.integers(0, 3))
        y = (b"yes" if 3 in words else b"no") if label is BINARY else 900.0 + 300 * (3 in words)
        transformed = {NUMERIC_KEY: x, BUCKET_KEY: int(x > 0), "category_0": city, "label": y}
        rows.append(serialize(text_0=words, note=words, x=x, city=city, **transformed))
    path = str(tmp_path / "data.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for row in rows:
            writer.write(row)
    plan = make_plan(label, model="boosted_trees", early_stopping=True, trees={"n_trees": 60}).model_copy(
        update={"text": (TextFeature(column="note", hash_buckets=10),)}
    )
    raw = {**SCHEMA, "note": tf.io.VarLenFeature(tf.int64), "y": tf.io.VarLenFeature(dtype)}
    schema = schema_utils.schema_from_feature_spec(raw)
    made = training.trainer_fn(trainer_args(plan, path, tmp_path), schema)
    variance = 0.5 if label is BINARY else 300.0**2 / 5  # of a model that does not see the words
    (found,) = read_candidates(str(tmp_path))
    assert found.loss < 0.3 * variance
    estimator = made["estimator"]
    metrics, _ = estimator_core.train_and_evaluate(estimator, made["train_spec"], made["eval_spec"])
    assert metrics["average_loss"] < 0.3 * variance
    key = "logits" if label is BINARY else "predictions"
    judged = [one[key][0] for one in estimator.predict(made["eval_spec"].input_fn)]
    exports = list((tmp_path / "model" / "export" / training.EXPORTER_NAME).iterdir())
    signature = tf.saved_model.load(str(max(exports))).signatures["predict"]
    served = signature(examples=tf.constant(rows))[key].numpy().ravel()
    assert served.tolist() == pytest.approx(judged, rel=1e-6)
    assert len(set(served.tolist())) > 1
    with tf.Graph().as_default():
        receiver = made["eval_input_receiver_fn"]()
        assert receiver.features["text_mean_0"].shape.as_list() == [None, 1]
