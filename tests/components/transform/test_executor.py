import components  # noqa: I001  Before TFX: makes TFDV importable.

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform as tft
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.proto import example_gen_pb2
from tfx.types import standard_artifacts

from components.transform.executor import Executor

assert components

NUM_ROWS = 9_000
SCHEMA = (
    """feature { name: "x" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }"""
)
MODULE = """
import tensorflow as tf
import tensorflow_transform as tft

def preprocessing_fn(inputs):
    rows = tf.shape(inputs["x"])[0]
    return {
        "x": inputs["x"],
        "largest": tf.zeros_like(inputs["x"]) + tf.cast(tft.max(rows), tf.float32),
        "smallest": tf.zeros_like(inputs["x"]) + tf.cast(tft.min(rows), tf.float32),
        "batches": tf.zeros_like(inputs["x"]) + tft.sum(1 / tf.cast(rows, tf.float32) + 0 * inputs["x"]),
    }
"""


def write_examples(folder: Path) -> np.ndarray:
    values = np.random.default_rng(5).normal(size=NUM_ROWS).astype(np.float32)
    folder.mkdir(parents=True)
    with tf.io.TFRecordWriter(str(folder / "data-00000-of-00001.gz"), "GZIP") as writer:
        for value in values:
            feature = tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
            example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
            writer.write(example.SerializeToString())
    return values


def test_it_reads_batches_of_a_fixed_size_and_keeps_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = write_examples(tmp_path / "examples" / "Split-train")
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "schema.pbtxt").write_text(
        text_format.MessageToString(text_format.Parse(SCHEMA, schema_pb2.Schema()))
    )
    (tmp_path / "module_of_batches.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    examples, transformed = standard_artifacts.Examples(), standard_artifacts.Examples()
    schema, graph = standard_artifacts.Schema(), standard_artifacts.TransformGraph()
    examples.uri, transformed.uri = str(tmp_path / "examples"), str(tmp_path / "transformed")
    schema.uri, graph.uri = str(tmp_path / "schema"), str(tmp_path / "graph")
    examples.split_names = '["train"]'
    examples.set_string_custom_property(
        "payload_format",
        example_gen_pb2.PayloadFormat.Name(example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE),
    )
    runner = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"
    Executor(Executor.Context([runner], str(tmp_path / "tmp"), "1")).Do(
        {"examples": [examples], "schema": [schema]},
        {"transform_graph": [graph], "transformed_examples": [transformed]},
        {
            "preprocessing_fn": "module_of_batches.preprocessing_fn",
            "disable_statistics": 1,
            "custom_config": "null",
        },
    )
    spec = tft.TFTransformOutput(graph.uri).transformed_feature_spec()
    files = sorted((tmp_path / "transformed" / "Split-train").iterdir())
    records = tf.data.TFRecordDataset([str(file) for file in files], "GZIP").batch(NUM_ROWS)
    (rows,) = (tf.io.parse_example(batch, spec) for batch in records)
    np.testing.assert_array_equal(rows["x"].numpy().ravel(), values)
    # 9,000 rows are a batch of 8,192 and one of 808; batches that Beam tunes have 1,000 rows at most.
    assert rows["largest"].numpy()[0] == 8_192
    assert rows["smallest"].numpy()[0] == 808
    assert rows["batches"].numpy()[0] == pytest.approx(2, rel=1e-5)
