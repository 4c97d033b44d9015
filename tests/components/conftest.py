"""Makes TFX's artifacts, and the raw examples that the tests train and evaluate on."""

import components  # noqa: I001  Before TFX: makes TFDV importable.

from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types import standard_artifacts
from tfx.utils import io_utils

assert components


@pytest.fixture
def make_artifact(tmp_path):
    """Returns a function that makes an artifact with a directory of its own."""

    def make(kind, name="", **custom_properties):
        artifact = kind()
        directory = tmp_path / (name or kind.TYPE_NAME.lower())
        directory.mkdir(parents=True, exist_ok=True)
        artifact.uri = str(directory)
        for key, value in custom_properties.items():
            if isinstance(value, int):
                artifact.set_int_custom_property(key, value)
            else:
                artifact.set_string_custom_property(key, value)
        return artifact

    return make


def example(features):
    """Returns a serialized tf.Example; None leaves a feature out."""
    result = tf.train.Example()
    for name, value in features.items():
        feature = result.features.feature[name]
        if isinstance(value, str | bytes):
            feature.bytes_list.value.append(value.encode() if isinstance(value, str) else value)
        elif isinstance(value, int):
            feature.int64_list.value.append(value)
        elif value is not None:
            feature.float_list.value.append(value)
    return result.SerializeToString()


@pytest.fixture
def make_schema(make_artifact):
    """Returns a function that makes a Schema artifact with these features."""

    def make(*names):
        schema = make_artifact(standard_artifacts.Schema)
        features = [schema_pb2.Feature(name=name) for name in names]
        io_utils.write_pbtxt_file(f"{schema.uri}/schema.pbtxt", schema_pb2.Schema(feature=features))
        return schema

    return make


@pytest.fixture
def xy_schema(make_schema):
    return make_schema("x", "y")


@pytest.fixture
def make_examples(make_artifact):
    """Returns a function that writes rows as an Examples artifact."""

    def make(eval, train=None, name="examples"):  # noqa: A002
        formats = {"file_format": "tfrecords_gzip", "payload_format": "FORMAT_TF_EXAMPLE"}
        artifact = make_artifact(standard_artifacts.Examples, name, **formats)
        splits = {"eval": eval, **({"train": train} if train is not None else {})}
        artifact.split_names = "[" + ",".join(f'"{split}"' for split in splits) + "]"
        for split, rows in splits.items():
            directory = Path(artifact.uri) / f"Split-{split}"
            directory.mkdir()
            with tf.io.TFRecordWriter(str(directory / "data-00000-of-00001.gz"), "GZIP") as writer:
                for row in rows:
                    writer.write(example(row))
        return artifact

    return make
