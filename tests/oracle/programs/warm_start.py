"""Starting from another model: all of it, parts, renamed variables, a changed vocabulary."""

import os

import numpy as np
import tensorflow as tf

from tests.oracle import observe
from tests.oracle.programs import small
from tests.oracle.programs.data import KINDS, SIZE, dense
from tests.oracle.programs.program import Scenario

fc = tf.feature_column
tf1 = tf.compat.v1

OLD_KINDS = KINDS[:3]
NEW_KINDS = ("concrete", KINDS[2], KINDS[0], KINDS[3])
INPUTS = dense("number")


def _vocabulary(directory, name, words):
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, name)
    with open(path, "w") as file:
        file.write("\n".join(words) + "\n")
    return path


def _linear(e, model_dir, name, kinds, warm_start_from=None):
    path = _vocabulary(model_dir, f"{name}.txt", kinds)
    kind = fc.categorical_column_with_vocabulary_file("kind", path, len(kinds))
    config = e.RunConfig(model_dir=os.path.join(model_dir, name), save_summary_steps=1)
    return e.LinearRegressor(
        [SIZE, kind], optimizer="Adagrad", config=config, warm_start_from=warm_start_from
    )


def _goes_on(estimator):
    """Returns the observation of a warm-started Estimator before, during and after training."""
    before = estimator.evaluate(INPUTS(repeat=1))
    estimator.train(INPUTS(), steps=15)
    return {
        "metrics_before": small.plain(before),
        "losses": observe.losses_of(estimator.model_dir),
        "variables": small.variables_of(estimator),
        # A checkpoint of its own now wins over the one to start from.
        "continues": estimator.train(INPUTS(), steps=2).get_variable_value("global_step").item(),
    }


def from_directory(e, model_dir):
    first = _linear(e, model_dir, "first", OLD_KINDS).train(INPUTS(), steps=20)
    return _goes_on(_linear(e, model_dir, "second", OLD_KINDS, first.model_dir))


def from_saved_model(e, model_dir):
    first = _linear(e, model_dir, "first", OLD_KINDS).train(INPUTS(), steps=20)
    spec = {**small.RECEIVER_FEATURES, "kind": tf.io.FixedLenFeature([1], tf.string)}
    receiver_fn = e.export.build_parsing_serving_input_receiver_fn(spec)
    export_dir = first.export_saved_model(os.path.join(model_dir, "export"), receiver_fn)
    return _goes_on(_linear(e, model_dir, "second", OLD_KINDS, os.fsdecode(export_dir)))


def from_some_variables(e, model_dir):
    first = _linear(e, model_dir, "first", OLD_KINDS).train(INPUTS(), steps=20)
    settings = e.WarmStartSettings(first.model_dir, vars_to_warm_start=".*size.*")
    return _goes_on(_linear(e, model_dir, "second", OLD_KINDS, settings))


def from_listed_variables(e, model_dir):
    # A list reaches all variables: here the accumulator of the optimizer as well.
    first = _linear(e, model_dir, "first", OLD_KINDS).train(INPUTS(), steps=20)
    settings = e.WarmStartSettings(
        first.latest_checkpoint(), vars_to_warm_start=["linear/.*size", "training/.*accumulator"]
    )
    return _goes_on(_linear(e, model_dir, "second", OLD_KINDS, settings))


def with_changed_vocabulary(e, model_dir):
    first = _linear(e, model_dir, "first", OLD_KINDS).train(INPUTS(), steps=20)
    vocabulary = e.VocabInfo(
        new_vocab=_vocabulary(model_dir, "second.txt", NEW_KINDS),
        new_vocab_size=len(NEW_KINDS),
        num_oov_buckets=0,
        old_vocab=os.path.join(model_dir, "first.txt"),
        old_vocab_size=len(OLD_KINDS),
        backup_initializer=tf1.ones_initializer(),
    )
    settings = e.WarmStartSettings(
        first.model_dir, var_name_to_vocab_info={"linear/linear_model/kind/weights": vocabulary}
    )
    return _goes_on(_linear(e, model_dir, "second", NEW_KINDS, settings))


def with_renamed_variables(e, model_dir):
    first = small.regressor(e, os.path.join(model_dir, "first")).train(INPUTS(), steps=20)

    def model_fn(features, labels, mode):
        slope = tf1.get_variable("price/slope", [1, 1], initializer=tf1.zeros_initializer())
        offset = tf1.get_variable("price/offset", [1], initializer=tf1.ones_initializer())
        value = (features["size"][:, None] @ slope + offset)[:, 0]
        if mode == e.ModeKeys.PREDICT:
            return e.EstimatorSpec(mode, predictions={"value": value})
        loss = tf.reduce_mean(tf.square(value - labels))
        optimizer = tf1.train.AdagradOptimizer(0.05)
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
        return e.EstimatorSpec(mode, loss=loss, train_op=train_op)

    settings = e.WarmStartSettings(
        first.model_dir,
        vars_to_warm_start="price/.*",
        var_name_to_prev_var_name={
            "price/slope": "linear/linear_model/size/weights",
            "price/offset": "linear/linear_model/bias_weights",
        },
    )
    config = e.RunConfig(model_dir=os.path.join(model_dir, "second"), save_summary_steps=1)
    return _goes_on(e.Estimator(model_fn, config=config, warm_start_from=settings))


def into_predictions_and_errors(e, model_dir):
    first = _linear(e, model_dir, "first", OLD_KINDS).train(INPUTS(), steps=20)
    second = _linear(e, model_dir, "second", OLD_KINDS, first.model_dir)
    row = next(second.predict(INPUTS(repeat=1)))
    wider = _linear(e, model_dir, "wider", KINDS, first.model_dir)
    return {
        "prediction": float(np.squeeze(row["predictions"])),
        "other_shape": small.error_of(wider.train, INPUTS(), steps=1),
        "wrong_type": small.error_of(_linear, e, model_dir, "typed", KINDS, 7),
    }


SCENARIOS = {
    f"warm_start_{function.__name__}": Scenario(function)
    for function in (
        from_directory,
        from_saved_model,
        from_some_variables,
        from_listed_variables,
        with_changed_vocabulary,
        with_renamed_variables,
        into_predictions_and_errors,
    )
}
