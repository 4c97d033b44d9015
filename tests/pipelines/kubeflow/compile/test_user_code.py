import os
import textwrap

import pytest

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.tfx_pipeline import PipelineSource
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.user_code import check_paths, configured_paths, is_seen, loaded, seen_path

FILES = """
    from tfx.components import CsvExampleGen, Pusher, Transform
    from tfx.components.schema_gen.import_schema_gen.component import ImportSchemaGen
    from tfx.proto import pusher_pb2

    def create_pipeline(data="data", module="module.py", schema="schema.pbtxt", served="served"):
        gen = CsvExampleGen(input_base=data)
        schema = ImportSchemaGen(schema_file=schema)
        transform = Transform(
            examples=gen.outputs["examples"], schema=schema.outputs["schema"], module_file=module
        )
        importer = Importer(source_uri="model", artifact_type=Model).with_id("old")
        destination = pusher_pb2.PushDestination(
            filesystem=pusher_pb2.PushDestination.Filesystem(base_directory=served)
        )
        pusher = Pusher(model=importer.outputs["result"], push_destination=destination)
        return pipeline(gen, schema, transform, importer, pusher)
"""


def settings(**kubeflow):
    volumes = [{"claim": "pipelines", "path": "/mnt/pipelines"}]
    return KubeflowConfig.model_validate({"root": "/mnt/pipelines/team", "volumes": volumes, **kubeflow})


@pytest.fixture
def source(team):
    """Returns a function that gives the source of a pipeline with files of each kind."""
    (team.file.parent / "data").mkdir()
    (team.file.parent / "module.py").write_text("def preprocessing_fn(inputs):\n    return inputs\n")
    team.define(textwrap.dedent(FILES))
    return lambda **arguments: PipelineSource(file=str(team.file), arguments=arguments)


def test_relative_paths_are_those_from_the_folder_of_the_definition(source, team, tmp_path):
    before = os.getcwd()
    with loaded(source()) as pipeline:
        found = {(component, name): path for component, name, path in configured_paths(pipeline)}
    assert os.getcwd() == before
    assert found == {
        ("CsvExampleGen", "input_base"): str(tmp_path / "data"),
        ("ImportSchemaGen", "schema_file"): str(tmp_path / "schema.pbtxt"),
        ("Transform", "module_file"): str(tmp_path / "module.py"),
        ("old", "artifact_uri"): str(tmp_path / "model"),
        ("Pusher", "base_directory"): str(tmp_path / "served"),
    }
    with pytest.raises(BadInputError), loaded(source(nothing="a")):
        pass
    assert os.getcwd() == before


def test_addresses_are_no_local_paths(source):
    with loaded(source(data="gs://bucket/data", served="s3://bucket/served")) as pipeline:
        found = {component for component, _, _ in configured_paths(pipeline)}
    assert found == {"ImportSchemaGen", "Transform", "old"}


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ({"data": "/home/me/data"}, "CsvExampleGen: input_base = '/home/me/data'"),
        ({"module": "/home/me/module.py"}, "Transform: module_file = '/home/me/module.py'"),
        ({"schema": "/home/me/a.pbtxt"}, "ImportSchemaGen: schema_file = '/home/me/a.pbtxt'"),
        ({"served": "/home/me/served"}, "Pusher: base_directory = '/home/me/served'"),
    ],
)
def test_a_path_that_no_step_sees_is_refused(source, team, arguments, start):
    beside = settings(code="/code")
    with loaded(source()) as pipeline:
        check_paths(beside, pipeline, team.file.parent)
        with pytest.raises(BadInputError, match=r"CsvExampleGen: input_base = .*/mnt/pipelines"):
            check_paths(settings(), pipeline, team.file.parent)
    with loaded(source(**arguments)) as pipeline, pytest.raises(BadInputError) as refused:
        check_paths(beside, pipeline, team.file.parent)
    assert str(refused.value).startswith(f"{start}: no step can read it. Put it onto a volume")
    on_volume = {name: path.replace("/home/me", "/mnt/pipelines") for name, path in arguments.items()}
    with loaded(source(**on_volume)) as pipeline:
        check_paths(beside, pipeline, team.file.parent)


def test_the_file_and_other_places_that_the_steps_see():
    assert seen_path(settings(code="/code"), "pipeline.file", "/home/me/team.py") == "/code/team.py"
    on_volume = "/mnt/pipelines/code/team.py"
    assert seen_path(settings(), "pipeline.file", on_volume) == on_volume
    with pytest.raises(BadInputError, match=r"^pipeline.file = '/home/me/team.py': no step can read"):
        seen_path(settings(), "pipeline.file", "/home/me/team.py")
    vertex = settings(backend="vertex", root="/gcs/bucket/team", volumes=[])
    assert is_seen(settings(), "/mnt/pipelines/data/a.csv")
    assert is_seen(settings(code="/code"), "/code/data/a.csv")
    assert is_seen(vertex, "/gcs/other/a.csv")
    for path in ("/mnt/pipelines2/a.csv", "/mnt/pipelines/../a.csv", "/gcs/other/a.csv"):
        assert not is_seen(settings(), path)
