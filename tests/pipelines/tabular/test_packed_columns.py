"""Many columns are read as matrices. The same table, with either way of reading, has the same features."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils
from tfx.types import standard_artifacts
from tfx.utils import io_utils

from components.transform.executor import Executor
from estimator_core.export import parse_packed
from pipelines.data.formats.number_format import COMMA
from pipelines.tabular import plan as plans
from pipelines.tabular.inputs import Part, eval_input_receiver_fn, read, serving_input_receiver_fn
from pipelines.tabular.plan import (
    GROUP_KEY,
    CategoricalFeature,
    FeaturePlan,
    LabelPlan,
    NumericFeature,
    TextFeature,
)
from pipelines.tabular.preprocessing import _categories, _group, _matrix, _numbers
from tests.components.conftest import example

PLAN = FeaturePlan(
    label=LabelPlan(column="y", problem_type="binary", values="text", classes=("no", "yes")),
    numeric=(
        NumericFeature(column="whole", center=3.0, has_missing=True),
        NumericFeature(column="day", center=16_000.0, has_missing=True, date="iso", newest=16_010.0),
        NumericFeature(column="share", center=0.5, has_missing=True),
        NumericFeature(column="price", center=1.0, has_missing=True, number_format=COMMA),
        NumericFeature(column="late day", center=16_000.0, has_missing=False, date="iso", newest=17_000.0),
    ),
    categorical=(
        CategoricalFeature(column="city", num_values=3),
        CategoricalFeature(column="whole", num_values=5),
        CategoricalFeature(column="member", num_values=2, words=("oui", "non")),
        CategoricalFeature(column="code", num_values=9, hash_buckets=50),
        CategoricalFeature(column="day", num_values=12, date="iso", part="month"),
    ),
    text=(TextFeature(column="note", hash_buckets=20),),
    num_buckets=3,
    group="city",
)
DTYPES = {
    "whole": tf.int64, "day": tf.string, "share": tf.float32, "price": tf.string, "late day": tf.string,
    "city": tf.string, "member": tf.string, "code": tf.int64, "note": tf.string, "y": tf.string,
}  # fmt: skip
MARKS = {tf.float32: float("nan"), tf.int64: -(2**63), tf.string: b""}


def rows():
    """Returns forty rows; a quarter of the cells is missing, and some hold no number or date."""
    random = np.random.default_rng(3)
    made = []
    for _ in range(40):
        row = {
            "whole": int(random.integers(5)),
            "day": b"2013-%02d-11" % random.integers(1, 14),  # there is no 13th month
            "share": float(np.float32(random.normal())),
            "price": random.choice([b"1,5", b" 2,25", b"n/a", b"7"]).item(),
            "late day": b"2015-02-%02d" % random.integers(1, 28),
            "city": random.choice([b"Rome", b"Oslo ", b"Bern"]).item(),
            "member": random.choice([b"Oui", b"non"]).item(),
            "code": int(random.integers(9)),
            "note": b"a word",
        }
        row = {name: value for name, value in row.items() if random.random() < 0.75}
        made.append({**row, "y": b"yes"})
    return made


def transform(folder, schema):
    """Runs Transform, and returns its output and the transformed rows."""
    examples, transformed = standard_artifacts.Examples(), standard_artifacts.Examples()
    raw, graph = standard_artifacts.Schema(), standard_artifacts.TransformGraph()
    for name, artifact in (("in", examples), ("out", transformed), ("raw", raw), ("graph", graph)):
        artifact.uri = str(folder / name)
    examples.split_names = '["train"]'
    examples.set_string_custom_property("payload_format", "FORMAT_TF_EXAMPLE")
    (folder / "in" / "Split-train").mkdir(parents=True)
    path = folder / "in" / "Split-train" / "data-00000-of-00001.gz"
    with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
        for row in rows():
            writer.write(example(row))
    io_utils.write_pbtxt_file(str(folder / "raw" / "schema.pbtxt"), schema)
    Executor(Executor.Context([], str(folder / "tmp"), "1")).Do(
        {"examples": [examples], "schema": [raw]},
        {"transform_graph": [graph], "transformed_examples": [transformed]},
        {
            "preprocessing_fn": "pipelines.tabular.preprocessing.preprocessing_fn",
            "disable_statistics": 1,
            "custom_config": json.dumps(PLAN.feature_config()),
        },
    )
    output = tft.TFTransformOutput(graph.uri)
    files = tf.io.gfile.glob(f"{transformed.uri}/Split-train/*")
    ((features, labels),) = read(output, files, Part.ALL, 6, 100)
    serialized = list(tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator())
    spec = {GROUP_KEY: output.transformed_feature_spec()[GROUP_KEY]}
    return output, {**features, "label": labels, **tf.io.parse_example(serialized, spec)}


def served(output, schema, is_rows):
    """Returns the features that the served model makes of the rows: as examples, or as columns."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        receiver = serving_input_receiver_fn(PLAN, output, schema)()
        columns = receiver.receiver_tensors_alternatives["serving_rows"]
        assert sorted(columns) == sorted(set(DTYPES) - {"y"})
        feed = {receiver.receiver_tensors["examples"]: [example(row) for row in rows()]}
        if is_rows:
            feed = {one: [row.get(name, MARKS[one.dtype]) for row in rows()] for name, one in columns.items()}
        session.run(tf.compat.v1.tables_initializer())
        return session.run(receiver.features, feed)


def evaluated(output, schema):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        receiver = eval_input_receiver_fn(PLAN, output, schema)()
        session.run(tf.compat.v1.tables_initializer())
        feed = {receiver.receiver_tensors["examples"]: [example(row) for row in rows()]}
        return session.run({**receiver.features, "label": receiver.labels}, feed)


def arrays(features):
    """Returns the features as arrays, and the columns of the matrix of categories as features."""
    found = {}
    for name, value in features.items():
        is_sparse = hasattr(value, "dense_shape")
        found[name] = np.asarray(tf.sparse.to_dense(value, -1) if is_sparse else value)
    matrix = found.pop("category", None)
    if matrix is not None:
        found |= {f"category_{index}": matrix[:, at] for at, index in enumerate(PLAN.words)}
    return found


def check_same(found, expected):
    assert sorted(found) == sorted(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Transform's output and the features of all rows, without packs and with them."""
    spec = {name: tf.io.VarLenFeature(dtype) for name, dtype in DTYPES.items()}
    schema = schema_utils.schema_from_feature_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        assert not PLAN.packs
        separate = transform(tmp_path_factory.mktemp("separate"), schema)
        patch.setattr(plans, "MAX_SEPARATE", 3)
        assert sorted(PLAN.packs) == ["categories", "numbers"]
        yield schema, separate, transform(tmp_path_factory.mktemp("packed"), schema)


@pytest.mark.more
def test_transform_gives_the_same_features(both):
    _, (_, separate), (_, packed) = both
    assert packed["category"].shape == (40, 4)
    assert separate["numeric"].shape == (40, 5)
    assert np.isnan(separate["numeric"]).mean() > 0.2
    check_same(arrays(packed), arrays(separate))


@pytest.mark.more
def test_rows_of_a_city_are_a_group_though_the_city_is_a_feature_too(both):
    _, _, (_, packed) = both
    cities = [row.get("city") for row in rows()]
    numbers = dict(zip(cities, packed[GROUP_KEY].numpy().tolist(), strict=True))
    assert [numbers[city] for city in cities] == packed[GROUP_KEY].numpy().tolist()
    assert numbers[None] == -1
    assert len(set(numbers.values())) == 4


@pytest.mark.parametrize("column", ["whole", "share", "price"])
def test_the_group_of_a_number_is_that_of_its_separate_column(column, monkeypatch):
    raw = tf.io.parse_example([*map(example, rows())], {column: tf.io.VarLenFeature(DTYPES[column])})
    monkeypatch.setattr(plans, "MAX_SEPARATE", 64)
    separate = _group(PLAN, column, raw)
    monkeypatch.setattr(plans, "MAX_SEPARATE", 3)
    spec = {name: tf.io.VarLenFeature(dtype) for name, dtype in DTYPES.items()}
    packed = parse_packed([example(row) for row in rows()], spec, PLAN.packs)
    found = _group(PLAN, column, packed)
    assert found.numpy().tolist() == separate.numpy().tolist()
    assert len(set(found.numpy().tolist())) > 3


@pytest.mark.more
@pytest.mark.parametrize("max_separate", [64, 3])
@pytest.mark.parametrize("column", ["share", "member"])
def test_two_values_of_a_row_in_a_column_are_an_error(column, max_separate, monkeypatch):
    monkeypatch.setattr(plans, "MAX_SEPARATE", max_separate)
    spec = {name: tf.io.VarLenFeature(dtype) for name, dtype in DTYPES.items()}
    is_number = column == "share"
    parts = PLAN.numeric if is_number else PLAN.categorical
    pack, read_cells = ("numbers", _numbers) if is_number else ("categories", _categories)

    @tf.function
    def matrix(serialized):
        inputs = parse_packed(serialized, spec, PLAN.packs)
        return _matrix(PLAN, pack, parts, inputs, read_cells, math.nan if is_number else "")

    good = [example(row) for row in rows()]
    assert matrix(tf.constant(good)).shape == (40, 5)
    two = tf.train.Example.FromString(good[1])
    value = "float_list" if is_number else "bytes_list"
    del getattr(two.features.feature[column], value).value[:]
    getattr(two.features.feature[column], value).value.extend([1.0, 2.0] if is_number else [b"non"] * 2)
    message = f"more than one value in a column.*{column}" if max_separate == 3 else "is repeated"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        matrix(tf.constant([good[0], two.SerializeToString()]))


@pytest.mark.more
@pytest.mark.parametrize("is_rows", [False, True])
def test_the_served_model_makes_the_features_of_transform(both, is_rows):
    schema, _, (output, packed) = both
    expected = arrays(packed)
    del expected["label"], expected[GROUP_KEY]
    check_same(arrays(served(output, schema, is_rows)), expected)


@pytest.mark.more
def test_the_served_model_refuses_two_values_in_a_column(both):
    schema, _, (output, _) = both
    two = tf.train.Example.FromString(example({"share": 1.0}))
    two.features.feature["share"].float_list.value.append(2.0)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        receiver = serving_input_receiver_fn(PLAN, output, schema)()
        session.run(tf.compat.v1.tables_initializer())
        feed = {receiver.receiver_tensors["examples"]: [two.SerializeToString()]}
        with pytest.raises(tf.errors.InvalidArgumentError, match="more than one value"):
            session.run(receiver.features["numeric"], feed)


@pytest.mark.more
def test_the_evaluation_makes_the_features_of_transform(both):
    schema, _, (output, packed) = both
    check_same(arrays(evaluated(output, schema)), arrays(packed))
