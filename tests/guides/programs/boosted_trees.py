"""Boosted trees on a ship's passengers: training, metrics, contributions and importances."""

import numpy as np
import pandas as pd
import tensorflow as tf


def passengers(rows, seed):
    """Returns a table like that of the Titanic, and who survived."""
    draw = np.random.RandomState(seed)
    sex = draw.choice(["male", "female"], rows, p=[0.65, 0.35])
    ship_class = draw.choice(["First", "Second", "Third"], rows, p=[0.25, 0.2, 0.55])
    age = np.where(draw.rand(rows) < 0.2, 28.0, draw.gamma(4.0, 7.5, rows).round())
    family = draw.choice([0, 1, 2, 3], rows, p=[0.6, 0.2, 0.12, 0.08])
    prices = {"First": 80.0, "Second": 20.0, "Third": 10.0}
    fare = np.array([prices[name] for name in ship_class]) * draw.gamma(4.0, 0.25, rows)
    logit = np.where(sex == "female", 1.8, -1.4) - 0.03 * (age - 30) - 0.3 * family
    logit = logit + np.where(ship_class == "First", 0.9, np.where(ship_class == "Third", -0.8, 0))
    table = pd.DataFrame(
        {
            "sex": sex,
            "age": age,
            "family": family,
            "fare": fare,
            "class": ship_class,
            "alone": np.where(family == 0, "y", "n"),
        }
    )
    return table, pd.Series((draw.rand(rows) < 1 / (1 + np.exp(-logit))).astype(int))


dftrain, y_train = passengers(627, seed=1)
dfeval, y_eval = passengers(264, seed=2)
fc = tf.feature_column
CATEGORICAL_COLUMNS = ["sex", "family", "class", "alone"]
NUMERIC_COLUMNS = ["age", "fare"]


def one_hot_cat_column(feature_name, vocab):
    return fc.indicator_column(fc.categorical_column_with_vocabulary_list(feature_name, vocab))


feature_columns = []
for feature_name in CATEGORICAL_COLUMNS:
    feature_columns.append(one_hot_cat_column(feature_name, dftrain[feature_name].unique()))
for feature_name in NUMERIC_COLUMNS:
    feature_columns.append(fc.numeric_column(feature_name, dtype=tf.float32))

NUM_EXAMPLES = len(y_train)


def make_input_fn(X, y, n_epochs=None, shuffle=True):  # noqa: N803
    def input_fn():
        dataset = tf.data.Dataset.from_tensor_slices((X.to_dict(orient="list"), y))
        if shuffle:
            dataset = dataset.shuffle(NUM_EXAMPLES)
        return dataset.repeat(n_epochs).batch(NUM_EXAMPLES)

    return input_fn


train_input_fn = make_input_fn(dftrain, y_train)
eval_input_fn = make_input_fn(dfeval, y_eval, shuffle=False, n_epochs=1)

linear_est = tf.estimator.LinearClassifier(feature_columns)
linear_est.train(train_input_fn, max_steps=100)
linear_metrics = linear_est.evaluate(eval_input_fn)

n_batches = 1  # the whole data set is one batch
est = tf.estimator.BoostedTreesClassifier(feature_columns, n_batches_per_layer=n_batches)
est.train(train_input_fn, max_steps=100)
metrics = est.evaluate(eval_input_fn)
print(pd.Series(metrics))
pred_dicts = list(est.predict(eval_input_fn))
probs = pd.Series([pred["probabilities"][1] for pred in pred_dicts])

params = {
    "n_trees": 50,
    "max_depth": 3,
    "n_batches_per_layer": 1,
    # Center: contributions are measured from the average.
    "center_bias": True,
}
understood = tf.estimator.BoostedTreesClassifier(feature_columns, **params)
understood.train(train_input_fn, max_steps=100)
understood_metrics = understood.evaluate(eval_input_fn)
explained = list(understood.experimental_predict_with_explanations(eval_input_fn))
labels = y_eval.values
explained_probs = pd.Series([pred["probabilities"][1] for pred in explained])
df_dfc = pd.DataFrame([pred["dfc"] for pred in explained])
bias = explained[0]["bias"]
dfc_prob = df_dfc.sum(axis=1) + bias
np.testing.assert_almost_equal(dfc_prob.values, explained_probs.values)

importances = understood.experimental_feature_importances(normalize=True)
df_imp = pd.Series(importances)
print(df_imp)

in_memory = {"n_batches_per_layer": 1, "n_trees": 50, "max_depth": 3, "train_in_memory": True}
regressor = tf.estimator.BoostedTreesRegressor(
    [fc.bucketized_column(fc.numeric_column("age"), [10.0, 20.0, 30.0, 50.0]), *feature_columns[:4]],
    **in_memory,
)
regressor.train(make_input_fn(dftrain, dftrain["fare"], n_epochs=1))
regression = regressor.evaluate(make_input_fn(dfeval, dfeval["fare"], n_epochs=1))

n_features = 8
top_features = df_dfc.mean().abs().nlargest(n_features)
