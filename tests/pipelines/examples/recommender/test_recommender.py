"""The parts of the example: data, and a model that learns them. tests/integration runs all of it."""

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as estimator
from pipelines.examples.recommender import generate, model
from tests.pipelines.examples.generated import columns, ids, parts


@pytest.mark.more
def test_the_vectors_know_more_than_averages(tmp_path):
    data = columns(generate.write_csv, tmp_path, rows=8_000)
    assert len({*zip(data["user"], data["film"], strict=True)}) == 8_000  # one rating for each pair
    features = {name: ids(data[name]) for name in model.IDS}
    train, held_out = parts(features, data["rating"].astype(np.float32)[:, None], 6_000)

    def input_fn():
        data = tf.data.Dataset.from_tensor_slices(train)
        return data.shuffle(6_000, seed=1).repeat().batch(model.BATCH_SIZE)

    config = estimator.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=1)
    sizes = {"user": generate.USERS + 1, "film": generate.FILMS + 1}
    built = model.build_estimator(sizes, config)
    built.train(input_fn, steps=800)
    loss = built.evaluate(lambda: tf.data.Dataset.from_tensors(held_out))["average_loss"]

    films = np.arange(generate.FILMS)[:, None]
    asked = {"user": np.full_like(films, generate.USERS), "film": films}  # a new user
    stars = [row["predictions"][0] for row in built.predict(lambda: batch(asked))]
    assert abs(np.mean(stars) - held_out[1].mean()) < 0.3

    averages = error_of_averages(train, held_out)
    assert np.sqrt(loss) < averages - 0.05 < held_out[1].std() - 0.1


def batch(features):
    return tf.data.Dataset.from_tensors(features)


def error_of_averages(train, held_out):
    """Returns the error of mean + user + film, by the least squares of NumPy."""

    def one_hot(part):
        users, films = np.eye(generate.USERS), np.eye(generate.FILMS)
        return np.hstack([users[part["user"][:, 0]], films[part["film"][:, 0]]])

    weights = np.linalg.lstsq(one_hot(train[0]), train[1], rcond=None)[0]
    return np.sqrt(np.mean((one_hot(held_out[0]) @ weights - held_out[1]) ** 2))
