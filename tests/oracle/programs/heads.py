"""Each family of canned Estimators with each head, as small models."""

import functools

import tensorflow as tf

from tests.oracle.programs.data import GRADES, KIND, SERVING_FEATURES, SIZE, dense
from tests.oracle.programs.program import Program

NUM_CLASSES = len(GRADES)
TOPICS = ["dear", "large", "high"]

HEADS = {
    "binary": ("binary", lambda e: e.BinaryClassHead()),
    "binary_words": (
        "yes_or_no",
        lambda e: e.BinaryClassHead(
            weight_column="weight",
            thresholds=[0.3],
            label_vocabulary=["no", "yes"],
            loss_reduction="sum",
            name="sold",
        ),
    ),
    "multi_class": ("grade", lambda e: e.MultiClassHead(NUM_CLASSES, weight_column="weight")),
    "multi_class_words": (
        "word",
        lambda e: e.MultiClassHead(
            NUM_CLASSES, label_vocabulary=list(GRADES), loss_reduction="sum", name="grade"
        ),
    ),
    "multi_label": ("topics", lambda e: e.MultiLabelHead(3, thresholds=[0.3, 0.6])),
    "multi_label_words": (
        "topics",
        lambda e: e.MultiLabelHead(
            3, weight_column="weight", label_vocabulary=TOPICS, loss_reduction="sum", name="topics"
        ),
    ),
    "regression": ("number", lambda e: e.RegressionHead()),
    "regression_weighted": (
        "numbers",
        lambda e: e.RegressionHead(
            label_dimension=2, weight_column="weight", loss_reduction="sum", name="price"
        ),
    ),
    "regression_inverse_link": ("count", lambda e: e.RegressionHead(inverse_link_fn=tf.math.softplus)),
    "logistic": ("share", lambda e: e.LogisticRegressionHead()),
    "poisson": (
        "count",
        lambda e: e.PoissonRegressionHead(label_dimension=1, weight_column="weight", compute_full_loss=False),
    ),
    "multi_head": (
        "both",
        lambda e: e.MultiHead(
            [e.RegressionHead(name="price"), e.MultiLabelHead(3, name="topics")], head_weights=[0.3, 2.0]
        ),
    ),
}

LINEAR_COLUMNS = [SIZE, KIND]
DNN_COLUMNS = [SIZE, tf.feature_column.indicator_column(KIND)]

# The optimizers take turns, so that each meets several heads.
FAMILIES = {
    "linear": lambda e, head, optimizer, **kw: e.LinearEstimator(
        head, LINEAR_COLUMNS, optimizer=optimizer, **kw
    ),
    "dnn": lambda e, head, optimizer, **kw: e.DNNEstimator(head, [3], DNN_COLUMNS, optimizer=optimizer, **kw),
    "combined": lambda e, head, optimizer, **kw: e.DNNLinearCombinedEstimator(
        head,
        linear_feature_columns=LINEAR_COLUMNS,
        linear_optimizer=optimizer,
        dnn_feature_columns=DNN_COLUMNS,
        dnn_hidden_units=[3],
        **kw,
    ),
    "baseline": lambda e, head, optimizer, **kw: e.BaselineEstimator(head, optimizer=optimizer, **kw),
}
OPTIMIZERS = ("Adagrad", "Adam", "Ftrl", "RMSProp", "SGD")

# Adam magnifies the rest of gradients that cancel: the classes are as frequent as one another.
OTHER_OPTIMIZERS = {"baseline_with_multi_class_words": "SGD"}
# Programs for which the seed of the name draws logits close to 0, or units that are all dead.
SEEDS = {
    "combined_with_binary_words": 1,
    "combined_with_multi_head": 1,
    "dnn_with_multi_head": 1,
    "rnn_with_binary_words": 1,
}


def _optimizer(i, j, name):
    return OTHER_OPTIMIZERS.get(name, OPTIMIZERS[(i + j) % len(OPTIMIZERS)])


def _make(family, head, optimizer, e, **kw):
    return FAMILIES[family](e, HEADS[head][1](e), optimizer, **kw)


PROGRAMS = {
    f"{family}_with_{head}": Program(
        dense(HEADS[head][0]),
        functools.partial(_make, family, head, _optimizer(i, j, f"{family}_with_{head}")),
        SERVING_FEATURES,
        slow=family in ("combined", "baseline"),  # the heads are the same; the others show them
        seed=SEEDS.get(f"{family}_with_{head}"),
    )
    for i, family in enumerate(FAMILIES)
    for j, head in enumerate(HEADS)
}
