"""What CsvExampleGen's cache compares: the content of the files, where TFX compares their sizes and times."""

from typing import Any

from tfx.components.example_gen import driver, utils
from tfx.proto import example_gen_pb2
from tfx.types.standard_component_specs import INPUT_BASE_KEY, INPUT_CONFIG_KEY
from tfx.utils import proto_utils

from components.example_gen.files import PlannedFiles


class ContentDriver(driver.FileBasedDriver):
    """TFX's driver of ExampleGen, with a fingerprint of the files' names and contents.

    A file that was copied or downloaded anew is no other data; one that was edited is, though it has the
    same size and time. A fingerprint that the component was given stays: its executor reads nothing else.
    """

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], pipeline_info: Any, component_info: Any
    ) -> dict[str, Any]:
        """Returns the execution properties with span, version and fingerprint."""
        given = exec_properties.get(utils.FINGERPRINT_PROPERTY_NAME)
        resolved: dict[str, Any] = super().resolve_exec_properties(
            exec_properties, pipeline_info, component_info
        )
        config = example_gen_pb2.Input()
        proto_utils.json_to_proto(resolved[INPUT_CONFIG_KEY], config)
        patterns = [split.pattern for split in config.splits]
        files = PlannedFiles(resolved[INPUT_BASE_KEY], patterns, given)
        resolved[utils.FINGERPRINT_PROPERTY_NAME] = files.fingerprint
        return resolved
