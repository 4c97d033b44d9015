"""What CsvExampleGen's cache compares: the content of the files, where TFX compares their sizes and times."""

import hashlib
import os
from collections.abc import Iterable
from typing import Any

from tfx.components.example_gen import driver, utils
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types.standard_component_specs import INPUT_BASE_KEY, INPUT_CONFIG_KEY
from tfx.utils import proto_utils

_CHUNK_BYTES = 1 << 20


class ContentDriver(driver.FileBasedDriver):
    """TFX's driver of ExampleGen, with a fingerprint of the files' names and contents.

    A file that was copied or downloaded anew is no other data; one that was edited is, though it has the
    same size and time.
    """

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], pipeline_info: Any, component_info: Any
    ) -> dict[str, Any]:
        """Returns the execution properties with span, version and fingerprint."""
        resolved: dict[str, Any] = super().resolve_exec_properties(
            exec_properties, pipeline_info, component_info
        )
        config = example_gen_pb2.Input()
        proto_utils.json_to_proto(resolved[INPUT_CONFIG_KEY], config)
        resolved[utils.FINGERPRINT_PROPERTY_NAME] = content_fingerprint(
            resolved[INPUT_BASE_KEY], config.splits
        )
        return resolved


def content_fingerprint(folder: str, splits: Iterable[example_gen_pb2.Input.Split]) -> str:
    """Returns a hash of the names and contents of the files of all splits.

    Args:
      folder: That the patterns start from.
      splits: Their names, and patterns of their files.
    """
    digest = hashlib.sha256()
    for split in splits:
        digest.update(f"{split.name}\0{split.pattern}\0".encode())
        for path in sorted(fileio.glob(os.path.join(folder, split.pattern))):
            if fileio.isdir(path):  # such as one that the pattern `*` matches
                continue
            digest.update(os.path.relpath(path, folder).encode() + b"\0")
            content = hashlib.sha256()
            with fileio.open(path, "rb") as file:
                while chunk := file.read(_CHUNK_BYTES):
                    content.update(chunk)
            digest.update(content.digest())
    return digest.hexdigest()
