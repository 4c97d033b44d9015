from concurrent import futures

import pytest
import tensorflow as tf

import estimator_core as est


def receiver_fn():
    return est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None], tf.float32)})()


@pytest.fixture
def estimator(make_estimator, input_fn):
    """After one step the weight is 1, after two 1.5."""
    return make_estimator().train(input_fn, steps=1)


def test_it_predicts_batches_of_any_size_and_again_after_closing(estimator):
    with estimator.predictor(receiver_fn) as predict:
        assert predict.input_names == ["x"]
        assert predict({"x": [1.0, 3.0]})["y"].tolist() == [1.0, 3.0]
        assert predict([5.0])["y"].tolist() == [5.0]
    assert predict([1.0])["y"] == [1.0]
    predict.close()


def test_it_follows_the_newest_checkpoint_unless_it_was_given_one(estimator, make_estimator, input_fn):
    with (
        estimator.predictor(receiver_fn) as follows,
        estimator.predictor(receiver_fn, estimator.latest_checkpoint()) as stays,
    ):
        assert follows([1.0])["y"] == [1.0]
        make_estimator().train(input_fn, steps=1)
        assert follows([1.0])["y"] == [1.5]
        assert stays([1.0])["y"] == [1.0]


def test_wrong_names_are_told_with_the_right_ones(estimator):
    with pytest.raises(ValueError, match=r"\['x'\].*\['z'\]"):
        estimator.predictor(receiver_fn)({"z": [1.0]})


def test_threads_share_it(estimator):
    with estimator.predictor(receiver_fn) as predict, futures.ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda x: predict([x])["y"][0], [1.0, 2.0, 3.0, 4.0]))
    assert rows == [1.0, 2.0, 3.0, 4.0]


def test_without_a_checkpoint_there_is_nothing_to_predict_with(estimator, make_estimator):
    predict = estimator.predictor(receiver_fn)
    tf.io.gfile.rmtree(estimator.model_dir)
    with pytest.raises(ValueError, match="The checkpoint to predict with no longer exists"):
        predict([1.0])
    with pytest.raises(ValueError, match="Couldn't find trained model"):
        make_estimator().predictor(receiver_fn)
