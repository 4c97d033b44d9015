from pipelines.kubeflow.local_execution.inputs import resolve_inputs, substitute


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
            }
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
    inputs = resolve_inputs(task, component, {"of_the_dag": 2.0}, {"a": {"size": "big"}}, "run-5")
    assert inputs == {"constant": 3, "run": "a run-5", "given": 2.0, "made": "big"}
    assert isinstance(inputs["constant"], int)


def test_placeholders_are_replaced_wherever_they_stand():
    arguments = [
        "--n={{$.inputs.parameters['n']}}",
        "{{$.inputs.parameters['text']}}",
        "{{$.inputs.parameters['flag']}}",
        "{{$.outputs.parameters['size'].output_file}}",
        "plain",
    ]
    inputs = {"n": 5, "text": "it's", "flag": True}
    assert substitute(arguments, inputs, {"size": "/tmp/size"}) == [
        "--n=5",
        "it's",
        "true",
        "/tmp/size",
        "plain",
    ]
