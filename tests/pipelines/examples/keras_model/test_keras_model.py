"""The parts of the example: data, and a model that learns them. tests/integration runs all of it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import estimator_core as estimator
from pipelines.examples.keras_model import generate, model
from tests.pipelines.examples.generated import columns, ids, parts, scaled


@pytest.mark.more
def test_the_estimator_is_better_than_a_linear_model(tmp_path):
    data = columns(generate.write_csv, tmp_path, rows=2_000)
    distance = np.log1p(data["distance_km"].astype(float))
    weight = np.where(data["weight_kg"] == "", "nan", data["weight_kg"]).astype(float)
    assert 0.02 < np.isnan(weight).mean() < 0.08
    features = {"distance_km": scaled(distance), "weight_kg": scaled(weight)}
    features["carrier"] = ids(data["carrier"])
    train, held_out = parts(features, data["late"].astype(np.int64)[:, None], 1_500)

    def input_fn():
        return tf.data.Dataset.from_tensor_slices(train).shuffle(1_500, seed=1).repeat().batch(64)

    keras.utils.set_random_seed(1)
    built = estimator.model_to_estimator(model.build_model(4), model_dir=str(tmp_path / "model"))
    built.train(input_fn, steps=200)
    answers = built.predict(lambda: tf.data.Dataset.from_tensors(held_out[0]))
    found = roc_auc_score(held_out[1], [answer["late"] for answer in answers])

    # To a linear model, distance means the same with each carrier.
    numbers = ("distance_km", "weight_kg")
    flat = [
        np.hstack([np.eye(3)[part[0]["carrier"][:, 0]], *(part[0][name] for name in numbers)])
        for part in (train, held_out)
    ]
    linear = LogisticRegression().fit(flat[0], train[1][:, 0]).predict_proba(flat[1])[:, 1]
    assert found > roc_auc_score(held_out[1], linear) + 0.02
