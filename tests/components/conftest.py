"""Makes TFX's artifacts, and the raw examples that the tests train and evaluate on."""

import components  # noqa: I001  Before TFX: makes TFDV importable.

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tfx.types import standard_artifacts
from tfx.types.artifact import Artifact

assert components


@pytest.fixture
def make_artifact(tmp_path: Path) -> Callable[..., Artifact]:
    """Returns a function that makes an artifact with a directory of its own."""

    def make(kind: type[Artifact], name: str = "", **custom_properties: Any) -> Artifact:
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


def example(features: Mapping[str, Any]) -> bytes:
    """Returns a serialized tf.Example; None leaves a feature out."""
    result = tf.train.Example()
    for name, value in features.items():
        feature = result.features.feature[name]
        if isinstance(value, str):
            feature.bytes_list.value.append(value.encode())
        elif isinstance(value, int):
            feature.int64_list.value.append(value)
        elif value is not None:
            feature.float_list.value.append(value)
    return result.SerializeToString()


@pytest.fixture
def make_examples(make_artifact: Callable[..., Artifact]) -> Callable[..., Artifact]:
    """Returns a function that writes rows as an Examples artifact."""

    def make(
        eval: Iterable[Mapping[str, Any]],  # noqa: A002
        train: Iterable[Mapping[str, Any]] | None = None,
        name: str = "examples",
    ) -> Artifact:
        artifact = make_artifact(
            standard_artifacts.Examples,
            name,
            file_format="tfrecords_gzip",
            payload_format="FORMAT_TF_EXAMPLE",
        )
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
