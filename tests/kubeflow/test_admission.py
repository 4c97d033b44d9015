"""The compiled demo, read into KFP's own Go types; and their refusals."""

import pathlib
import re
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
ADMIT = PROJECT / ".kubeflow" / "bin" / "admit"
DEMO = PROJECT / "pipelines" / "examples" / "taxi" / "taxi.toml"
SETTINGS = (
    'kubeflow.image="registry.example.com/pipelines:1"',
    'kubeflow.pipeline_root="minio://mlpipeline/v2/artifacts"',
    'kubeflow.root="/mnt/pipelines/taxi"',
    'kubeflow.volumes=[{claim="pipelines", path="/mnt/pipelines"}]',
    'kubeflow.secrets=[{name="store", env={key="STORE_KEY"}}]',
    'kubeflow.node_selector={disk="fast"}',
    'kubeflow.tolerations=[{key="gpu", operator="Exists"}]',
    'kubeflow.components.Trainer={cpu="2", memory="4Gi", retries=2, timeout=3600}',
    'data.path="/mnt/pipelines/taxi.csv"',
)

pytestmark = pytest.mark.skipif(
    not ADMIT.exists(), reason="KFP's types are not built; `make test-kubeflow` builds them"
)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Returns the YAML of the demo."""
    file = tmp_path_factory.mktemp("compiled") / "pipeline.yaml"
    settings = [part for setting in SETTINGS for part in ("--set", setting)]
    command = (sys.executable, "-m", "pipelines", "compile", "--config", DEMO, "-o", file, *settings)
    subprocess.run([str(part) for part in command], check=True)
    return file.read_text(encoding="utf-8")


def admit(text, tmp_path):
    """Returns the exit code, and the output."""
    file = tmp_path / "pipeline.yaml"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([ADMIT, file], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def test_the_compiled_demo_is_accepted(compiled, tmp_path):
    assert admit(compiled, tmp_path) == (0, "accepted\n")


@pytest.mark.parametrize(
    ("original", "instead", "said"),
    [
        ("schemaVersion: 2.1.0", "schemaVersion: 2.0.0", 'schemaVersion is "2.0.0"'),
        ("enableCache: true", "enableCaching: true", 'unknown field "enableCaching"'),
        ("        trainer:\n", "        trainer_1:\n", '"trainer_1": a lowercase RFC 1123 label'),
        ("producerTask: plan", "producerTask: plans", 'there is no task "plans"'),
        ("outputParameterKey: trainer", "outputParameterKey: rows", 'has no output "rows"'),
        ("MemoryLimit: 4Gi", "MemoryLimit: 4 Gi", 'memory limit "4 Gi"'),
        ("constant: pipelines\n", "constant: The_Pipelines\n", 'claim "The_Pipelines"'),
        ("mountPath: ", "mountPlace: ", 'unknown field "mountPlace"'),
    ],
)
def test_what_the_server_would_refuse_is_found(compiled, tmp_path, original, instead, said):
    spoiled = re.sub(re.escape(original), instead, compiled)
    assert spoiled != compiled
    code, output = admit(spoiled, tmp_path)
    assert code == 1
    assert said in output
