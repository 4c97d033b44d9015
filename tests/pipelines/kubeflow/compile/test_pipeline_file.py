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

TRAINER = {
    "cpu": "2",
    "memory": "4Gi",
    "accelerators": 1,
    "accelerator": "nvidia.com/gpu",
    "node_selector": {"disk": "ssd"},
    "retries": 3,
    "timeout": 900,
    "env": {"A": "of the trainer"},
}
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
def text():
    from pipelines.config.pipeline_config import PipelineConfig

    config = PipelineConfig.model_validate(
        {
            "name": "taxi",
            "data": {"path": "/mnt/pipelines/taxi.csv", "label": "tips"},
            "trainer": {"learning_rate": 0.25, "train_steps": 700},
            "kubeflow": {
                "image": "registry.example.com/pipelines:1.0",
                "pipeline_root": "minio://mlpipeline/v2/artifacts",
                "root": "/mnt/pipelines/taxi",
                "volumes": [{"claim": "pipelines", "path": "/mnt/pipelines"}],
                **SETTINGS,
            },
        }
    )
    text = compile_pipeline(config)
    assert compile_pipeline(config) == text  # the same bytes
    return text


@pytest.fixture
def specification(text):
    return next(yaml.safe_load_all(text))


@pytest.fixture
def pods(text):
    platform = list(yaml.safe_load_all(text))[1]["platforms"]["kubernetes"]
    return platform["deploymentSpec"]["executors"]


@pytest.fixture
def tasks(specification):
    return specification["components"]["comp-exit-handler-1"]["dag"]["tasks"]


def tasks_of(text):
    specification = next(yaml.safe_load_all(text))
    return specification["components"]["comp-exit-handler-1"]["dag"]["tasks"]


def containers(specification):
    executors = specification["deploymentSpec"]["executors"]
    return {label.removeprefix("exec-"): item["container"] for label, item in executors.items()}


def test_it_is_a_pipeline_specification_of_schema_2_1(specification, pods):
    proto = json_format.ParseDict(specification, pipeline_spec_pb2.PipelineSpec())
    assert proto.schema_version == "2.1.0"
    assert proto.default_pipeline_root == "minio://mlpipeline/v2/artifacts"
    for pod in pods.values():
        json_format.ParseDict(pod, kubernetes_executor_config_pb2.KubernetesExecutorConfig())


def test_all_executors_are_containers(specification):
    for executor in specification["deploymentSpec"]["executors"].values():
        assert set(executor) == {"container"}  # neither a resolver nor a hook before the cache
        assert "lifecycle" not in executor["container"]


def test_names_are_those_that_argo_takes(specification, tasks):
    names = [*tasks, *specification["components"], *specification["deploymentSpec"]["executors"]]
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) for name in names)


def test_all_producers_exist(tasks, specification):
    for task in tasks.values():
        for source in task["inputs"].get("parameters", {}).values():
            output = source.get("taskOutputParameter")
            if output:
                producer = tasks[output["producerTask"]]["componentRef"]["name"]
                declared = specification["components"][producer]["outputDefinitions"]
                assert output["outputParameterKey"] in declared["parameters"]


def test_parameters_have_their_types_and_defaults(specification):
    assert specification["root"]["inputDefinitions"]["parameters"] == {
        "data_path": {
            "defaultValue": "/mnt/pipelines/taxi.csv",
            "isOptional": True,
            "parameterType": "STRING",
        },
        "eval_steps": {"defaultValue": 0, "isOptional": True, "parameterType": "NUMBER_INTEGER"},
        "train_steps": {"defaultValue": 700, "isOptional": True, "parameterType": "NUMBER_INTEGER"},
        "trainer_learning_rate": {"defaultValue": 0.25, "isOptional": True, "parameterType": "NUMBER_DOUBLE"},
    }


def test_parameters_reach_the_step_that_plans(specification):
    arguments = containers(specification)["plan"]["args"]
    at = arguments.index("trainer.train_steps")
    assert arguments[at - 1 : at + 2] == [
        "--parameter",
        "trainer.train_steps",
        "{{$.inputs.parameters['train_steps']}}",
    ]


def test_a_cached_step_depends_on_its_key_alone(specification, tasks):
    cached = {name for name, task in tasks.items() if task["cachingOptions"].get("enableCache")}
    assert cached == {
        "csv-example-gen", "statistics-gen", "schema-gen", "example-validator", "transform", "trainer",
        "serving-check", "pusher",
    }  # fmt: skip
    for name in cached:
        given = tasks[name]["inputs"]["parameters"]
        assert list(given) == ["key"]
        assert given["key"]["taskOutputParameter"] == {
            "producerTask": "plan",
            "outputParameterKey": name.replace("-", "_"),
        }
        assert "artifacts" not in tasks[name]["inputs"]
        assert "dependentTasks" in tasks[name]
        assert not any("pipeline_job" in word for word in containers(specification)[name]["args"])


def test_containers_call_our_entry_point(specification):
    for name, container in containers(specification).items():
        assert container["command"] == ["python", "-P", "-m", "pipelines.kubeflow.step"], name
        assert container["image"] == "registry.example.com/pipelines:1.0"
        assert container["args"][1:3] == ["--root", "/mnt/pipelines/taxi"]
    arguments = containers(specification)["trainer"]["args"]
    assert arguments[0] == "Trainer"
    assert arguments[3:] == ["--key", "{{$.inputs.parameters['key']}}"]


def test_the_configuration_travels_in_the_pipeline(specification):
    arguments = containers(specification)["plan"]["args"]
    config = json.loads(arguments[arguments.index("--config") + 1])
    assert config["data"]["label"] == "tips"
    # The settings of containers are with them alone, and in no record.
    assert config["kubeflow"]["env"] == {}
    assert config["kubeflow"]["components"]["Trainer"]["env"] == {}
    assert config["kubeflow"]["components"]["Trainer"]["cpu"] == "2"
    assert "of the trainer" not in str(arguments)


def test_the_exit_handler_runs_whatever_came_before(specification):
    end = specification["root"]["dag"]["tasks"]["end"]
    assert end["dependentTasks"] == ["exit-handler-1"]
    assert end["triggerPolicy"] == {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    assert end["inputs"]["parameters"]["run"]["runtimeValue"]["constant"] == ("{{$.pipeline_job_uuid}}")


def test_resources_and_retries(specification, tasks):
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


def test_environment_and_secrets(specification, pods):
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


def test_nodes_timeouts_and_the_id_of_the_run(pods):
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
    config = config_of(
        {
            "backend": "vertex",
            "pipeline_root": "gs://bucket/artifacts",
            "root": "/gcs/bucket/taxi",
            "volumes": [],
        },
        data={"path": "/gcs/bucket/taxi.csv", "label": "tips"},
    )
    (specification,) = yaml.safe_load_all(compile_pipeline(config))
    end = specification["root"]["dag"]["tasks"]["end"]
    assert end["inputs"]["parameters"]["run"]["runtimeValue"]["constant"] == ("{{$.pipeline_job_name}}")
    # There, a pod has no label with the run, which is in the paths of its outputs.
    assert containers(specification)["trainer"]["args"][-2:] == ["--executor-input", "{{$}}"]


def test_the_cache_can_be_turned_off(config_of):
    text = compile_pipeline(config_of({"cache": False, "components": {"Trainer": {"cache": True}}}))
    tasks = tasks_of(text)
    cached = [name for name, task in tasks.items() if task["cachingOptions"].get("enableCache")]
    assert cached == ["trainer"]


def test_a_curated_schema_is_copied_by_a_step(config_of):
    config = config_of(schema={"path": "/mnt/pipelines/schema.pbtxt"})
    tasks = tasks_of(compile_pipeline(config))
    assert tasks["schema-gen"]["dependentTasks"] == ["plan"]


def test_a_parameter_without_a_default_is_refused(config_of):
    with pytest.raises(BadInputError, match=r"trainer.learning_rate has no value"):
        compile_pipeline(config_of(), ["trainer.learning_rate"])


def test_a_label_that_the_module_makes_needs_a_problem_type(config_of):
    made = {"module": {"path": "my.module"}, "evaluator": {"label": "tips_xf"}}
    with pytest.raises(BadInputError, match=r"'tips_xf' is not the column 'tips'"):
        compile_pipeline(config_of(**made))


def test_a_search_has_a_step_of_its_own(config_of):
    config = config_of(
        {"components": {"Tuner": {"cpu": "4"}}}, tuner={"trials": 7, "space": {"units": [8, 16]}}
    )
    specification = next(yaml.safe_load_all(compile_pipeline(config)))
    json_format.ParseDict(specification, pipeline_spec_pb2.PipelineSpec())
    tasks = specification["components"]["comp-exit-handler-1"]["dag"]["tasks"]
    assert "tuner" in tasks["trainer"]["dependentTasks"]
    tuner = specification["deploymentSpec"]["executors"]["exec-tuner"]["container"]
    assert tuner["resources"]["resourceCpuRequest"] == "4"
    assert tasks["tuner"]["cachingOptions"] == {"enableCache": True}
    (plan,) = [text for text in containers(specification)["plan"]["args"] if "trials" in text]
    assert json.loads(plan)["tuner"]["trials"] == 7


def team_config(team, kubeflow=(), **source):
    """Returns the configuration of a pipeline of the team's own, whose folder is /code in the image."""
    kubeflow = {
        "image": "team:1",
        "root": "/mnt/pipelines/team",
        "code": "/code",
        "volumes": [{"claim": "pipelines", "path": "/mnt/pipelines"}],
        **dict(kubeflow),
    }
    return TfxPipelineConfig.model_validate(
        {"pipeline": {"file": str(team.file), **source}, "kubeflow": kubeflow}
    )


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
    specification = next(yaml.safe_load_all(text))
    json_format.ParseDict(specification, pipeline_spec_pb2.PipelineSpec())
    assert specification["pipelineInfo"]["name"] == "team"
    tasks = tasks_of(text)
    assert set(tasks) == {"plan", "write", "copy", "record"}
    assert tasks["copy"]["dependentTasks"] == ["plan", "write"]
    assert tasks["record"]["dependentTasks"] == ["copy", "plan", "write"]
    declared = specification["root"]["inputDefinitions"]["parameters"]
    assert {name: parameter["defaultValue"] for name, parameter in declared.items()} == {
        "a_text": "ab",
        "times": 4,
    }
    assert declared["times"]["parameterType"] == "NUMBER_INTEGER"
    arguments = containers(specification)["plan"]["args"]
    planned = json.loads(arguments[arguments.index("--config") + 1])
    assert planned["pipeline"] == {
        "file": f"/code/{team.file.name}",
        "function": None,
        "arguments": {"suffix": "?"},
        "parameters": {"a-text": "ab", "times": 4},
    }
    at = arguments.index("pipeline.parameters.a-text")
    assert arguments[at + 1] == "{{$.inputs.parameters['a_text']}}"
    assert compile_pipeline(config) == text


def test_a_component_called_plan_is_refused(team):
    team.define("""
        def create_pipeline():
            return pipeline(Write(text="a").with_id("Plan"))
    """)
    with pytest.raises(BadInputError, match=r"^Plan: on Kubeflow, every pipeline has a step with this id"):
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
    text = compile_pipeline(config_of({"code": "/code", **step}, pipeline=extend))
    tasks = tasks_of(text)
    assert tasks["copy-of-examples"]["dependentTasks"] == ["csv-example-gen", "plan"]
    specification = next(yaml.safe_load_all(text))
    arguments = containers(specification)["plan"]["args"]
    planned = json.loads(arguments[arguments.index("--config") + 1])
    assert planned["pipeline"]["extend"] == f"/code/{team.file.name}:extend"
    assert containers(specification)["copy-of-examples"]["resources"]["resourceCpuLimit"] == "3"


def test_a_default_value_that_kubeflow_would_read_as_a_placeholder(team):
    team.define("""
        def create_pipeline():
            return pipeline(Write(text=RuntimeParameter(name="text", ptype=str, default="{{a}}")))
    """)
    with pytest.raises(BadInputError, match=r"^pipeline.parameters.text = '{{a}}': Kubeflow would"):
        compile_pipeline(team_config(team))
