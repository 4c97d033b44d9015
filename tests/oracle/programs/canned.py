"""The canned Estimators, with the main arguments of their constructors."""

import tensorflow as tf

from tests.oracle.programs.data import (
    DEEP,
    GRADES,
    KIND,
    LINEAR,
    SERVING_FEATURES,
    SIZE,
    SIZE_CLASS,
    SIZE_X_KIND,
    TAG,
    WEIGHTED_TAG,
    dense,
    with_tags,
)
from tests.oracle.programs.program import Program

fc = tf.feature_column


def _program(label, make, **more):
    return Program(with_tags(label), make, SERVING_FEATURES, **more)


def _dense(label, make):
    return Program(dense(label), make, SERVING_FEATURES)


PROGRAMS = {
    "linear_classifier": _program("binary", lambda e, **kw: e.LinearClassifier(LINEAR, **kw)),
    "linear_classifier_words": _program(
        "word",
        lambda e, **kw: e.LinearClassifier(
            LINEAR, n_classes=3, label_vocabulary=list(GRADES), loss_reduction="sum", **kw
        ),
    ),
    "linear_regressor_weighted": _program(
        "number", lambda e, **kw: e.LinearRegressor(LINEAR, weight_column="weight", **kw)
    ),
    "linear_sparse_mean": _program(
        "binary",
        lambda e, **kw: e.LinearClassifier(
            [SIZE, WEIGHTED_TAG, KIND], sparse_combiner="mean", optimizer="Adagrad", **kw
        ),
    ),
    "linear_sparse_sgd": _program(
        "number", lambda e, **kw: e.LinearRegressor([SIZE, TAG], optimizer="SGD", **kw)
    ),
    "dnn_classifier": _program(
        "binary", lambda e, **kw: e.DNNClassifier([8, 4], DEEP, weight_column="weight", **kw)
    ),
    "dnn_classifier_batch_norm": _program(
        "grade",
        lambda e, **kw: e.DNNClassifier(
            [8, 4], DEEP, n_classes=3, batch_norm=True, activation_fn=tf.nn.tanh, **kw
        ),
    ),
    "dnn_regressor_adam": _program(
        "numbers",
        lambda e, **kw: e.DNNRegressor(
            [8], DEEP, label_dimension=2, optimizer="Adam", activation_fn=tf.nn.elu, **kw
        ),
    ),
    "dnn_regressor_rmsprop": _program(
        "number",
        lambda e, **kw: e.DNNRegressor(
            [6], [SIZE, fc.embedding_column(TAG, 4, combiner="sqrtn")], optimizer="RMSProp", **kw
        ),
    ),
    "combined_classifier": _program(
        "grade",
        lambda e, **kw: e.DNNLinearCombinedClassifier(
            linear_feature_columns=[KIND, SIZE_CLASS, SIZE_X_KIND],
            dnn_feature_columns=DEEP,
            dnn_hidden_units=[8, 4],
            n_classes=3,
            weight_column="weight",
            **kw,
        ),
        seed=1,  # the name's draws logits close to 0
    ),
    "combined_classifier_adam": _program(
        "binary",
        lambda e, **kw: e.DNNLinearCombinedClassifier(
            linear_feature_columns=[KIND, TAG],
            linear_optimizer="Adam",
            dnn_feature_columns=DEEP,
            dnn_optimizer="Adam",
            dnn_hidden_units=[8],
            linear_sparse_combiner="sqrtn",
            **kw,
        ),
    ),
    "combined_regressor": _program(
        "number",
        lambda e, **kw: e.DNNLinearCombinedRegressor(
            linear_feature_columns=LINEAR,
            linear_optimizer="SGD",
            dnn_feature_columns=DEEP,
            dnn_optimizer="Ftrl",
            dnn_hidden_units=[8],
            loss_reduction="sum",
            **kw,
        ),
    ),
    "estimator_with_head": _program(
        "binary",
        lambda e, **kw: e.DNNLinearCombinedEstimator(
            e.BinaryClassHead(thresholds=[0.25, 0.75], name="sold"),
            linear_feature_columns=LINEAR,
            dnn_feature_columns=DEEP,
            dnn_hidden_units=[4],
            **kw,
        ),
    ),
    "linear_logistic_regression": _program(
        "share",
        lambda e, **kw: e.LinearEstimator(
            e.LogisticRegressionHead(weight_column="weight", name="share"), LINEAR, **kw
        ),
    ),
    "linear_poisson_regression": _program(
        "count", lambda e, **kw: e.LinearEstimator(e.PoissonRegressionHead(), LINEAR, **kw)
    ),
    "dnn_multi_label": _program(
        "topics",
        lambda e, **kw: e.DNNEstimator(
            e.MultiLabelHead(
                3,
                weight_column="weight",
                thresholds=[0.4],
                label_vocabulary=["dear", "large", "high"],
                classes_for_class_based_metrics=["high", "dear"],
            ),
            [8],
            DEEP,
            **kw,
        ),
    ),
    "linear_multi_head": _program(
        "both",
        lambda e, **kw: e.LinearEstimator(
            e.MultiHead(
                [e.RegressionHead(name="price"), e.MultiLabelHead(3, name="topics")], head_weights=[1.0, 0.5]
            ),
            LINEAR,
            **kw,
        ),
    ),
    "baseline_classifier": _dense(
        "word",
        lambda e, **kw: e.BaselineClassifier(
            n_classes=3, weight_column="weight", label_vocabulary=list(GRADES), **kw
        ),
    ),
    "baseline_regressor": _dense(
        "numbers",
        lambda e, **kw: e.BaselineRegressor(
            label_dimension=2, optimizer="Adagrad", loss_reduction="sum", **kw
        ),
    ),
    "baseline_estimator": _dense("binary", lambda e, **kw: e.BaselineEstimator(e.BinaryClassHead(), **kw)),
}

MODEL_DIRS = [
    "linear_classifier",
    "linear_sparse_mean",
    "dnn_classifier_batch_norm",
    "dnn_regressor_adam",
    "combined_classifier",
    "combined_classifier_adam",
    "baseline_classifier",
]
