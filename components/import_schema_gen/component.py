"""The ImportSchemaGen component."""

import hashlib
import os
from typing import Any

from tfx.components.schema_gen import executor as schema_gen_executor
from tfx.components.schema_gen.import_schema_gen import component
from tfx.components.schema_gen.import_schema_gen import executor as stock_executor
from tfx.dsl.components.base import executor_spec
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact

from components.errors import SettingError

SHA256_KEY = "schema_sha256"


class Executor(stock_executor.Executor):
    """Stock ImportSchemaGen, with a check that the copied file has the planned content."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        super().Do(input_dict, output_dict, exec_properties)
        folder = artifact_utils.get_single_uri(output_dict[standard_component_specs.SCHEMA_KEY])
        with fileio.open(os.path.join(folder, schema_gen_executor.DEFAULT_FILE_NAME), "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        if digest != exec_properties.get(SHA256_KEY, digest):
            raise SettingError(
                f"{exec_properties[standard_component_specs.SCHEMA_FILE_KEY]} was changed after its "
                "fingerprint was taken. Run again to use the new content."
            )


class ImportSchemaGen(component.ImportSchemaGen):
    """Imports a schema file into the pipeline, in place of TFX's ImportSchemaGen.

    Args:
        schema_file: Path of a `Schema` proto as text.
        sha256: SHA-256 of the file's content, in hexadecimal digits: the component fails if it differs.
            TFX's cache compares the path only. Default: any content.

    Example:
          schema_gen = ImportSchemaGen(schema_file="schema.pbtxt")
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(self, schema_file: str, sha256: str | None = None):
        super().__init__(schema_file=schema_file)
        if sha256:
            self.spec.exec_properties[SHA256_KEY] = sha256
