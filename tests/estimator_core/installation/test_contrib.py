import importlib
import pathlib
import re
import sys
from operator import attrgetter

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.ops import lookup_ops

import estimator_core
from estimator_core.installation.old_contrib import CONTRIB, CONTRIB_ADVICE
from estimator_core.installation.old_modules import OldModuleFinder
from tests.estimator_core.programs import batch_of

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "projects.md"


@pytest.fixture(autouse=True)
def installed(uninstalled):
    estimator_core.install(contrib=True)


def names_of_the_page():
    """The table of tf.contrib: each old name with the cell of its new name."""
    section = PAGE.read_text().split("## tf.contrib\n")[1]
    table = section.split("|---|---|\n")[1].split("\n\n")[0]
    names = {}
    for row in table.splitlines():
        olds, new = row.strip("| ").split(" | ")
        for old in re.findall(r"`([\w.]+)`", olds):
            prefix = re.fullmatch(r"the same in `([\w.]+)`", new)
            names[old] = f"`{prefix[1]}.{old.rpartition('.')[2]}`" if prefix else new
    return names


def resolved(path):
    """Returns the object at a path below tensorflow.compat.v1, called tf, or another module."""
    path = path.replace("tensorflow.python.ops.lookup_ops.", "lookup_ops.")
    roots = {"tf": tf1, "estimator_core": estimator_core, "lookup_ops": lookup_ops}
    first, *others = path.split(".")
    return attrgetter(".".join(others))(roots[first])


def in_session(build):
    """Evaluates the tensors that `build` returns, in a new graph."""
    with tf.Graph().as_default(), tf1.Session() as session:
        tensors = build()
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        return session.run(tensors)


def trained(steps, **arguments):
    """The variables after some steps of `optimize_loss`, by name; the gradients are 3 for a and 4 for b."""
    with tf.Graph().as_default(), tf1.Session() as session:
        a = tf1.get_variable("a", initializer=1.0)
        b = tf1.get_variable("b", initializer=2.0)
        step = tf1.train.create_global_step()
        train_op = tf.contrib.layers.optimize_loss(3 * a + 4 * b, step, **arguments)
        session.run(tf1.global_variables_initializer())
        for _ in range(steps):
            session.run(train_op)
        return session.run({variable.op.name: variable for variable in tf1.global_variables()})


def test_twice_is_once():
    before = tf.contrib
    estimator_core.install(contrib=True)
    assert tf.contrib is tf1.contrib is before


def test_only_on_request(uninstalled):
    # The fixture `installed` came before: without its modules there is no tf.contrib.
    for owner in (tf, tf1):
        del owner.contrib
    for name in [name for name in sys.modules if name.startswith("tensorflow.contrib")]:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, OldModuleFinder)]
    sys.meta_path.insert(0, OldModuleFinder())
    estimator_core.install()
    assert not hasattr(tf, "contrib")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tensorflow\.contrib'"):
        importlib.import_module("tensorflow.contrib")


def test_the_page_lists_these_names_and_no_others():
    ours = {f"{module}.{name}" for module, names in CONTRIB.items() for name in names}
    assert set(names_of_the_page()) == ours


def test_each_name_is_what_the_page_says():
    checked = 0
    for old, new in names_of_the_page().items():
        found = attrgetter(old)(tf.contrib)
        if public := re.fullmatch(r"`((?:tf|estimator_core|tensorflow)\.[\w.]+)`", new):
            checked += 1
            assert found is resolved(public[1]), old
    assert checked > 70


def test_ways_to_import_them():
    names = {}
    exec(
        "import tensorflow.contrib.data\n"
        "import tensorflow.contrib.layers as tflayers\n"
        "from tensorflow.contrib import lookup, tpu\n"
        "from tensorflow.contrib.training import HParams\n"
        "from tensorflow.contrib.tpu.python.tpu import tpu_config, tpu_estimator\n",
        names,
    )
    assert names["tflayers"].l2_regularizer is tf.contrib.layers.l2_regularizer
    assert names["tpu"].TPUEstimator is names["tpu_estimator"].TPUEstimator is estimator_core.tpu.TPUEstimator
    assert names["HParams"](a=1).a == 1


@pytest.mark.parametrize(
    ("statement", "error", "advice"),
    [
        ("import tensorflow.contrib.slim as slim", ModuleNotFoundError, r"Use tf\.compat\.v1\.layers, with"),
        ("from tensorflow.contrib import rnn", ImportError, r"Use tf\.compat\.v1\.nn\.rnn_cell"),
        ("from tensorflow.contrib.layers import conv2d", ImportError, r"Use .*conv2d\(\.\.\., activation"),
        ("tf.contrib.metrics", AttributeError, "take the labels first"),
        ("tf.contrib.layers.maxout", AttributeError, "copy it into your project. It has apply_reg"),
        ("tf.contrib.ffmpeg", AttributeError, "copy it into your project. It has cluster_resolver, data"),
    ],
)
def test_what_is_missing_says_what_to_do(statement, error, advice):
    with pytest.raises(error, match=advice):
        exec(statement, {"tf": tf})


def test_advice_is_for_what_is_missing():
    for path in CONTRIB_ADVICE:
        module, _, name = path.rpartition(".")
        assert name not in CONTRIB[module]
        assert path not in CONTRIB


SGD = {"optimizer": "SGD", "learning_rate": 0.1}


@pytest.mark.parametrize(
    ("steps", "arguments", "expected"),
    [
        (2, {}, (0.4, 1.2)),  # 1 - 2 * 0.1 * 3, 2 - 2 * 0.1 * 4
        # The norm of (3, 4) is 5, so with a norm of 1 they are (0.6, 0.8).
        (1, {"learning_rate": 0.5, "clip_gradients": 1.0}, (0.7, 1.6)),
        (
            1,
            {
                "learning_rate": 1.0,
                "optimizer": tf1.train.GradientDescentOptimizer,
                "clip_gradients": lambda pairs: [
                    (tf.minimum(slope, 3.5), variable) for slope, variable in pairs
                ],
            },
            (-2.0, -1.5),
        ),
    ],
    ids=["plain", "clipped to a norm", "clipped by a function"],
)
def test_steps_of_gradient_descent(steps, arguments, expected):
    variables = trained(steps, **{**SGD, **arguments})
    assert (variables["a"], variables["b"]) == pytest.approx(expected)
    assert variables["global_step"] == steps
    assert variables["OptimizeLoss/learning_rate"] == np.float32(arguments.get("learning_rate", 0.1))


def test_multipliers_decay_and_scope():
    # The rate of the second step is 0.1 * 0.5; b's gradient is 4 * 0.25.
    variables = trained(
        2,
        learning_rate=0.1,
        optimizer=lambda rate: tf1.train.MomentumOptimizer(rate, 0.0),
        gradient_multipliers={"b:0": 0.25},
        learning_rate_decay_fn=lambda rate, step: tf1.train.exponential_decay(rate, step, 1, 0.5),
        name="train",
        summaries=["gradients", "gradient_norm", "loss", "learning_rate"],
    )
    assert variables["a"] == pytest.approx(1 - 0.3 - 0.15)
    assert variables["b"] == pytest.approx(2 - 0.1 - 0.05)
    assert {"train/learning_rate", "train/a/Momentum", "train/b/Momentum"} < set(variables)


def test_only_some_variables_without_the_global_step(session):
    a, b = tf1.get_variable("a", initializer=1.0), tf1.get_variable("b", initializer=1.0)
    moved = tf1.get_variable("moved", initializer=0.0, trainable=False)
    tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign_add(moved, 1.0))
    step = tf1.train.create_global_step()
    arguments = {"optimizer": tf1.train.GradientDescentOptimizer(0.5), "variables": [a]}
    arguments |= {"learning_rate": None, "increment_global_step": False, "gradient_noise_scale": 0.0}
    train_op = tf.contrib.layers.optimize_loss(a * b, step, **arguments)
    session.run(tf1.global_variables_initializer())
    assert session.run(train_op) == 1.0
    assert session.run([a, b, step, moved]) == [0.5, 1.0, 0, 1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer": "Sgd"}, "must be one of"),
        ({"learning_rate": None}, "needs a learning_rate"),
        ({"learning_rate": -0.1}, "must not be negative"),
        ({"optimizer": 3}, "Received: 3"),
        ({"summaries": ["lr"]}, "Summaries should be"),
    ],
)
def test_wrong_arguments_of_optimize_loss(arguments, message):
    with pytest.raises(ValueError, match=message):
        trained(1, **{**SGD, **arguments})


def test_clip_gradients_by_norm():
    def build():
        optimizer = tf.contrib.estimator.clip_gradients_by_norm(tf1.train.GradientDescentOptimizer(1.0), 1.0)
        assert optimizer.get_name() == "ClipByNormGradientDescent"
        a, b = tf1.get_variable("a", initializer=1.0), tf1.get_variable("b", initializer=1.0)
        with tf.control_dependencies([tf1.global_variables_initializer()]):
            loss = 3 * a.read_value() + 4 * b.read_value()
        update = optimizer.minimize(loss, var_list=[a, b])
        with tf.control_dependencies([update]):
            return a.read_value(), b.read_value()

    assert in_session(build) == pytest.approx((0.4, 0.2))


def test_regularizers_are_sums_of_weights():
    layers = tf.contrib.layers
    weights = tf.constant([3.0, -4.0])

    def build():
        both = layers.l1_l2_regularizer(0.1, 0.01)
        total = layers.apply_regularization(layers.l2_regularizer(0.5), [weights.numpy(), weights.numpy()])
        assert tf1.losses.get_regularization_losses() == [total]
        return [layers.l1_regularizer(0.5)(weights.numpy()), both(weights.numpy()), total]

    # 0.5 * 7; 0.1 * 7 + 0.01 * 25 / 2; twice 0.5 * 25 / 2
    assert in_session(build) == pytest.approx([3.5, 0.825, 12.5])
    assert layers.l2_regularizer(0.0)(weights) is None
    with pytest.raises(ValueError, match="must not be negative"):
        layers.l2_regularizer(-1.0)


def test_initializers_have_the_deviations_of_tensorflow_1():
    layers = tf.contrib.layers
    made = {
        "xavier": layers.xavier_initializer(seed=1),
        "normal": layers.xavier_initializer(False, seed=1),
        "he": layers.variance_scaling_initializer(seed=1),
    }
    found = in_session(
        lambda: {name: tf1.get_variable(name, [200, 400], initializer=each) for name, each in made.items()}
    )
    # Uniform up to (6 / 600) ** 0.5. The others are cut at two deviations, (1.3 * 1 / 300) ** 0.5 and
    # (1.3 * 2 / 200) ** 0.5.
    largest = {"xavier": 0.1, "normal": 2 * (1.3 / 300) ** 0.5, "he": 2 * (2.6 / 200) ** 0.5}
    assert {name: np.abs(value).max() for name, value in found.items()} == pytest.approx(largest, rel=1e-3)
    assert found["normal"].std() == pytest.approx((1 / 300) ** 0.5, rel=0.02)


def test_tables_take_a_mapping():
    lookup = tf.contrib.lookup

    def build():
        ids = lookup.index_table_from_tensor(mapping=tf.constant(["a", "b"]), default_value=7)
        words = lookup.index_to_string_table_from_tensor(mapping=tf.constant(["a", "b"]))
        table = lookup.HashTable(lookup.KeyValueTensorInitializer(["x"], [5]), -1)
        given = tf.constant(["b", "c"]), tf.constant([0, 9], tf.int64), tf.constant(["x", "y"])
        return [each.lookup(keys) for each, keys in zip((ids, words, table), given, strict=True)]

    assert [values.tolist() for values in in_session(build)] == [[1, 7], [b"a", b"UNK"], [5, -1]]


def test_data_are_batched():
    data = tf.contrib.data

    def build():
        numbers = tf1.data.Dataset.range(5)
        squares = numbers.apply(data.map_and_batch(lambda n: n * n, 2, drop_remainder=True))
        threes = numbers.apply(data.batch_and_drop_remainder(3)).repeat()
        return [tf1.data.make_one_shot_iterator(each.skip(1)).get_next() for each in (squares, threes)]

    assert [batch.tolist() for batch in in_session(build)] == [[4, 9], [0, 1, 2]]


def test_heads_in_the_order_of_their_arguments():
    contrib = tf.contrib.estimator
    assert contrib.regression_head(None, 3).logits_dimension == 3
    assert contrib.poisson_regression_head("weight", label_dimension=2).logits_dimension == 2
    several = contrib.multi_class_head(n_classes=4, loss_reduction=tf1.losses.Reduction.SUM)
    assert several.logits_dimension == 4


input_fn = batch_of({"x": [[1.0], [2.0]], "key": [["a"], ["b"]]}, [[1], [0]])


def test_forwarded_features_are_predictions(tmp_path):
    columns = [tf.feature_column.numeric_column("x")]
    model = tf1.estimator.LinearClassifier(columns, str(tmp_path / "model"))
    forwarding = tf.contrib.estimator.forward_features(model, "key").train(input_fn, steps=1)
    rows = list(forwarding.predict(input_fn))
    assert [row["key"].tolist() for row in rows] == [[b"a"], [b"b"]]
    assert "probabilities" in rows[0]

    specs = {"x": tf.TensorSpec([None, 1]), "key": tf.TensorSpec([None, 1], tf.string)}
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(specs)
    exported = tf.saved_model.load(forwarding.export_saved_model(str(tmp_path / "export"), receiver).decode())
    outputs = exported.signatures["predict"](x=tf.constant([[1.0]]), key=tf.constant([["c"]]))
    assert outputs["key"].numpy().tolist() == [[b"c"]]


def features_of(*names):
    """An input_fn of some of three features."""

    def input_fn():
        words = tf.sparse.from_dense([[1, 0], [0, 2]])
        values = {"x": [[1.0], [2.0]], "logits": [1.0, 2.0], "words": words}
        return tf.data.Dataset.from_tensors({name: values[name] for name in names})

    return input_fn


@pytest.fixture
def model():
    linear = tf1.estimator.LinearClassifier([tf.feature_column.numeric_column("x")])
    return linear.train(input_fn, steps=1)


@pytest.mark.parametrize(
    ("names", "keys", "message"),
    [
        (["x"], "nothing", "keys must be features"),
        (["x", "logits"], ["logits"], "prediction of the feature's name"),
        (["x", "words"], None, "is sparse"),
    ],
)
def test_features_that_can_not_be_forwarded(model, names, keys, message):
    forwarding = tf.contrib.estimator.forward_features(model, keys)
    with pytest.raises(ValueError, match=message):
        list(forwarding.predict(features_of(*names)))


def test_sparse_features_get_a_default_value(model):
    forwarding = tf.contrib.estimator.forward_features(model, sparse_default_values={"words": -1})
    rows = list(forwarding.predict(features_of("x", "words")))
    assert [row["words"].tolist() for row in rows] == [[1, -1], [-1, 2]]
    assert rows[1]["x"].tolist() == [2.0]


@pytest.mark.more
def test_a_recurrent_classifier_of_num_units():
    column = tf.feature_column.sequence_numeric_column("x")
    model = tf.contrib.estimator.RNNClassifier([column], num_units=[3], cell_type="basic_rnn")

    def sequences():
        x = tf.sparse.from_dense([[[1.0], [2.0]], [[3.0], [0.0]]])
        return tf.data.Dataset.from_tensors(({"x": x}, [[1], [0]]))

    model.train(sequences, steps=1)
    assert model.get_variable_value("rnn_model/rnn/simple_rnn_cell/kernel").shape == (1, 3)
    regressor = tf.contrib.estimator.RNNEstimator(
        tf.contrib.estimator.regression_head(), [column], num_units=[2], cell_type="gru"
    ).train(sequences, steps=1)
    assert regressor.evaluate(sequences, steps=1)["global_step"] == 1
