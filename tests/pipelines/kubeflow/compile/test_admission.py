import re

import pytest
import yaml

from pipelines.config.beam import BeamConfig
from pipelines.config.load import load_config
from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.admission import (
    COMPONENTS,
    check_config,
    check_for_steps,
    check_names,
    check_specification,
    step_options,
    without_effect,
)
from pipelines.kubeflow.compile.dag import dag_of_csv
from pipelines.kubeflow.compile.pipeline_file import compile_pipeline

VERTEX = {"backend": "vertex", "pipeline_root": "gs://bucket/root", "root": "/gcs/bucket/taxi", "volumes": []}


def csv(path):
    return {"path": path, "label": "tips"}


DATA = csv("/gcs/bucket/taxi.csv")


@pytest.mark.parametrize(
    ("kubeflow", "sections"),
    [
        ({}, {}),
        ({"pipeline_root": "s3://bucket"}, {}),
        ({"pipeline_root": None}, {}),  # the server's
        (VERTEX, {"data": DATA}),
        (VERTEX, {"data": csv("/gcs/bucket/day-{SPAN}/taxi.csv")}),
        ({}, {"data": csv("/mnt/pipelines/a/../taxi.csv")}),
    ],
)
def test_what_kubeflow_takes_passes(config_of, kubeflow, sections):
    check_config(config_of(kubeflow, **sections))


def test_the_steps_are_those_of_the_pipeline(config_of):
    dag = dag_of_csv(config_of(tuner={"space": {"units": [8, 16]}}))
    assert set(dag.upstream) == set(COMPONENTS)


MOUNTED_TWICE = [{"claim": claim, "path": "/mnt/pipelines/"} for claim in ("pipelines", "data")]
KEY_TWICE = [{"name": name, "path": "/key"} for name in "ab"]
GPU = {"accelerators": 1, "accelerator": "nvidia.com/gpu"}
IN_STORES = [
    f"{scheme}://bucket/{name}"
    for scheme in ("gs", "s3", "minio")
    for name in ("taxi.csv", "day-{SPAN}/taxi.csv", "{YYYY}-{MM}-{DD}/*.csv")
]
PLACEHOLDER = "{{workflow.name}}"
EXCLUDED = {**csv("/mnt/pipelines/a.csv"), "exclude": ["a", PLACEHOLDER]}


@pytest.mark.parametrize(
    ("kubeflow", "sections", "message"),
    [
        ({"image": None}, {}, "kubeflow.image is missing"),
        ({**VERTEX, "pipeline_root": None}, {}, "kubeflow.pipeline_root is missing.*gs://BUCKET/FOLDER"),
        ({"pipeline_root": "/data"}, {}, "'/data'.*minio://.*kubeflow.root instead"),
        ({"pipeline_root": "minio://"}, {}, "kubeflow.pipeline_root = 'minio://'"),
        ({"root": None}, {}, "kubeflow.root is missing"),
        ({"root": "/elsewhere/taxi"}, {}, "not on a volume.*/mnt/pipelines"),
        ({**VERTEX, "service_account": "me"}, {}, "kubeflow.service_account: only submit"),
        ({**VERTEX, "root": "/mnt/pipelines/taxi"}, {}, "/gcs/BUCKET/FOLDER"),
        ({**VERTEX, "pipeline_root": "minio://mlpipeline"}, {}, "'vertex' takes gs://"),
        ({**VERTEX, "node_selector": {"a": "b"}}, {}, "kubeflow.node_selector: Vertex has no pods"),
        ({**VERTEX, "components": {"Trainer": {"timeout": 5}}}, {}, "Trainer.timeout: Vertex"),
        ({"env": {"A": "x {{y}}"}}, {}, "kubeflow.env.A.*two opening braces"),
        (
            {"volumes": MOUNTED_TWICE},
            {},
            "kubeflow.volumes.1.path = '/mnt/pipelines/': kubeflow.volumes.0 is mounted there",
        ),
        ({"secrets": KEY_TWICE}, {}, "kubeflow.secrets.1.path = '/key': kubeflow.secrets.0 is mounted"),
        (
            {"training_job": {}, "components": {"Trainer": GPU}},
            {"trainer": {"workers": 2, "ps": 1}},
            "Set kubeflow.training_job.accelerator",  # no task of the job would have it
        ),
        ({}, {"data": csv("/home/me/taxi.csv")}, "data.path = '/home/me/taxi.csv'.*/mnt/pipelines"),
        ({}, {"data": csv("/mnt/pipelines/../../etc/x.csv")}, "no step can read it"),
        (VERTEX, {"data": csv("gs://b/day-{SPAN}/a.csv")}, r"Give '/gcs/b/day-\{SPAN\}/a.csv'"),
        *(
            (
                {},
                {"data": csv(path)},
                f"^data.path = {re.escape(repr(path))}: steps read files, not object stores.*"
                "Put the files on a volume.*/mnt/pipelines",
            )
            for path in IN_STORES
        ),
        ({}, {"data": EXCLUDED}, f"^data.exclude.1 = '{PLACEHOLDER}': Kubeflow would"),
        (
            {},
            {"columns": {PLACEHOLDER: "number"}},
            f"^columns.{PLACEHOLDER} = '{PLACEHOLDER}': Kubeflow would",
        ),
    ],
)
def test_what_could_not_work_is_refused(config_of, kubeflow, sections, message):
    data = {"data": DATA} if "backend" in kubeflow else {}
    with pytest.raises(BadInputError, match=f"(?s){message}"):
        check_config(config_of(kubeflow, **{**data, **sections}))


@pytest.mark.parametrize(
    ("kubeflow", "name", "components", "message"),
    [
        ({"name": "Taxi_Tips"}, "taxi", COMPONENTS, 'kubeflow.name = "taxi-tips"'),
        ({"name": "My Orders"}, "taxi", COMPONENTS, 'kubeflow.name = "my-orders"'),
        ({"name": "a" * 58}, "taxi", COMPONENTS, "at most 57"),
        ({"components": {"Traner": {}}}, "taxi", COMPONENTS, "Did you mean Trainer"),
        *(
            (
                {"components": {step: {"cache": True}}},
                "taxi",
                COMPONENTS,
                f"{step}.cache = true: this step runs in every",
            )
            for step in ("Plan", "End")
        ),
        ({}, "My_Taxi.2", COMPONENTS, r'^name = .*kubeflow.name = "my-taxi-2"'),
        *(
            ({}, "team", ["Write", step], f"^{step}: on Kubeflow, .* with with_id")
            for step in ("Plan", "Record", "End")  # steps of every pipeline
        ),
    ],
)
def test_names_that_could_not_work_are_refused(config_of, kubeflow, name, components, message):
    with pytest.raises(BadInputError, match=message):
        check_names(config_of(kubeflow).kubeflow, name, components)


def test_the_name_on_kubeflow_replaces_that_of_the_configuration(config_of):
    settings = config_of({"name": "my-taxi-2"}).kubeflow
    assert check_names(settings, "My_Taxi.2", COMPONENTS) == "my-taxi-2"


@pytest.mark.parametrize(
    ("kubeflow", "key"),
    [
        ({"training_job": {}}, "kubeflow.training_job"),
        ({"parameters": ["trainer.seed"]}, "kubeflow.parameters"),
    ],
)
def test_settings_that_a_pipeline_of_the_users_own_has_not(config_of, kubeflow, key):
    pipeline = {"file": "/mnt/pipelines/team.py"}
    own = {"pipeline": pipeline, "kubeflow": config_of().kubeflow.model_dump()}
    check_config(TfxPipelineConfig.model_validate(own))
    own["kubeflow"] |= kubeflow
    with pytest.raises(BadInputError, match=f"^{key} is for pipelines from a CSV"):
        check_config(TfxPipelineConfig.model_validate(own))


DAG = {"tasks": {"plan": {}}}
WITHOUT_DEFAULT = {"parameters": {"span": {"parameterType": "STRING"}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schemaVersion": "2.0.0"}, "schemaVersion='2.0.0'"),
        ({"root": {"dag": {"tasks": {"my_task": {}}}}}, "'my_task' is not a valid name"),
        ({"root": {"dag": DAG, "inputDefinitions": WITHOUT_DEFAULT}}, "'span' has no default"),
    ],
)
def test_what_the_server_would_refuse_is_refused(changes, message):
    root = {"dag": DAG, "inputDefinitions": {"parameters": {}}}
    specification = {"schemaVersion": "2.1.0", "components": {"comp-a": {"dag": DAG}}, "root": root}
    check_specification(yaml.safe_dump(specification))
    with pytest.raises(BadInputError, match=message):
        check_specification(yaml.safe_dump({**specification, **changes}))


@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        ("flink", {"master": "localhost:8081"}),
        ("spark", {"master": "spark://host:7077"}),
        (
            "dataflow",
            dict.fromkeys(("project", "region", "worker_image"), "a-b1")
            | {"temp_location": "gs://bucket/temp"},
        ),
    ],
)
def test_an_engine_beside_the_steps_is_refused_before_a_run(config_of, engine, settings):
    config = config_of(beam={"runner": engine, engine: settings})
    with pytest.raises(BadInputError, match=rf'beam.runner = "{engine}".*does not work on Kubeflow'):
        check_for_steps(config)
    with pytest.raises(BadInputError, match="does not work on Kubeflow"):
        compile_pipeline(config)


def test_processes_and_options_are_those_of_each_step(config_of):
    beam = {"direct": {"workers": 3}, "args": ["--temp_location=/tmp/b"]}
    check_for_steps(config_of(beam=beam))
    assert step_options(BeamConfig.model_validate(beam)) == (
        "--runner=components.beam.processes.ProcessesRunner",
        "--direct_num_workers=3",
        "--direct_running_mode=multi_processing",
        "--temp_location=/tmp/b",
    )
    assert step_options(BeamConfig()) == ()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ((), []),
        (("retention.runs=5", "retention.days=30"), []),
        (("retention.artifacts=2", "retention.checkpoints=2"), []),
        (("notify.webhook_env=HOOK", "retention.artifacts=2"), ["[notify]"]),
    ],
)
def test_what_has_no_effect(settings, named):
    texts = without_effect(load_config(data="d.csv", label="y", settings=settings))
    assert [text[: len(name)] for text, name in zip(texts, named, strict=True)] == named
