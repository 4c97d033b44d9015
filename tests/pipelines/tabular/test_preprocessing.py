import apache_beam as beam
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from pipelines.data.formats.number_format import COMMA, POINT
from pipelines.tabular import preprocessing
from pipelines.tabular.plan import (
    CategoricalFeature,
    FeaturePlan,
    LabelPlan,
    ListFeature,
    NumericFeature,
    TextFeature,
)
from pipelines.tabular.preprocessing import preprocessing_fn
from tests.components.conftest import example
from tests.pipelines.tabular.one_number_one_city import BINARY


def transform(tmp_path, plan, dtypes, rows):
    """Returns the transformed rows of a data set given as a list of {column: value}."""
    spec = {name: tf.io.VarLenFeature(dtype) for name, dtype in dtypes.items()}
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    instances = [{name: [row[name]] if name in row else [] for name in dtypes} for row in rows]
    with (
        beam.Pipeline("apache_beam.runners.portability.fn_api_runner.FnApiRunner") as pipeline,
        tft_beam.Context(temp_dir=str(tmp_path)),
    ):
        transform_fn = (pipeline | beam.Create(instances), metadata) | tft_beam.AnalyzeDataset(
            lambda inputs: preprocessing_fn(inputs, plan.feature_config())
        )
        _ = transform_fn | tft_beam.WriteTransformFn(str(tmp_path / "transform"))
    raw = tf.io.parse_example([*map(example, rows)], spec)
    layer = tft.TFTransformOutput(str(tmp_path / "transform")).transform_features_layer()
    return {name: one.numpy() for name, one in layer(raw).items() if not isinstance(one, tf.SparseTensor)}


def make_plan(label, numeric=(), categorical=(), num_buckets=2, **more):
    return FeaturePlan(label=label, numeric=numeric, categorical=categorical, num_buckets=num_buckets, **more)


@pytest.mark.more
def test_numbers_categories_and_a_text_label(tmp_path):
    plan = make_plan(
        BINARY,
        numeric=(
            NumericFeature(column="a b", center=1_000, has_missing=True),
            NumericFeature(column="text", center=0, has_missing=False),
        ),
        categorical=(
            CategoricalFeature(column="city", num_values=2),
            CategoricalFeature(column="code", num_values=2, hash_buckets=5),
            CategoricalFeature(column="a b", num_values=4),
        ),
    )
    dtypes = {"a b": tf.int64, "text": tf.string, "city": tf.string, "code": tf.int64, "y": tf.string}
    rows = [
        {"a b": 1, "text": " 1.5", "city": "Oslo", "code": 7, "y": "yes"},
        {"a b": 3, "text": "NA", "city": "Oslo", "code": 7, "y": " no"},
        {"text": "-2.5e0", "city": "Rome", "y": "no"},
        {"a b": 5, "text": "1.0", "y": "yes"},
        {"a b": 7, "text": "0", "city": "Oslo", "code": 8, "y": "no"},
    ]
    out = transform(tmp_path, plan, dtypes, rows)
    # 1, 3, 5, 7 have mean 4 and standard deviation sqrt((9 + 1 + 1 + 9) / 4) = sqrt(5);
    # 1.5, -2.5, 1, 0 have mean 0 and variance (2.25 + 6.25 + 1) / 4 = 2.375.
    expected = np.stack(
        [np.array([-3, -1, np.nan, 1, 3]) / 5**0.5, np.array([1.5, np.nan, -2.5, 1, 0]) / 2.375**0.5], axis=1
    )
    assert out["numeric"] == pytest.approx(expected, abs=1e-5, nan_ok=True)
    assert out["numeric_is_missing"].tolist() == [[0], [0], [1], [0], [0]]
    # Ids 0 to 2 are those of the first column, 3 to 5 those of the second; 2 and 5 mean missing.
    assert out["numeric_bucket"][:, 0].tolist() == [0, 0, 2, 1, 1]
    assert out["numeric_bucket"][:, 1].tolist() == [4, 5, 3, 4, 3]
    # One vocabulary for two columns: Oslo is the most frequent word, and no two words share an id.
    city, number = out["category_0"].tolist(), out["category_2"].tolist()
    assert (city[0], city[1], city[4]) == (0, 0, 0)
    assert len({city[0], city[2], city[3], *number}) == 3 + 5  # with "[missing]" in each column
    code = out["category_1"]
    assert code[0] == code[1]
    assert 0 <= code.min() <= code.max() < 5
    assert out["label"].tolist() == [b"yes", b"no", b"no", b"yes", b"no"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("problem_type", "dtype", "values", "expected"),
    [
        ("multi-class", tf.float32, [0.0, 2.0], [b"0", b"2"]),
        ("multi-class", tf.int64, [3, -1], [b"3", b"-1"]),
        ("regression", tf.int64, [3, 4], [3.0, 4.0]),
        ("regression", tf.string, ["3.5", "4"], [3.5, 4.0]),
    ],
)
def test_labels_of_all_types(tmp_path, problem_type, dtype, values, expected):
    label = LabelPlan(column="y", problem_type=problem_type, values="number")
    rows = [{"y": value} for value in values]
    assert transform(tmp_path, make_plan(label), {"y": dtype}, rows)["label"].tolist() == expected


@pytest.mark.parametrize("shape", [[3], [3, 1]])
def test_dense_columns_are_read_like_sparse_ones(shape):
    dense = tf.reshape(tf.constant([4, 0, 5], tf.int64), shape)
    sparse = preprocessing._sparse(dense)
    assert sparse.dense_shape.numpy().tolist() == [3, 1]
    assert sparse.indices.numpy().tolist() == [[0, 0], [1, 0], [2, 0]]
    assert sparse.values.numpy().tolist() == [4, 0, 5]  # a zero is a value
    assert preprocessing._sparse(sparse) is sparse


@pytest.mark.more
def test_cells_as_they_stand_in_the_csv_become_what_they_mean(tmp_path):
    label = LabelPlan(column="y", problem_type="regression", values="number", number_format=POINT)
    date = {"column": "at", "date": "iso"}
    plan = make_plan(
        label,
        numeric=(
            NumericFeature(column="money", center=1_000, has_missing=True, number_format=POINT),
            NumericFeature(column="share", center=0, has_missing=False, number_format=COMMA),
            NumericFeature(center=16_000, has_missing=False, **date),
        ),
        categorical=(
            CategoricalFeature(num_values=12, part="month", **date),
            CategoricalFeature(num_values=7, part="weekday", **date),
            CategoricalFeature(num_values=24, part="hour", **date),
            CategoricalFeature(column="vip", num_values=2, words=("yes", "no")),
            CategoricalFeature(column="zip", num_values=2),
        ),
        text=(
            TextFeature(column="note", hash_buckets=1_000_003, has_pairs=True),
            TextFeature(column="note", hash_buckets=1_000_003),
        ),
    )
    rows = [
        {"money": "$1,001.00", "share": "0,5", "at": "2014-03-01 12:30", "vip": "Yes",
         "zip": "02134", "note": "Very late, VERY sad", "y": "$5.00"},
        {"money": " $1,003.00", "share": "25 %", "at": "2014-03-03T12:30:00Z", "vip": "no",
         "zip": "2134", "note": "sad", "y": "(1.50)"},
        {"money": "free", "share": "1,0", "at": "2015-03-01 14:30+02:00", "vip": " YES",
         "zip": "02134", "note": "", "y": "7"},
    ]  # fmt: skip
    dtypes = dict.fromkeys(rows[0], tf.string)
    out = transform(tmp_path, plan, dtypes, rows)
    # 1001 and 1003 have mean 1002 and standard deviation 1; a text that is no number is missing.
    assert out["numeric"][:, 0] == pytest.approx([-1, 1, np.nan], abs=1e-5, nan_ok=True)
    assert out["numeric_is_missing"].tolist() == [[0], [0], [1]]
    for column, values in ((1, [0.5, 0.25, 1.0]), (2, [0, 2, 365])):  # 12:30 in UTC all three
        scores = (np.array(values) - np.mean(values)) / np.std(values)
        assert out["numeric"][:, column] == pytest.approx(scores, abs=1e-5)
    # Of March, March and March; Saturday, Monday and Sunday; 12, 12 and 14 on their clocks; in words
    # true, false and true; and of two codes.
    ids = np.stack([out[f"category_{index}"] for index in range(5)])
    same = [[len(set(row[list(pair)])) == 1 for pair in ((0, 1), (0, 2), (1, 2))] for row in ids]
    assert same == [[True] * 3, [False] * 3, [True, False, False], [False, True, False],
                    [False, True, False]]  # fmt: skip
    words = {
        word: tf.strings.to_hash_bucket_fast(word, 1_000_003).numpy()
        for word in ("very", "late", "sad", "very late", "late very", "very sad")
    }
    texts = [sorted(one[one > 0]) for one in tf.sparse.to_dense(out_sparse(tmp_path, rows, dtypes)).numpy()]
    assert texts == [sorted([words["very"], *words.values()]), [words["sad"]], []]
    assert out["label"].tolist() == [5.0, -1.5, 7.0]


def out_sparse(tmp_path, rows, dtypes):
    """Returns the ids of the first column of text, as the graph of a served model gives them."""
    spec = {name: tf.io.VarLenFeature(dtype) for name, dtype in dtypes.items()}
    layer = tft.TFTransformOutput(str(tmp_path / "transform")).transform_features_layer()
    raw = tf.io.parse_example([*map(example, rows)], spec)
    return layer(raw)["text_0"]


@pytest.mark.more
def test_a_cell_that_means_no_value_is_a_missing_category_and_has_no_words(tmp_path):
    label = LabelPlan(column="y", problem_type="regression", values="number")
    plan = FeaturePlan(
        label=label,
        numeric=(),
        categorical=(
            CategoricalFeature(column="city", num_values=2),
            CategoricalFeature(column="city", num_values=2, hash_buckets=1_000_003),
        ),
        num_buckets=0,
        text=(TextFeature(column="city", hash_buckets=1_000_003),),
    )
    rows = [{"city": cell, "y": 1.0} for cell in ("Oslo", "", "NA", " n/a ", "None", "?")] + [{"y": 1.0}]
    dtypes = {"city": tf.string, "y": tf.float32}
    out = transform(tmp_path, plan, dtypes, rows)
    for ids in (out["category_0"].tolist(), out["category_1"].tolist()):
        assert ids[0] != ids[1]
        assert set(ids[1:]) == {ids[1]}
    assert (
        np.count_nonzero(tf.sparse.to_dense(out_sparse(tmp_path, rows, dtypes)), axis=1).tolist()
        == [1] + [0] * 6
    )


@pytest.mark.more
def test_groups_and_no_buckets(tmp_path):
    number = NumericFeature(column="x", center=0, has_missing=False)
    plan = make_plan(BINARY, numeric=(number,), num_buckets=0, group="who")
    rows = [{"x": 1.0, "who": who, "y": "yes"} for who in ("ann", " ann", "bob", " ")]
    rows += [{"x": 2.0, "y": "no"}, {"x": 2.0, "who": "NA", "y": "no"}]
    out = transform(tmp_path, plan, {"x": tf.float32, "who": tf.string, "y": tf.string}, rows)
    assert set(out) == {"numeric", "held_out_group", "label"}
    ann, again, bob, *nobody = out["held_out_group"].tolist()
    assert ann == again != bob
    assert min(ann, bob) >= 0
    assert nobody == [-1, -1, -1]


@pytest.mark.more
def test_a_day_after_the_last_one_counts_as_the_last_one(tmp_path):
    first = 16_130  # 2014-03-01
    date = NumericFeature(column="at", center=first, has_missing=False, date="iso", newest=first + 2.0)
    plan = make_plan(BINARY, numeric=(date,))
    rows = [{"at": f"2014-03-{day}", "y": "yes"} for day in ("01", "03", "31")]
    rows += [{"at": "2014-02-27", "y": "no"}]
    out = transform(tmp_path, plan, {"at": tf.string, "y": tf.string}, rows)
    # 0, 2, 2 and -2 days: the mean is 0.5, the variance (0.25 + 2.25 + 2.25 + 6.25) / 4 = 2.75.
    expected = np.array([-0.5, 1.5, 1.5, -2.5]) / 2.75**0.5
    assert out["numeric"][:, 0] == pytest.approx(expected, abs=1e-4)


@pytest.mark.more
def test_lists_are_ones_for_their_parts(tmp_path):
    label = LabelPlan(column="y", problem_type="regression", values="number")
    genres = ListFeature(column="genres", separator="|", parts=("Drama", "Sci-Fi", "War"))
    tags = ListFeature(column="tags", separator=";", parts=("a", "b"))
    plan = make_plan(label, num_buckets=0, lists=(genres, tags))
    dtypes = {"genres": tf.string, "tags": tf.string, "y": tf.float32}
    rows = [
        {"genres": "Drama|War", "tags": "b", "y": 1.0},
        {"genres": " War | Sci-Fi|War", "tags": "a|b", "y": 1.0},
        {"tags": "c; a;", "y": 1.0},
        {"genres": "", "y": 1.0},
    ]
    out = transform(tmp_path, plan, dtypes, rows)
    assert out["list_0"].tolist() == [[1, 0, 1], [0, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert out["list_1"].tolist() == [[0, 1], [0, 0], [1, 0], [0, 0]]
    assert out["list_0"].dtype == np.float32
