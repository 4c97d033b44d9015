from concurrent import futures

import pytest
import tensorflow as tf

import estimator_core as est


def receiver_fn():
    return est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None], tf.float32)})()


# After n steps of the conftest's model the weight is 2 - 2 / 2^n.


def test_it_predicts_batches_of_any_size(make_estimator, input_fn):
    estimator = make_estimator().train(input_fn, steps=1)
    with estimator.predictor(receiver_fn) as predict:
        assert predict.input_names == ["x"]
        assert predict({"x": [1.0, 3.0]})["y"].tolist() == [1.0, 3.0]
        assert predict([5.0])["y"].tolist() == [5.0]


def test_it_follows_the_newest_checkpoint_with_one_graph(make_estimator, input_fn):
    estimator = make_estimator().train(input_fn, steps=1)
    with estimator.predictor(receiver_fn) as predict:
        assert predict([1.0])["y"] == [1.0]
        make_estimator().train(input_fn, steps=1)
        assert predict([1.0])["y"] == [1.5]


def test_it_stays_with_the_checkpoint_it_was_given(make_estimator, input_fn):
    estimator = make_estimator().train(input_fn, steps=1)
    with estimator.predictor(receiver_fn, estimator.latest_checkpoint()) as predict:
        estimator.train(input_fn, steps=1)
        assert predict([1.0])["y"] == [1.0]


def test_it_can_be_used_again_after_closing(make_estimator, input_fn):
    predict = make_estimator().train(input_fn, steps=1).predictor(receiver_fn)
    assert predict([1.0])["y"] == [1.0]
    predict.close()
    assert predict([1.0])["y"] == [1.0]
    predict.close()


def test_wrong_names_are_told_with_the_right_ones(make_estimator, input_fn):
    estimator = make_estimator().train(input_fn, steps=1)
    predict = estimator.predictor(receiver_fn)
    with pytest.raises(ValueError, match=r"\['x'\].*\['z'\]"):
        predict({"z": [1.0]})


def test_without_a_checkpoint_there_is_nothing_to_predict_with(make_estimator):
    with pytest.raises(ValueError, match="Couldn't find trained model"):
        make_estimator().predictor(receiver_fn)


def test_threads_share_it(make_estimator, input_fn):
    estimator = make_estimator().train(input_fn, steps=1)
    with estimator.predictor(receiver_fn) as predict, futures.ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda x: predict([x])["y"][0], [1.0, 2.0, 3.0, 4.0]))
    assert rows == [1.0, 2.0, 3.0, 4.0]


def test_a_checkpoint_that_has_gone_is_told(make_estimator, input_fn):
    estimator = make_estimator().train(input_fn, steps=1)
    predict = estimator.predictor(receiver_fn)
    tf.io.gfile.rmtree(estimator.model_dir)
    with pytest.raises(ValueError, match="The checkpoint to predict with no longer exists"):
        predict([1.0])
