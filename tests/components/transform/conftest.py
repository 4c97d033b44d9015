from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.proto import example_gen_pb2
from tfx.types import standard_artifacts

from components.transform.executor import Executor

RUNNER = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def write_inputs(folder, schema, module_name, module):
    """Writes a schema and a module next to the examples."""
    (folder / "schema").mkdir()
    parsed = text_format.Parse(schema, schema_pb2.Schema())
    (folder / "schema" / "schema.pbtxt").write_text(text_format.MessageToString(parsed))
    (folder / f"{module_name}.py").write_text(module)


def artifact(kind, path):
    made = kind()
    made.uri = str(path)
    return made


def transform(folder, name, function, splits, beam_args=(), caches=(None, None), statistics=False):
    """Transforms the examples in a folder into the folder `name` in it.

    `caches` are folders from which tf.Transform's cache is read, and to which it is written.
    """
    examples = artifact(standard_artifacts.Examples, folder / "examples")
    examples.split_names = splits
    kind = example_gen_pb2.PayloadFormat.Name(example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE)
    examples.set_string_custom_property("payload_format", kind)
    inputs = {"examples": [examples], "schema": [artifact(standard_artifacts.Schema, folder / "schema")]}
    outputs = {
        "transform_graph": [artifact(standard_artifacts.TransformGraph, folder / name / "graph")],
        "transformed_examples": [artifact(standard_artifacts.Examples, folder / name / "transformed")],
    }
    keys = ("analyzer_cache", "updated_analyzer_cache")
    for key, channels, cache in zip(keys, (inputs, outputs), caches, strict=True):
        if cache is not None:
            channels[key] = [artifact(standard_artifacts.TransformCache, folder / cache)]
    Executor(Executor.Context([RUNNER, *beam_args], str(folder / name / "tmp"), "1")).Do(
        inputs,
        outputs,
        {"preprocessing_fn": function, "disable_statistics": int(not statistics), "custom_config": "null"},
    )
