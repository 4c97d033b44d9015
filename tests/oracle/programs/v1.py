"""The canned Estimators of tf.compat.v1.estimator.

`LinearEstimator` and `DNNEstimator` are not among them: with the public heads, the reference refuses
every optimizer in training.
"""

import tensorflow as tf

from tests.oracle.programs.data import (
    DEEP,
    FLOOR,
    GRADES,
    KIND,
    LINEAR,
    PLACE,
    SERVING_FEATURES,
    SIZE,
    SIZE_CLASS,
    SIZE_X_KIND,
    TAG,
    WEIGHTED_TAG,
    dense,
    with_tags,
)
from tests.oracle.programs.program import STEPS, Program, Scenario

fc = tf.feature_column
tf1 = tf.compat.v1


def _program(label, make):
    return Program(with_tags(label), make, SERVING_FEATURES, v1=True)


def _dense(label, make):
    return Program(dense(label), make, SERVING_FEATURES, v1=True)


PROGRAMS = {
    "v1_linear_classifier": _program("binary", lambda e, **kw: e.LinearClassifier(LINEAR, **kw)),
    "v1_linear_classifier_words": _program(
        "word",
        lambda e, **kw: e.LinearClassifier(
            [SIZE, KIND, SIZE_CLASS, SIZE_X_KIND],
            n_classes=3,
            weight_column="weight",
            label_vocabulary=list(GRADES),
            optimizer="Adagrad",
            **kw,
        ),
    ),
    "v1_linear_regressor": _program("number", lambda e, **kw: e.LinearRegressor(LINEAR, **kw)),
    "v1_linear_regressor_mean": _program(
        "numbers",
        lambda e, **kw: e.LinearRegressor(
            [SIZE, WEIGHTED_TAG, KIND],
            label_dimension=2,
            weight_column="weight",
            optimizer="SGD",
            loss_reduction=tf1.losses.Reduction.MEAN,
            sparse_combiner="mean",
            **kw,
        ),
    ),
    "v1_dnn_classifier": _program("binary", lambda e, **kw: e.DNNClassifier([8, 4], DEEP, **kw)),
    "v1_dnn_classifier_batch_norm": _program(
        "grade",
        lambda e, **kw: e.DNNClassifier(
            [8],
            DEEP,
            n_classes=3,
            weight_column="weight",
            optimizer=lambda: tf1.train.AdamOptimizer(0.005),
            activation_fn=tf.nn.tanh,
            batch_norm=True,
            **kw,
        ),
    ),
    "v1_dnn_classifier_partitioned": _program(
        "binary",
        lambda e, **kw: e.DNNClassifier(
            [4],
            DEEP,
            optimizer="SGD",
            input_layer_partitioner=tf1.fixed_size_partitioner(2),
            loss_reduction=tf1.losses.Reduction.SUM_OVER_BATCH_SIZE,
            weight_column="weight",
            **kw,
        ),
    ),
    # RMSProp's default learning rate magnifies rounding; a small network stays within bounds.
    "v1_dnn_regressor_rmsprop": _program(
        "number",
        lambda e, **kw: e.DNNRegressor(
            [3], [SIZE, PLACE, fc.embedding_column(FLOOR, 3)], optimizer="RMSProp", **kw
        ),
    ),
    "v1_dnn_regressor": _program(
        "numbers",
        lambda e, **kw: e.DNNRegressor(
            [6], DEEP, label_dimension=2, optimizer=lambda: tf1.train.MomentumOptimizer(0.0002, 0.9), **kw
        ),
    ),
    "v1_combined_classifier": _program(
        "binary",
        lambda e, **kw: e.DNNLinearCombinedClassifier(
            linear_feature_columns=[KIND, SIZE_CLASS, SIZE_X_KIND],
            dnn_feature_columns=DEEP,
            dnn_hidden_units=[6, 3],
            weight_column="weight",
            **kw,
        ),
    ),
    "v1_combined_regressor_partitioned": _program(
        "number",
        lambda e, **kw: e.DNNLinearCombinedRegressor(
            linear_feature_columns=[KIND, TAG],
            linear_optimizer="Adam",
            dnn_feature_columns=DEEP,
            dnn_optimizer="Adam",
            dnn_hidden_units=[4],
            input_layer_partitioner=tf1.fixed_size_partitioner(2),
            linear_sparse_combiner="sqrtn",
            **kw,
        ),
    ),
    "v1_combined_estimator": _program(
        "binary",
        lambda e, **kw: e.DNNLinearCombinedEstimator(
            e.BinaryClassHead(name="sold"),
            linear_feature_columns=[KIND, SIZE_CLASS],
            linear_optimizer="SGD",
            dnn_feature_columns=DEEP,
            dnn_optimizer="Adam",
            dnn_hidden_units=[4],
            **kw,
        ),
    ),
    "v1_baseline_classifier": _dense(
        "word",
        lambda e, **kw: e.BaselineClassifier(
            n_classes=3, weight_column="weight", label_vocabulary=list(GRADES), **kw
        ),
    ),
    "v1_baseline_regressor": _dense(
        "numbers", lambda e, **kw: e.BaselineRegressor(label_dimension=2, optimizer="Adam", **kw)
    ),
    "v1_baseline_estimator": _dense("binary", lambda e, **kw: e.BaselineEstimator(e.BinaryClassHead(), **kw)),
}


def _slots_of_several_parts(e, model_dir):
    """Trains a linear model in two parts, whose slots no reader of checkpoints can put together."""
    estimator = e.LinearClassifier(
        LINEAR,
        model_dir=model_dir,
        optimizer="Adam",
        partitioner=tf1.fixed_size_partitioner(2),
        loss_reduction=tf1.losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
        config=e.RunConfig(save_checkpoints_steps=STEPS // 2),
    )
    estimator.train(dense("binary")(), max_steps=STEPS // 2)
    halfway = estimator.evaluate(dense("binary")(repeat=1))
    estimator.train(dense("binary")(), max_steps=STEPS)  # restores every part of every slot
    return {
        "halfway": {key: float(value) for key, value in halfway.items()},
        "metrics": {
            key: float(value) for key, value in estimator.evaluate(dense("binary")(repeat=1)).items()
        },
        "shapes": dict(tf.train.list_variables(model_dir)),
    }


SCENARIOS = {"v1_slots_of_several_parts": Scenario(_slots_of_several_parts, v1=True)}

MODEL_DIRS = [
    "v1_linear_classifier",
    "v1_dnn_classifier",
    "v1_combined_regressor_partitioned",
    "v1_baseline_classifier",
]
