import os

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.experimental import warm_start_report
from tests.estimator_core.programs import batch_of, counting, values_of, zeros


@pytest.fixture
def checkpoint(tmp_path):
    """Writes word vectors for a, b, c, d, and more."""
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.get_variable("vectors", initializer=[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
        tf1.get_variable("kernel", initializer=[[5.0], [6.0]])
        tf1.get_variable("old_bias", initializer=[7.0])
        tf1.get_variable("global_step", initializer=9)
        session.run(tf1.global_variables_initializer())
        return tf1.train.Saver().save(session, str(tmp_path / "old" / "model.ckpt"))


@pytest.fixture
def vocab_info(tmp_path):
    """The new vocabulary is c, e, a: two of its words are old ones."""
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("a\nb\nc\nd\n")
    new.write_text("c\ne\na\n")
    return est.VocabInfo(str(new), 3, 0, str(old), backup_initializer=tf1.zeros_initializer())


def _model_fn(features, labels, mode, params):
    """Variables of the shapes in `params`, by name; the loss is their sum."""
    return counting(mode, tf.add_n([tf.reduce_sum(zeros(name, shape)) for name, shape in params.items()]))


_input_fn = batch_of({"x": [0.0]})


def _estimator(model_dir, shapes, warm_start_from=None):
    return est.Estimator(_model_fn, model_dir, params=shapes, warm_start_from=warm_start_from)


def test_each_way_of_starting_shows(tmp_path, checkpoint, vocab_info):
    shapes = {"vectors": [3, 2], "kernel": [2, 1], "bias": [1], "extra": [2]}
    settings = est.WarmStartSettings(
        checkpoint,
        "vectors|kernel|bias",
        var_name_to_vocab_info={"vectors": vocab_info},
        var_name_to_prev_var_name={"bias": "old_bias"},
    )
    estimator = _estimator(tmp_path / "new", shapes, settings)
    report = warm_start_report(estimator, _input_fn)
    assert str(report).splitlines() == [
        f"Warm start from {checkpoint}: 2 loaded, 1 remapped, 2 fresh",
        "variable     shape   start     in the checkpoint",
        "bias         [1]     loaded    old_bias [1]       has another name there",
        "extra        [2]     fresh",
        "global_step  []      fresh",
        "kernel       [2, 1]  loaded    [2, 1]",
        "vectors      [3, 2]  remapped  [4, 2]             2 of 3 words are known",
    ]
    report.check()
    assert not os.path.exists(estimator.model_dir)  # nothing ran, nothing was written
    # Training does as the table says: rows c, e, a of the vectors.
    estimator.train(_input_fn, steps=1)
    found = {name: value.tolist() for name, value in values_of(estimator).items()}
    vectors = [[3, 3], [0, 0], [1, 1]]
    assert found == {"vectors": vectors, "kernel": [[5], [6]], "bias": [7], "extra": [0, 0], "global_step": 1}


def test_what_would_fail_shows_and_training_says_the_same(tmp_path, checkpoint):
    shapes = {"kernel": [3, 1], "extra": [2], "old_bias": [1]}
    estimator = _estimator(tmp_path / "new", shapes, os.path.dirname(checkpoint))
    report = warm_start_report(estimator, _input_fn)
    assert report.of("loaded") == ["old_bias"]
    assert report.of("missing") == ["extra"]
    assert report.of("shape mismatch") == ["kernel"]
    assert "kernel       [3, 1]  shape mismatch  [2, 1]" in str(report)
    for use in (report.check, lambda: estimator.train(_input_fn, steps=1)):
        with pytest.raises(ValueError, match="vars_to_warm_start") as error:
            use()
        assert "extra: no 'extra' in the checkpoint" in str(error.value)
        assert "kernel: [3, 1] in the model, [2, 1] in the checkpoint" in str(error.value)


def test_what_can_be_loaded_goes_by_the_settings(tmp_path, checkpoint, vocab_info):
    # Another vocabulary does not excuse another dimension.
    settings = est.WarmStartSettings(checkpoint, None, {"vectors": vocab_info})
    report = warm_start_report(_estimator(tmp_path / "new", {"vectors": [3, 5]}), _input_fn, settings)
    assert report.of("shape mismatch") == ["vectors"]
    # A list of expressions selects among all variables.
    settings = est.WarmStartSettings(checkpoint, ["global_step", "kern"])
    report = warm_start_report(_estimator(tmp_path / "new", {"kernel": [2, 1]}), _input_fn, settings)
    assert report.of("loaded") == ["global_step", "kernel"]


def test_an_expression_without_effect_is_told(tmp_path, checkpoint, caplog):
    settings = est.WarmStartSettings(checkpoint, "ernel")  # matched from the beginning of the name
    estimator = _estimator(tmp_path / "new", {"kernel": [2, 1]}, settings)
    report = warm_start_report(estimator, _input_fn)
    assert report.of("fresh") == ["global_step", "kernel"]
    message = "vars_to_warm_start='ernel' matches no variable of the model"
    assert message in str(report)
    estimator.train(_input_fn, steps=1)
    assert message in caplog.text


def test_a_partitioned_variable_counts_as_one(tmp_path, checkpoint):
    def model_fn(features, labels, mode):
        vectors = tf1.get_variable("vectors", [4, 2], partitioner=tf1.fixed_size_partitioner(2))
        return counting(mode, tf.reduce_sum(vectors))

    estimator = est.Estimator(model_fn, tmp_path / "new", warm_start_from=checkpoint)
    assert warm_start_report(estimator, _input_fn).of("loaded") == ["vectors"]
    estimator.train(_input_fn, steps=1)
    assert estimator.get_variable_value("vectors").sum() == 20  # 2 * (1 + 2 + 3 + 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"var_name_to_prev_var_name": {"bias": "b"}}, r"var_name_to_prev_var_name .*\['bias'\]"),
        ({"ckpt_to_initialize_from": "nowhere"}, "no checkpoint to warm-start from.*'nowhere'"),
    ],
)
def test_settings_that_fit_nothing_are_refused(tmp_path, checkpoint, settings, message):
    given = est.WarmStartSettings(checkpoint)._replace(**settings)
    estimator = _estimator(tmp_path / "new", {"kernel": [2, 1]})
    with pytest.raises(ValueError, match=message):
        warm_start_report(estimator, _input_fn, given)
    with pytest.raises(ValueError, match="nothing to report"):
        warm_start_report(estimator, _input_fn)
