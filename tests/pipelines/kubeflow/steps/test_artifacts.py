import json

from tfx.types.standard_artifacts import Examples, ModelBlessing

from pipelines.kubeflow.steps.artifacts import (
    METADATA_KEY,
    input_metadata,
    metadata_of,
    new_artifact,
    output_metadata,
)

EXAMPLES = "tfx.types.standard_artifacts.Examples"


def test_properties_survive_the_way_through_kubeflow():
    examples = Examples()
    examples.split_names = '["train", "eval"]'
    examples.span = 7
    examples.set_string_custom_property("payload_format", "FORMAT_TF_EXAMPLE")
    examples.set_int_custom_property("count", 2**53 + 1)  # no floating point number
    through = json.loads(json.dumps(metadata_of(examples)))
    assert list(through) == [METADATA_KEY]
    assert isinstance(through[METADATA_KEY], str)
    found = new_artifact(EXAMPLES, "/minio/here", through)
    assert isinstance(found, Examples)
    assert found.uri == "/minio/here"
    assert found.split_names == '["train", "eval"]'
    assert found.span == 7
    assert found.get_string_custom_property("payload_format") == "FORMAT_TF_EXAMPLE"
    assert found.get_int_custom_property("count") == 2**53 + 1


def test_an_artifact_has_its_type_whatever_the_server_says():
    # The open-source backend hands on an empty type schema, over which stock TFX stumbles.
    call = {"inputs": {"artifacts": {"examples": {"artifacts": [{"name": "1", "type": {}}]}}}}
    found = new_artifact(EXAMPLES, "/here", input_metadata(call, "examples"))
    assert isinstance(found, Examples)


def test_the_metadata_that_the_launcher_reads():
    blessing = ModelBlessing()
    blessing.set_int_custom_property("blessed", 1)
    given = {
        "name": "blessing",
        "uri": "minio://bucket/blessing",
        "type": {"schemaTitle": "system.Artifact"},
        "metadata": {"of": "the server"},
    }
    call = {"outputs": {"artifacts": {"blessing": {"artifacts": [given]}}}}
    written = output_metadata(call, {"blessing": [blessing]})
    (found,) = written["artifacts"]["blessing"]["artifacts"]
    assert found["uri"] == "minio://bucket/blessing"
    assert found["type"] == {"schemaTitle": "system.Artifact"}
    assert found["metadata"]["of"] == "the server"
    again = new_artifact("tfx.types.standard_artifacts.ModelBlessing", "/here", found["metadata"])
    assert again.get_int_custom_property("blessed") == 1
