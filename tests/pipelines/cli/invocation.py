"""The commands, called in this process."""

from typer.testing import CliRunner

from pipelines.cli.app import app

KUBEFLOW = """\
[data]
path = "/mnt/p/data.csv"
label = "y"
[kubeflow]
image = "pipelines:1.0"
pipeline_root = "minio://artifacts/v2"
root = "/mnt/p/root"
service_account = "runner"
[[kubeflow.volumes]]
claim = "p"
path = "/mnt/p"
"""


def invoke(*words, code=0):
    """Returns the result of a command, which has to end with an exit code."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def as_options(settings):
    """Returns the options of settings, such as `--set a=1`."""
    return [word for setting in settings for word in ("--set", setting)]
