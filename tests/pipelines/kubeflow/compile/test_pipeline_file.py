"""The compiled pipeline, against each defect that stock TFX's has on the open-source backend."""

import json
import re

import pytest
import yaml
from google.protobuf import json_format
from kfp.kubernetes import kubernetes_executor_config_pb2
from kfp.pipeline_spec import pipeline_spec_pb2

from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.pipeline_file import compile_pipeline
from pipelines.kubeflow.step_environment import RETRIES_VARIABLE
from tests.pipelines.kubeflow.compile.test_admission import DATA, VERTEX

TRAINER = {
    "cpu": "2", "memory": "4Gi", "accelerators": 1, "accelerator": "nvidia.com/gpu",
    "node_selector": {"disk": "ssd"}, "retries": 3, "timeout": 900, "env": {"A": "of the trainer"},
}  # fmt: skip

SETTINGS = {
    "env": {"A": "1", "B": "2"},
    "secrets": [{"name": "login", "env": {"password": "PASSWORD"}}, {"name": "key", "path": "/etc/key"}],
    "node_selector": {"pool": "ml"},
    "tolerations": [{"key": "gpu", "value": "yes", "effect": "NoSchedule", "seconds": 30}],
    "retries": 2,
    "components": {"Trainer": TRAINER, "Evaluator": {"cache": False}, "End": {"retries": 4}},
    "parameters": ["trainer.learning_rate"],
}


@pytest.fixture(scope="module")
def text(config_of):
    data = {"path": "/mnt/pipelines/taxi.csv", "label": "tips"}
    config = config_of(SETTINGS, data=data, trainer={"learning_rate": 0.25, "train_steps": 700})
    text = compile_pipeline(config)
    assert compile_pipeline(config) == text  # the same bytes
    return text


def specification_of(text):
    return next(yaml.safe_load_all(text))


@pytest.fixture(scope="module")
def specification(text):
    return specification_of(text)


@pytest.fixture(scope="module")
def pods(text):
    platform = list(yaml.safe_load_all(text))[1]["platforms"]["kubernetes"]
    return platform["deploymentSpec"]["executors"]


def tasks_of(specification):
    return specification["components"]["comp-exit-handler-1"]["dag"]["tasks"]


@pytest.fixture(scope="module")
def tasks(specification):
    return tasks_of(specification)


def cached(tasks):
    return {name for name, task in tasks.items() if task["cachingOptions"].get("enableCache")}


def containers(specification):
    executors = specification["deploymentSpec"]["executors"]
    return {label.removeprefix("exec-"): item["container"] for label, item in executors.items()}


def planned_config(specification):
    """Returns the configuration that the step Plan is given."""
    arguments = containers(specification)["plan"]["args"]
    return json.loads(arguments[arguments.index("--config") + 1])


def test_kubeflow_and_argo_take_the_specification(specification, pods, tasks):
    proto = json_format.ParseDict(specification, pipeline_spec_pb2.PipelineSpec())
    assert proto.schema_version == "2.1.0"
    assert proto.default_pipeline_root == "minio://mlpipeline/v2/artifacts"
    for pod in pods.values():
        json_format.ParseDict(pod, kubernetes_executor_config_pb2.KubernetesExecutorConfig())
    executors = specification["deploymentSpec"]["executors"]
    for executor in executors.values():
        assert set(executor) == {"container"}  # neither a resolver nor a hook before the cache
        assert "lifecycle" not in executor["container"]
    names = [*tasks, *specification["components"], *executors]
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) for name in names)


def test_all_producers_exist_and_a_cached_step_depends_on_its_key_alone(tasks, specification):
    for task in tasks.values():
        for source in task["inputs"].get("parameters", {}).values():
            output = source.get("taskOutputParameter")
            if output:
                producer = tasks[output["producerTask"]]["componentRef"]["name"]
                declared = specification["components"][producer]["outputDefinitions"]
                assert output["outputParameterKey"] in declared["parameters"]
    assert cached(tasks) == {
        "csv-example-gen", "statistics-gen", "schema-gen", "example-validator", "transform", "trainer",
        "serving-check", "pusher",
    }  # fmt: skip
    for name in cached(tasks):
        given = tasks[name]["inputs"]["parameters"]
        assert list(given) == ["key"]
        output = {"producerTask": "plan", "outputParameterKey": name.replace("-", "_")}
        assert given["key"]["taskOutputParameter"] == output
        assert "artifacts" not in tasks[name]["inputs"]
        assert "dependentTasks" in tasks[name]
        assert not any("pipeline_job" in word for word in containers(specification)[name]["args"])


def test_parameters_have_types_and_defaults_and_reach_the_step_that_plans(specification):
    parameters = specification["root"]["inputDefinitions"]["parameters"]
    assert all(parameter["isOptional"] for parameter in parameters.values())
    assert {key: (item["defaultValue"], item["parameterType"]) for key, item in parameters.items()} == {
        "data_path": ("/mnt/pipelines/taxi.csv", "STRING"),
        "eval_steps": (0, "NUMBER_INTEGER"),
        "train_steps": (700, "NUMBER_INTEGER"),
        "trainer_learning_rate": (0.25, "NUMBER_DOUBLE"),
    }
    arguments = containers(specification)["plan"]["args"]
    at = arguments.index("trainer.train_steps")
    assert arguments[at - 1] == "--parameter"
    assert arguments[at + 1] == "{{$.inputs.parameters['train_steps']}}"


def test_containers_call_our_entry_point_and_plan_gets_the_configuration(specification):
    for name, container in containers(specification).items():
        assert container["command"] == ["python", "-P", "-m", "pipelines.kubeflow.step"], name
        assert container["image"] == "registry.example.com/pipelines:1.0"
        assert container["args"][1:3] == ["--root", "/mnt/pipelines/taxi"]
    arguments = containers(specification)["trainer"]["args"]
    assert arguments[0] == "Trainer"
    assert arguments[3:] == ["--key", "{{$.inputs.parameters['key']}}"]
    config = planned_config(specification)
    assert config["data"]["label"] == "tips"
    # The settings of containers are with them alone, and in no record.
    assert config["kubeflow"]["env"] == {}
    assert config["kubeflow"]["components"]["Trainer"]["env"] == {}
    assert config["kubeflow"]["components"]["Trainer"]["cpu"] == "2"
    assert "of the trainer" not in str(containers(specification)["plan"]["args"])


def test_the_exit_handler_runs_whatever_came_before(specification):
    end = specification["root"]["dag"]["tasks"]["end"]
    assert end["dependentTasks"] == ["exit-handler-1"]
    assert end["triggerPolicy"] == {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    assert end["inputs"] == {"parameters": {"run": {"runtimeValue": {"constant": "{{$.pipeline_job_uuid}}"}}}}
    assert "outputDefinitions" not in specification["components"]["comp-end"]


def test_settings_of_steps_reach_containers_tasks_and_pods(specification, tasks, pods):
    resources = containers(specification)["trainer"]["resources"]
    assert resources["resourceCpuLimit"] == resources["resourceCpuRequest"] == "2"
    assert resources["resourceMemoryLimit"] == "4Gi"
    assert resources["accelerator"]["resourceType"] == "nvidia.com/gpu"
    assert resources["accelerator"]["resourceCount"] == "1"
    assert tasks["trainer"]["retryPolicy"]["maxRetryCount"] == 3
    assert tasks["transform"]["retryPolicy"]["maxRetryCount"] == 2
    end = specification["root"]["dag"]["tasks"]["end"]
    assert end["retryPolicy"]["maxRetryCount"] == 4
    assert "resources" not in containers(specification)["transform"]

    def environment(name):
        return {item["name"]: item["value"] for item in containers(specification)[name]["env"]}

    assert environment("trainer") == {"A": "of the trainer", "B": "2", RETRIES_VARIABLE: "3"}
    assert environment("end") == {"A": "1", "B": "2", RETRIES_VARIABLE: "4"}
    for pod in pods.values():
        (secret,) = pod["secretAsEnv"]
        assert secret["keyToEnv"] == [{"envVar": "PASSWORD", "secretKey": "password"}]
        assert pod["secretAsVolume"][0]["mountPath"] == "/etc/key"
        assert pod["pvcMount"][0]["constant"] == "pipelines"
        assert pod["pvcMount"][0]["mountPath"] == "/mnt/pipelines"
    assert pods["exec-trainer"]["nodeSelector"]["labels"] == {"pool": "ml", "disk": "ssd"}
    assert pods["exec-plan"]["nodeSelector"]["labels"] == {"pool": "ml"}
    assert pods["exec-trainer"]["activeDeadlineSeconds"] == "900"
    assert pods["exec-end"]["tolerations"] == [
        {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule", "tolerationSeconds": "30"}
    ]
    assert pods["exec-trainer"]["fieldPathAsEnv"] == [
        {"name": "KFP_RUN_ID", "fieldPath": "metadata.labels['pipeline/runid']"}
    ]


def test_a_pipeline_for_vertex_is_one_document(config_of):
    (specification,) = yaml.safe_load_all(compile_pipeline(config_of(VERTEX, data=DATA)))
    end = specification["root"]["dag"]["tasks"]["end"]
    assert end["inputs"]["parameters"]["run"]["runtimeValue"]["constant"] == "{{$.pipeline_job_name}}"
    # There, a pod has no label with the run, which is in the paths of its outputs.
    assert containers(specification)["trainer"]["args"][-2:] == ["--executor-input", "{{$}}"]


def test_the_cache_can_be_turned_off(config_of):
    text = compile_pipeline(config_of({"cache": False, "components": {"Trainer": {"cache": True}}}))
    assert cached(tasks_of(specification_of(text))) == {"trainer"}


OWN_LABEL = {"module": {"path": "my.module"}, "evaluator": {"label": "tips_xf"}}


@pytest.mark.parametrize(
    ("sections", "parameters", "message"),
    [
        ({}, ["trainer.learning_rate"], r"trainer.learning_rate has no value"),
        (OWN_LABEL, [], r"'tips_xf' is not the column 'tips'"),  # it needs a problem type
    ],
)
def test_what_no_run_could_do_is_not_compiled(config_of, sections, parameters, message):
    with pytest.raises(BadInputError, match=message):
        compile_pipeline(config_of(**sections), parameters)


def test_a_search_has_a_step_of_its_own(config_of):
    search = {"trials": 7, "space": {"units": [8, 16]}}
    text = compile_pipeline(config_of({"components": {"Tuner": {"cpu": "4"}}}, tuner=search))
    specification = specification_of(text)
    json_format.ParseDict(specification, pipeline_spec_pb2.PipelineSpec())
    tasks = tasks_of(specification)
    assert "tuner" in tasks["trainer"]["dependentTasks"]
    assert containers(specification)["tuner"]["resources"]["resourceCpuRequest"] == "4"
    assert tasks["tuner"]["cachingOptions"] == {"enableCache": True}
    assert planned_config(specification)["tuner"]["trials"] == 7


def team_config(team, **source):
    """Returns the configuration of a pipeline of the team's own, whose folder is /code in the image."""
    kubeflow = {
        "image": "team:1", "root": "/mnt/pipelines/team", "code": "/code",
        "volumes": [{"claim": "pipelines", "path": "/mnt/pipelines"}],
    }  # fmt: skip
    source = {"file": str(team.file), **source}
    return TfxPipelineConfig.model_validate({"pipeline": source, "kubeflow": kubeflow})


def test_a_pipeline_of_the_users_own(team):
    team.define("""
        def create_pipeline(suffix="!"):
            write = Write(text=RuntimeParameter(name="a-text", ptype=str, default="ab"))
            latest = Resolver(
                strategy_class=LatestArtifactStrategy,
                examples=Channel(type=Examples, producer_component_id="Write"),
            ).with_id("latest")
            latest.add_upstream_node(write)
            times = RuntimeParameter(name="times", ptype=int)
            return pipeline(write, latest, Copy(examples=latest.outputs["examples"], times=times))
    """)
    config = team_config(team, arguments={"suffix": "?"}, parameters={"times": "4"})
    text = compile_pipeline(config)
    specification = specification_of(text)
    json_format.ParseDict(specification, pipeline_spec_pb2.PipelineSpec())
    assert specification["pipelineInfo"]["name"] == "team"
    tasks = tasks_of(specification)
    assert set(tasks) == {"plan", "write", "copy", "record"}
    assert tasks["copy"]["dependentTasks"] == ["plan", "write"]
    assert tasks["record"]["dependentTasks"] == ["copy", "plan", "write"]
    declared = specification["root"]["inputDefinitions"]["parameters"]
    defaults = {name: parameter["defaultValue"] for name, parameter in declared.items()}
    assert defaults == {"a_text": "ab", "times": 4}
    assert declared["times"]["parameterType"] == "NUMBER_INTEGER"
    assert planned_config(specification)["pipeline"] == {
        "file": f"/code/{team.file.name}", "function": None, "arguments": {"suffix": "?"},
        "parameters": {"a-text": "ab", "times": 4},
    }  # fmt: skip
    arguments = containers(specification)["plan"]["args"]
    at = arguments.index("pipeline.parameters.a-text")
    assert arguments[at + 1] == "{{$.inputs.parameters['a_text']}}"
    assert compile_pipeline(config) == text


@pytest.mark.parametrize("default", ["", "SELECT *\nFROM a: b", "a\r\n", "ä 😀"])
def test_a_parameter_of_any_text(team, default):
    parameter = f"RuntimeParameter(name='text', ptype=str, default={default!r})"
    team.define(f"def create_pipeline():\n    return pipeline(Write(text={parameter}))\n")
    specification = specification_of(compile_pipeline(team_config(team)))
    assert specification["root"]["inputDefinitions"]["parameters"]["text"]["defaultValue"] == default
    assert not any("FROM" in key for key in specification)


@pytest.mark.parametrize(
    ("component", "message"),
    [
        ('Write(text="a").with_id("Plan")', r"^Plan: on Kubeflow, every pipeline has a step with this id"),
        (
            'Write(text=RuntimeParameter(name="text", ptype=str, default="{{a}}"))',
            r"^pipeline.parameters.text = '{{a}}': Kubeflow would",  # read it as a placeholder
        ),
    ],
)
def test_what_kubeflow_would_misread_in_a_definition_is_refused(team, component, message):
    team.define(f"def create_pipeline():\n    return pipeline({component})\n")
    with pytest.raises(BadInputError, match=message):
        compile_pipeline(team_config(team))


def test_components_that_are_added_to_a_pipeline_from_a_csv(config_of, team):
    team.define("""
        def extend(components):
            examples = components["example_gen"].outputs["examples"]
            return [Copy(examples=examples).with_id("Copy_of_examples")]
    """)
    extend = {"extend": f"{team.file}:extend"}
    with pytest.raises(BadInputError, match=r"pipeline.extend = .*set kubeflow.code"):
        compile_pipeline(config_of(pipeline=extend))
    step = {"components": {"Copy_of_examples": {"cpu": "3"}}}
    specification = specification_of(compile_pipeline(config_of({"code": "/code", **step}, pipeline=extend)))
    assert tasks_of(specification)["copy-of-examples"]["dependentTasks"] == ["csv-example-gen", "plan"]
    assert planned_config(specification)["pipeline"]["extend"] == f"/code/{team.file.name}:extend"
    assert containers(specification)["copy-of-examples"]["resources"]["resourceCpuLimit"] == "3"
