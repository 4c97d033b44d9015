"""The parts of the example: data, and a model that learns them. tests/integration runs all of it."""

import numpy as np
import pytest
import tensorflow as tf
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from pipelines.examples.tpu import generate, model
from tests.pipelines.examples.generated import columns, parts, scaled


@pytest.mark.more
@pytest.mark.parametrize("num_shards", [0, 4])
def test_the_model_is_better_than_a_linear_one(num_shards, tmp_path):
    data = columns(generate.write_csv, tmp_path, rows=3_000)
    features = {name: scaled(data[name].astype(float)) for name in model.NUMBERS}
    train, held_out = parts(features, data["fails"].astype(np.float32)[:, None], 2_000)
    sizes = set()

    def input_fn(params):
        sizes.add(params["batch_size"])
        data = tf.data.Dataset.from_tensor_slices(train).shuffle(2_000, seed=1).repeat()
        return data.batch(params["batch_size"], drop_remainder=True)

    def all_held_out(params):
        return tf.data.Dataset.from_tensor_slices(held_out[0]).batch(params["batch_size"])

    built = model.build_estimator(num_shards, str(tmp_path / "model"))
    built.train(input_fn, max_steps=200)
    found = [answer["probability"][0] for answer in built.predict(all_held_out)]
    assert sizes == {model.BATCH_SIZE}

    flat = [np.hstack([part[0][name] for name in model.NUMBERS]) for part in (train, held_out)]
    linear = LogisticRegression().fit(flat[0], train[1][:, 0]).predict_proba(flat[1])[:, 1]
    labels = held_out[1][:, 0]
    assert roc_auc_score(labels, found) > roc_auc_score(labels, linear) + 0.02
