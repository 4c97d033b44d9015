import pytest

from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.admission import COMPONENTS, check_config, check_names, check_specification
from pipelines.kubeflow.compile.dag import dag_of_csv

VERTEX = {
    "backend": "vertex",
    "pipeline_root": "gs://bucket/artifacts",
    "root": "/gcs/bucket/taxi",
    "volumes": [],
}
DATA = {"path": "/gcs/bucket/taxi.csv", "label": "tips"}


def test_what_kubeflow_takes_passes(config_of):
    check_config(config_of())
    check_config(config_of({"pipeline_root": "s3://bucket"}))
    check_config(config_of({"pipeline_root": None}))  # the server's
    check_config(config_of(VERTEX, data=DATA))


def test_the_steps_are_those_of_the_pipeline(config_of):
    dag = dag_of_csv(config_of(tuner={"space": {"units": [8, 16]}}))
    assert set(dag.upstream) == set(COMPONENTS)


@pytest.mark.parametrize(
    ("kubeflow", "message"),
    [
        ({"image": None}, "kubeflow.image is missing"),
        ({**VERTEX, "pipeline_root": None}, "kubeflow.pipeline_root is missing.*gs://BUCKET/FOLDER"),
        ({"pipeline_root": "/data"}, "'/data'.*minio://.*kubeflow.root instead"),
        ({"pipeline_root": "minio://"}, "kubeflow.pipeline_root = 'minio://'"),
        ({"root": None}, "kubeflow.root is missing"),
        ({"root": "/elsewhere/taxi"}, "not on a volume.*/mnt/pipelines"),
        ({**VERTEX, "service_account": "me"}, "kubeflow.service_account: only submit"),
        ({**VERTEX, "root": "/mnt/pipelines/taxi"}, "/gcs/BUCKET/FOLDER"),
        ({**VERTEX, "pipeline_root": "minio://mlpipeline"}, "'vertex' takes gs://"),
        ({**VERTEX, "node_selector": {"a": "b"}}, "kubeflow.node_selector: Vertex has no pods"),
        ({**VERTEX, "components": {"Trainer": {"timeout": 5}}}, "Trainer.timeout: Vertex"),
        ({"env": {"A": "x {{y}}"}}, "kubeflow.env.A.*two opening braces"),
        (
            {
                "volumes": [
                    {"claim": "pipelines", "path": "/mnt/pipelines"},
                    {"claim": "data", "path": "/mnt/pipelines/"},
                ]
            },
            "kubeflow.volumes.1.path = '/mnt/pipelines/': kubeflow.volumes.0 is mounted there",
        ),
        (
            {"secrets": [{"name": "a", "path": "/key"}, {"name": "b", "path": "/key"}]},
            "kubeflow.secrets.1.path = '/key': kubeflow.secrets.0 is mounted",
        ),
    ],
)
def test_what_could_not_work_is_refused(config_of, kubeflow, message):
    with pytest.raises(BadInputError, match=message):
        check_config(config_of(kubeflow, data=DATA if "backend" in kubeflow else config_of().data))


@pytest.mark.parametrize(
    ("kubeflow", "message"),
    [
        ({"name": "Taxi_Tips"}, 'kubeflow.name = "taxi-tips"'),
        ({"name": "My Orders"}, 'kubeflow.name = "my-orders"'),
        ({"name": "a" * 58}, "at most 57"),
        ({"components": {"Traner": {}}}, "Did you mean Trainer"),
        ({"components": {"Plan": {"cache": True}}}, "Plan.cache = true: this step runs in every"),
        ({"components": {"End": {"cache": True}}}, "End.cache = true: this step runs in every"),
    ],
)
def test_names_that_could_not_work_are_refused(config_of, kubeflow, message):
    with pytest.raises(BadInputError, match=message):
        check_names(config_of(kubeflow).kubeflow, "taxi", COMPONENTS)


def test_a_name_of_the_configuration_that_kubernetes_refuses(config_of):
    with pytest.raises(BadInputError, match=r'^name = .*kubeflow.name = "my-taxi-2"'):
        check_names(config_of().kubeflow, "My_Taxi.2", COMPONENTS)
    settings = config_of({"name": "my-taxi-2"}).kubeflow
    assert check_names(settings, "My_Taxi.2", COMPONENTS) == "my-taxi-2"


@pytest.mark.parametrize("component", ["Plan", "Record", "End"])
def test_a_component_with_the_id_of_a_step_of_every_pipeline(config_of, component):
    settings = config_of().kubeflow
    with pytest.raises(BadInputError, match=f"^{component}: on Kubeflow, .* with with_id"):
        check_names(settings, "team", ["Write", component])


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


def test_data_that_no_step_sees_are_refused(config_of):
    with pytest.raises(BadInputError, match=r"data.path = '/home/me/taxi.csv'.*/mnt/pipelines"):
        check_config(config_of(data={"path": "/home/me/taxi.csv", "label": "tips"}))


@pytest.mark.parametrize("scheme", ["gs", "s3", "minio"])
@pytest.mark.parametrize("name", ["taxi.csv", "day-{SPAN}/taxi.csv", "{YYYY}-{MM}-{DD}/*.csv"])
def test_data_in_an_object_store_are_refused(config_of, scheme, name):
    path = f"{scheme}://bucket/{name}"
    with pytest.raises(BadInputError) as refused:
        check_config(config_of(data={"path": path, "label": "tips"}))
    said = str(refused.value)
    assert said.startswith(f"data.path = {path!r}: steps read files, not object stores")
    assert "Put the files on a volume" in said
    assert "/mnt/pipelines" in said


def test_data_in_a_bucket_have_a_path_on_vertex(config_of):
    kubeflow = {
        "backend": "vertex",
        "pipeline_root": "gs://bucket/root",
        "root": "/gcs/bucket/taxi",
        "volumes": [],
    }
    data = {"path": "gs://bucket/day-{SPAN}/taxi.csv", "label": "tips"}
    with pytest.raises(BadInputError, match=r"Give '/gcs/bucket/day-\{SPAN\}/taxi.csv'"):
        check_config(config_of(kubeflow, data=data))
    check_config(config_of(kubeflow, data={**data, "path": "/gcs/bucket/day-{SPAN}/taxi.csv"}))


def test_data_beside_the_volume_are_refused(config_of):
    check_config(config_of(data={"path": "/mnt/pipelines/a/../taxi.csv", "label": "tips"}))
    with pytest.raises(BadInputError, match=r"no step can read it"):
        check_config(config_of(data={"path": "/mnt/pipelines/../../etc/x.csv", "label": "tips"}))


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        (
            {"data": {"path": "/mnt/pipelines/a.csv", "label": "y", "exclude": ["a", "{{workflow.name}}"]}},
            "data.exclude.1",
        ),
        ({"columns": {"{{workflow.name}}": "number"}}, r"columns.{{workflow.name}}"),
    ],
)
def test_placeholders_are_found_in_lists_and_keys(config_of, sections, key):
    with pytest.raises(BadInputError, match=f"^{key} = '{{{{workflow.name}}}}': Kubeflow would"):
        check_config(config_of(**sections))


def test_an_accelerator_that_no_task_would_have_is_refused(config_of):
    kubeflow = {
        "training_job": {},
        "components": {"Trainer": {"accelerators": 1, "accelerator": "nvidia.com/gpu"}},
    }
    with pytest.raises(BadInputError, match=r"Set kubeflow.training_job.accelerator"):
        check_config(config_of(kubeflow, trainer={"workers": 2, "ps": 1}))


TASKS = {"plan": {}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schemaVersion": "2.0.0"}, "schemaVersion='2.0.0'"),
        ({"root": {"dag": {"tasks": {"my_task": {}}}}}, "'my_task' is not a valid name"),
        (
            {
                "root": {
                    "dag": {"tasks": TASKS},
                    "inputDefinitions": {"parameters": {"span": {"parameterType": "STRING"}}},
                }
            },
            "'span' has no default",
        ),
    ],
)
def test_what_the_server_would_refuse_is_refused(changes, message):
    import yaml

    specification = {
        "schemaVersion": "2.1.0",
        "components": {"comp-a": {"dag": {"tasks": TASKS}}},
        "root": {"dag": {"tasks": TASKS}, "inputDefinitions": {"parameters": {}}},
    }
    check_specification(yaml.safe_dump(specification))
    with pytest.raises(BadInputError, match=message):
        check_specification(yaml.safe_dump({**specification, **changes}))
