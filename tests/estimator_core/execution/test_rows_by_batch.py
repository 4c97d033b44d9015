"""Batches of rows that are taken from arrays at once are those of tf.data, in the same order."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.rows_by_batch import initializer_by_batch
from tests.estimator_core.programs import descent

ROWS = 500


def arrays():
    rng = np.random.default_rng(0)
    features = {
        "number": rng.normal(size=ROWS).astype(np.float32),
        "image": rng.integers(0, 255, (ROWS, 4, 3)).astype(np.uint8),
        "word": np.array([f"word {index}".encode() for index in range(ROWS)]),
        "none": np.zeros([ROWS, 0], np.float32),
    }
    return features, rng.integers(0, 9, ROWS)


def rows():
    return tf.data.Dataset.from_tensor_slices(arrays())


def with_options(dataset):
    options = tf.data.Options()
    options.deterministic = True
    options.threading.private_threadpool_size = 2
    return dataset.with_options(options)


def doubled(features, label):
    return {**features, "twice": 2 * features["number"]}, label


AT_ONCE = {
    "the usual one": lambda: rows().shuffle(100).repeat(3).batch(32),
    "prefetched": lambda: rows().shuffle(ROWS).repeat(3).batch(32).prefetch(1),
    "repeated first": lambda: rows().repeat(3).shuffle(100).batch(32),
    "repeated last": lambda: rows().shuffle(100, seed=5).batch(32).repeat(3),
    "one order": lambda: rows().shuffle(100, reshuffle_each_iteration=False).repeat(2).batch(32),
    "only whole batches": lambda: rows().batch(32, drop_remainder=True),
    "in order": lambda: rows().batch(64),
    "cached": lambda: rows().cache().shuffle(100).repeat(2).batch(32),
    "a part": lambda: rows().skip(20).take(300).shard(3, 1).batch(16),
    "mapped by batch": lambda: rows().shuffle(100).batch(32).map(doubled, tf.data.AUTOTUNE).take(9),
    "with options": lambda: with_options(rows().shuffle(100).batch(32).prefetch(2)),
    "features alone": lambda: tf.data.Dataset.from_tensor_slices(arrays()[0]).batch(50),
    "one array": lambda: tf.data.Dataset.from_tensor_slices(np.arange(90)).shuffle(90).batch(20),
    "fused": lambda: rows().apply(tf.data.experimental.shuffle_and_repeat(100, 2)).batch(32),
}

# The content of the rows matters, or nothing would be gained.
ROW_BY_ROW = {
    "mapped": lambda tmp_path: rows().map(doubled).batch(32),
    "filtered": lambda tmp_path: rows().filter(lambda features, label: label > 4).batch(32),
    "cached on disk": lambda tmp_path: rows().cache(str(tmp_path / "cache")).batch(32),
    "small batches": lambda tmp_path: rows().batch(8),
    "batches of batches": lambda tmp_path: rows().batch(32).batch(16),
    "several": lambda tmp_path: rows().concatenate(rows()).batch(32),
    "zipped": lambda tmp_path: tf.data.Dataset.zip((rows(), rows())).batch(32),
    "padded": lambda tmp_path: rows().padded_batch(32),
    "numbers": lambda tmp_path: tf.data.Dataset.range(90).batch(32),
    "sparse": lambda tmp_path: tf.data.Dataset.from_tensor_slices(tf.sparse.from_dense(np.eye(90))).batch(32),
    "no batches": lambda tmp_path: rows().shuffle(100),
    "a size of its own": lambda tmp_path: rows().batch(tf1.placeholder_with_default(np.int64(32), [])),
    "of unknown length": lambda tmp_path: tf.data.Dataset.from_tensor_slices(
        tf1.placeholder_with_default(np.arange(90), [None])
    ).batch(32),
}


def read(make, choose):
    """Returns the batches of two sessions, the specs of an element, and True if they are taken at once."""
    with tf.Graph().as_default():
        tf1.set_random_seed(3)
        iterator = tf1.data.make_initializable_iterator(make())
        element = iterator.get_next()
        initializer = choose(iterator.initializer)
        batches = []
        for _ in range(2):
            with tf1.Session() as session:
                session.run(initializer)
                while True:
                    try:
                        batches.append(session.run(element))
                    except tf.errors.OutOfRangeError:
                        break
        return batches, iterator.element_spec, initializer is not iterator.initializer


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", AT_ONCE)
def test_the_batches_are_the_same(name):
    found, spec, at_once = read(AT_ONCE[name], initializer_by_batch)
    expected, expected_spec, _ = read(AT_ONCE[name], lambda initializer: initializer)
    assert at_once
    assert spec == expected_spec
    assert len(found) == len(expected) > 2
    for batch, other in zip(found, expected, strict=True):
        tf.nest.assert_same_structure(batch, other)
        for value, right in zip(tf.nest.flatten(batch), tf.nest.flatten(other), strict=True):
            assert value.dtype == right.dtype
            np.testing.assert_array_equal(value, right)


def test_tensorflow_finds_nothing_wrong_with_the_types(capfd):
    """It logs 35 lines if a copied dataset still names the types of the rows."""
    read(lambda: rows().batch(64), initializer_by_batch)
    assert "Type inference failed" not in capfd.readouterr().err


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_other_datasets_stay_as_they_are(name, tmp_path, graph):
    initializer = tf1.data.make_initializable_iterator(ROW_BY_ROW[name](tmp_path)).initializer
    assert initializer_by_batch(initializer) is initializer


def test_an_iterator_whose_state_is_saved_stays_as_it_is(graph):
    iterator = tf1.data.make_initializable_iterator(rows().batch(32))
    tf.data.experimental.make_saveable_from_iterator(iterator)
    assert initializer_by_batch(iterator.initializer) is iterator.initializer


def test_what_a_dataset_waits_for_is_done(graph):
    begun = tf1.get_variable("begun", initializer=0, use_resource=True)
    with tf.control_dependencies([begun.assign_add(1)]):
        dataset = rows().batch(32)
    initializer = initializer_by_batch(tf1.data.make_initializable_iterator(dataset).initializer)
    with tf1.Session() as session:
        session.run(begun.initializer)
        session.run(initializer)
        assert session.run(begun) == 1


def model_fn(features, labels, mode):
    """A model with random numbers, whose seeds depend on the number of operations before them."""
    weight = tf1.get_variable("weight", [1, 3])
    hidden = tf.nn.dropout(features["number"][:, tf.newaxis] @ weight, rate=0.5)
    predictions = tf.reduce_sum(hidden, axis=1)
    loss = tf.reduce_mean(tf.square(predictions - tf.cast(labels, tf.float32)))
    return est.EstimatorSpec(mode, predictions, loss, descent(loss, 0.01))


@pytest.mark.more
def test_a_training_gives_the_same_weights(tmp_path, monkeypatch):
    def weight_of(name):
        config = est.RunConfig(model_dir=str(tmp_path / name), tf_random_seed=4)
        estimator = est.Estimator(model_fn, config=config)
        estimator.train(lambda: rows().shuffle(200).repeat().batch(32), steps=20)
        return estimator.get_variable_value("weight").tolist()

    found = weight_of("at once")
    made = []
    monkeypatch.setattr("estimator_core.execution.inputs.initializer_by_batch", made.append)
    with pytest.raises(TypeError):  # `made.append` returns None
        weight_of("not at all")
    assert made
    monkeypatch.setattr(
        "estimator_core.execution.inputs.initializer_by_batch", lambda initializer: initializer
    )
    assert weight_of("row by row") == found
