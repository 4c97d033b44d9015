"""The parts of the example: data, and a model that learns them. tests/integration runs all of it."""

import keras
import numpy as np
import tensorflow as tf
from sklearn.metrics import roc_auc_score

import estimator_core as estimator
from pipelines.examples.keras_model import generate, model
from tests.pipelines.examples.generated import columns, ids, parts, scaled


def test_the_estimator_ranks_late_parcels_better_than_a_linear_rule(tmp_path):
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
    by_weight = roc_auc_score(held_out[1], held_out[0]["weight_kg"])
    by_distance = roc_auc_score(held_out[1], held_out[0]["distance_km"])
    assert found > max(by_weight, by_distance) + 0.05
