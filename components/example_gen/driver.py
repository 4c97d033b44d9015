"""The driver of CsvExampleGen, whose cache compares the content of files; TFX compares sizes and times."""

from typing import Any

from tfx.components.example_gen import driver, utils
from tfx.proto import example_gen_pb2
from tfx.types.standard_component_specs import INPUT_BASE_KEY, INPUT_CONFIG_KEY
from tfx.utils import proto_utils

from components.example_gen.files import PlannedFiles


class ContentDriver(driver.FileBasedDriver):
    """TFX's driver of ExampleGen, with a fingerprint of the files' names and contents.

    A file that was copied or downloaded again counts as the same data; an edited one does not, even with the
    same size and time. A fingerprint given to the component is kept: its executor reads nothing else.
    """

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], pipeline_info: Any, component_info: Any
    ) -> dict[str, Any]:
        fingerprint = exec_properties.get(utils.FINGERPRINT_PROPERTY_NAME)
        resolved: dict[str, Any] = super().resolve_exec_properties(
            exec_properties, pipeline_info, component_info
        )
        config = proto_utils.json_to_proto(resolved[INPUT_CONFIG_KEY], example_gen_pb2.Input())
        patterns = [split.pattern for split in config.splits]
        files = PlannedFiles(resolved[INPUT_BASE_KEY], patterns, fingerprint)
        resolved[utils.FINGERPRINT_PROPERTY_NAME] = files.fingerprint
        return resolved
