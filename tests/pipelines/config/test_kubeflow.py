from pathlib import Path

import pytest

from pipelines.config.load import load_config
from pipelines.errors import BadInputError


def load(tmp_path: Path, text: str):
    file = tmp_path / "config.toml"
    file.write_text(f'[data]\npath = "a.csv"\nlabel = "y"\n{text}')
    return load_config(file).kubeflow


def test_all_of_it(tmp_path):
    settings = load(
        tmp_path,
        """
        [kubeflow]
        image = "pipelines:1.0"
        pipeline_root = "s3://bucket/artifacts"
        root = "/mnt/pipelines/taxi"
        env = {A = "1"}
        node_selector = {"kubernetes.io/arch" = "amd64"}
        retries = 2
        cache = false
        parameters = ["trainer.seed"]
        [[kubeflow.volumes]]
        claim = "pipelines"
        path = "/mnt/pipelines"
        [[kubeflow.secrets]]
        name = "login"
        env = {password = "PASSWORD"}
        [[kubeflow.tolerations]]
        operator = "Exists"
        effect = "NoSchedule"
        [kubeflow.components.Trainer]
        cpu = "500m"
        memory = "8Gi"
        accelerators = 2
        accelerator = "google.com/tpu"
        """,
    )
    assert settings.volumes[0].claim == "pipelines"
    assert settings.components["Trainer"].accelerators == 2
    assert settings.tolerations[0].key is None
    assert not settings.cache


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[kubeflow]\nrot = "/mnt"', r"kubeflow.rot = '/mnt'.*Did you mean root"),
        (
            '[kubeflow]\nroot = "s3://bucket/taxi"',
            "kubeflow.root = 's3://bucket/taxi': give a folder.*not an object store, because",
        ),
        ('[kubeflow]\nroot = "taxi"', "kubeflow.root = 'taxi': give an absolute path"),
        ('[kubeflow]\nenv = {"A-B" = "1"}', "'A-B' is not a valid environment variable"),
        ('[[kubeflow.volumes]]\nclaim = "My_Claim"\npath = "/mnt"', "claim = 'My_Claim'.*RFC 1123"),
        ('[[kubeflow.volumes]]\nclaim = "a"\npath = "/mnt/../etc"', "volumes.0.path.*without"),
        ('[[kubeflow.secrets]]\nname = "a"', "give env = .* or path"),
        ('[[kubeflow.tolerations]]\nvalue = "a"', "needs a key"),
        ('[[kubeflow.tolerations]]\noperator = "Exists"\nvalue = "a"', "compares no value"),
        ('[kubeflow.components.Trainer]\ncpu = "two"', "Trainer.cpu = 'two': give cores"),
        ('[kubeflow.components.Trainer]\nmemory = "8 GB"', "Trainer.memory = '8 GB': give a size"),
        ("[kubeflow.components.Trainer]\naccelerators = 1", "give both accelerators = 1"),
        ("[kubeflow.components.Trainer]\ncpus = 1", "Trainer.cpus = 1.*Did you mean cpu"),
        ('[kubeflow]\nenv = {KFP_RUN_ID = "1"}', "'KFP_RUN_ID': Kubeflow sets"),
        ('[[kubeflow.secrets]]\nname = "a"\nenv = {key = "KFP_POD_NAME"}', "'KFP_POD_NAME': Kubeflow sets"),
        ('[kubeflow.components.Trainer]\nenv = {KFP_RUN_ID = "1"}', "Kubeflow sets"),
        ('[kubeflow]\nimage = "Not A Valid Image!!"', "kubeflow.image = 'Not A.*name of an image"),
        ('[kubeflow]\nimage = "host/Pipelines:1"', "kubeflow.image = 'host/Pipelines:1'"),
        ('[kubeflow]\nimage = "pipelines:"', "kubeflow.image"),
        ('[kubeflow]\nnode_selector = {"a b" = "c"}', "'a b' is not a valid Kubernetes label key"),
        ('[kubeflow]\nnode_selector = {"a" = "b c"}', "'b c' is not a valid Kubernetes label value"),
    ],
)
def test_bad_values_are_refused_with_the_key_and_the_fix(tmp_path, text, message):
    with pytest.raises(BadInputError, match=message):
        load(tmp_path, text)


@pytest.mark.parametrize(
    "name",
    [
        "pipelines",
        "pipelines:1.0",
        "localhost:5000/team/my_pipelines__x:V-1_a.b",
        "registry.example.com/a-b/c.d@sha256:" + "0a" * 32,
        "europe-docker.pkg.dev/project/repository/image:7@sha256:" + "ff" * 32,
    ],
)
def test_names_of_images(tmp_path, name):
    assert load(tmp_path, f'[kubeflow]\nimage = "{name}"').image == name
