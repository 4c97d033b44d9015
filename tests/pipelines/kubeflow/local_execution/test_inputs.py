import json

from pipelines.kubeflow.local_execution.inputs import (
    Values,
    executor_input,
    new_outputs,
    resolve_inputs,
    substitute,
    with_identity,
)

MODEL = {"name": "artifacts/1", "uri": "minio://bucket/model", "type": {"schemaTitle": "t"}}


def test_inputs_come_from_constants_from_the_dag_and_from_other_tasks():
    task = {
        "inputs": {
            "parameters": {
                "constant": {"runtimeValue": {"constant": 3.0}},
                "run": {"runtimeValue": {"constant": "a {{$.pipeline_job_uuid}}"}},
                "given": {"componentInputParameter": "of_the_dag"},
                "made": {
                    "taskOutputParameter": {"producerTask": "a", "outputParameterKey": "size"}
                },
            },
            "artifacts": {
                "model": {
                    "taskOutputArtifact": {"producerTask": "a", "outputArtifactKey": "model"}
                },
                "data": {"componentInputArtifact": "of_the_dag"},
            },
        }
    }
    kinds = {
        "constant": "NUMBER_INTEGER",
        "run": "STRING",
        "given": "NUMBER_DOUBLE",
        "made": "STRING",
    }
    component = {
        "inputDefinitions": {
            "parameters": {key: {"parameterType": kind} for key, kind in kinds.items()}
        }
    }
    found = resolve_inputs(
        task,
        component,
        Values({"of_the_dag": 2.0}, {"of_the_dag": {"name": "artifacts/2"}}),
        {"a": Values({"size": "big"}, {"model": MODEL})},
        "run-5",
    )
    assert found.parameters == {"constant": 3, "run": "a run-5", "given": 2.0, "made": "big"}
    assert isinstance(found.parameters["constant"], int)
    assert found.artifacts == {"model": MODEL, "data": {"name": "artifacts/2"}}


def test_placeholders_are_replaced_wherever_they_stand():
    component = {
        "outputDefinitions": {"artifacts": {"out": {"artifactType": {"schemaTitle": "u"}}}}
    }
    call = executor_input(
        Values({"n": 5, "text": "it's", "flag": True}, {"model": MODEL}),
        new_outputs(component, "s3://bucket/task"),
        {"size": "/tmp/size"},
        "/tmp/metadata",
    )
    found = substitute(
        [
            "--n={{$.inputs.parameters['n']}}",
            "{{$.inputs.parameters['text']}}",
            "{{$.inputs.parameters['flag']}}",
            "{{$.inputs.artifacts['model'].path}}",
            "{{$.inputs.artifacts['model'].uri}}",
            "{{$.outputs.artifacts['out'].path}}",
            "{{$.outputs.parameters['size'].output_file}}",
            "{{$}}",
            "plain",
        ],
        call,
        "/pod",
    )
    assert found[:7] == [
        "--n=5",
        "it's",
        "true",
        "/pod/minio/bucket/model",
        "minio://bucket/model",
        "/pod/s3/bucket/task/out",
        "/tmp/size",
    ]
    assert found[8] == "plain"
    given = json.loads(found[7])
    assert given["inputs"]["artifacts"]["model"]["artifacts"][0]["type"] == {}
    assert given["outputs"]["outputFile"] == "/tmp/metadata"
    assert given["outputs"]["artifacts"]["out"]["artifacts"][0]["uri"] == "s3://bucket/task/out"


def test_each_artifact_has_a_name_of_its_own():
    first, second = with_identity(MODEL), with_identity(MODEL)
    assert first["name"] != second["name"]
    assert first["uri"] == second["uri"] == MODEL["uri"]
