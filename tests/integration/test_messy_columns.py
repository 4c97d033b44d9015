"""Columns as people write them, from the CSV to the answers of the served model."""

import components  # noqa: I001  Before TFX: makes TFDV importable.

import json
import random
import re

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

import pipelines
from pipelines.serving.files import Reading, predict_files

assert components

pytestmark = pytest.mark.slow  # a whole pipeline

NUM_ROWS = 900
WORDS = ["red", "blue", "green", "fast", "slow", "broken", "new", "old", "window", "door", "engine", "wheel"]
TEXT = ("price", "share", "ordered at", "vip", "zip", "review", "city")


def rows():
    draw = random.Random(11)
    for number in range(NUM_ROWS):
        price, is_bad = draw.uniform(5, 3_000), draw.random() < 0.4
        words = [*draw.sample(WORDS, 5), "terrible" if is_bad else "lovely"]
        score = (price > 1_500) + 1.5 * is_bad + draw.gauss(0, 0.3)
        yield {
            "price": f"${price:,.2f}" if number % 17 else "",
            "share": f"0,{draw.randrange(10, 99)}",
            "ordered at": f"{number % 28 + 1}.{number % 12 + 1}.2020 {number % 24}:30",
            "vip": draw.choice(("Yes", "no", "YES")),
            "zip": draw.choice(("02134", "10001", "00601")),
            "review": " ".join(words),
            "city": draw.choice(("Oslo", "Rome")),
            "size": str(draw.randrange(1_000)),
            "weight": f"{number % 3 + 1},{number % 7}5",
            "insured": draw.choice(("True", "False", "NA")),
            "gifts": draw.choice(("NA", "2", "3")),
            "crates": draw.choice(("", "4", "5")),
            "shelf": draw.choice(("12", "7b", "40", "N/A", "")),
            "y": "late" if score > 1.2 else "fine",
        }


@pytest.fixture(scope="module")
def run(run_pipeline, tmp_path_factory):
    """The last line, the error output and the root of a run on a file with semicolons, in Windows-1252."""
    folder = tmp_path_factory.mktemp("messy")
    file = folder / "orders.csv"
    table = list(rows())
    lines = [";".join(row) for row in ([*table[0], "größe"], *([*row.values(), "é"] for row in table))]
    file.write_text("\r\n".join(lines) + "\r\n", encoding="cp1252", newline="")
    root = folder / "root"
    weights = ("data.weight=weight", "trainer.class_weights={late = 1.5, fine = 1}")
    code, line, shown = run_pipeline(file, root, "trainer.train_steps=400", *weights)
    assert code == 0, shown[-2_000:]
    return line, shown, root


def example(**values):
    features = {}
    for name, value in values.items():
        if isinstance(value, int):
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        else:
            features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def test_terminal_record_and_report_list_every_column(run):
    line, stderr, root = run
    record = json.loads((root / "runs" / f"{line['run_id']}.json").read_text())
    taken_for = {row["name"]: row["kind"] for row in record["columns"]}
    assert taken_for == {
        "price": "number", "share": "number", "ordered at": "date", "vip": "boolean",
        "zip": "category", "review": "text", "city": "category", "size": "number", "y": "category",
        "größe": "constant", "weight": "number",
        "insured": "boolean", "gifts": "number", "crates": "number", "shelf": "category",
    }  # fmt: skip
    report = (root / "runs" / f"{line['run_id']}.html").read_text()
    for name, kind in taken_for.items():
        assert re.search(
            rf'<th scope="row"[^>]*>{name}( <span[^>]*>\(label\)</span>)?</th><td>{kind}</td>', report
        )
        assert f"  {name:<10}  {kind}" in stderr
    assert "The label in the splits" in report
    assert "examples, weighted" in report
    assert "i reading the files as cp1252" in stderr
    assert "i fields are separated by semicolons" in stderr
    assert record["label_by_split"]["p_value"] > 1e-6


def test_the_served_model_reads_cells_as_they_stand_in_the_csv(run):
    line, _, root = run
    # Price and review decide; a model that sees neither has an AUC of 0.5.
    assert line["metrics"]["auc"] > 0.9
    model = tf.saved_model.load(str(root / "serving" / line["version"]))
    common = {"share": "0,50", "vip": "no", "zip": "02134", "city": "Oslo", "size": 7}
    common["ordered at"] = "3.4.2020 12:30"
    scores = model.signatures["predict"](
        examples=tf.constant(
            [
                example(price="$2,900.00", review="red blue terrible fast old door", **common),
                example(price="$20.00", review="red blue lovely fast old door", **common),
                example(price="2900", review="Red, blue: TERRIBLE fast old door", **common),
                example(),
            ]
        )
    )["logistic"].numpy()[:, 0]
    assert scores[0] > 0.9
    assert scores[1] < 0.1
    assert scores[2] == pytest.approx(scores[0], abs=1e-6)  # one price and one review
    assert np.isfinite(scores[3])


@pytest.mark.parametrize("options", [{}, {"dtype": str}, {"dtype_backend": "pyarrow"}], ids=str)
def test_a_frame_is_predicted_as_its_file(run, tmp_path, options):
    model = pipelines.load(run[2])
    table = [row for row in rows() if row["shelf"] != "7b"]  # all others are numbers
    file = tmp_path / "new.csv"
    file.write_text("\n".join(map(";".join, [table[0], *(row.values() for row in table)])) + "\n")
    predict_files(model, str(file), tmp_path / "out.parquet", Reading(), print)
    of_file = pd.read_parquet(tmp_path / "out.parquet")
    frame = pd.read_csv(file, sep=";", **options)
    if not options:
        types = {name: str(dtype) for name, dtype in frame.dtypes.items()}
        assert (types["zip"], types["shelf"], types["gifts"]) == ("int64", "float64", "float64")
    of_frame = model.predict(frame)
    np.testing.assert_allclose(of_frame["probability_late"], of_file["probability_late"], rtol=1e-6)
    assert of_frame["class"].tolist() == of_file["class"].tolist()


def test_every_metric_weighs_the_rows_by_their_column_and_their_class(run):
    line, _, root = run
    model = pipelines.load(root)
    assert "weight" not in model.columns
    table = list(rows())
    examples = [
        tf.train.Example.FromString(record).features.feature
        for file in root.glob("artifacts/CsvExampleGen/*/examples/Split-eval/*")
        for record in tf.data.TFRecordDataset(str(file), "GZIP").as_numpy_iterator()
    ]
    judged = {(e["review"].bytes_list.value[0].decode(), e["size"].int64_list.value[0]) for e in examples}
    table = [row for row in table if (row["review"], int(row["size"])) in judged]
    assert len(table) == len(examples) == line["metrics"]["example_count"]
    is_late = np.array([row["y"] == "late" for row in table])
    weights = np.array([float(row["weight"].replace(",", ".")) for row in table]) * np.where(is_late, 1.5, 1)
    late = np.asarray(model.predict(pd.DataFrame(table))["probability_late"], np.float64)
    metrics = line["metrics"]
    assert metrics["binary_crossentropy"] == pytest.approx(
        sklearn.metrics.log_loss(is_late, late, sample_weight=weights), rel=1e-3
    )
    assert metrics["auc"] == pytest.approx(
        sklearn.metrics.roc_auc_score(is_late, late, sample_weight=weights), abs=1e-3
    )
    assert metrics["mean_label"] == pytest.approx(np.average(is_late, weights=weights))


def test_the_graph_that_is_served_gives_what_the_training_saw(run):
    root = run[2] / "artifacts"
    (schema_file,) = root.glob("SchemaGen/*/schema/schema.pbtxt")
    schema = text_format.Parse(schema_file.read_text(), schema_pb2.Schema())
    spec = dict(schema_utils.schema_as_feature_spec(schema).feature_spec)
    assert {name for name, part in spec.items() if part.dtype == tf.string} >= set(TEXT)
    (graph,) = root.glob("Transform/*/transform_graph")
    output = tft.TFTransformOutput(str(graph))
    layer = output.transform_features_layer()
    for split in ("train", "eval"):
        raw = parse(root.glob(f"CsvExampleGen/*/examples/Split-{split}/*"), spec)
        (folder,) = root.glob(f"Transform/*/transformed_examples/Split-{split}")
        saw = parse(folder.iterdir(), output.transformed_feature_spec())
        assert saw["numeric"].shape[1] == 6  # price, share, days, size, gifts, crates
        assert fingerprints(layer(raw)) == fingerprints(saw)


def parse(files, spec):
    dataset = tf.data.TFRecordDataset([str(file) for file in files], "GZIP")
    return tf.io.parse_example(list(dataset.as_numpy_iterator()), spec)


def fingerprints(features):
    """Returns the examples of a batch, each as one text, in an order of their own."""
    dense = {
        name: (tf.sparse.to_dense(part) if isinstance(part, tf.SparseTensor) else part).numpy()
        for name, part in sorted(features.items())
    }

    def shown(name, row):
        values = np.ravel(dense[name][row])
        if name.startswith("text"):  # padded to the longest text of the batch
            values = np.trim_zeros(values, "b")
        return f"{name}={values.tolist()}"

    size = len(dense["label"])
    return sorted(" ".join(shown(name, row) for name in dense) for row in range(size))
