import pytest
import yaml
from typer.testing import CliRunner

from pipelines.cli.app import app

KSERVE = ["--manifest", "kserve", "--image", "registry/image:1"]


def test_a_manifest_goes_to_standard_output_and_no_server_starts(warm_command, tmp_path):
    arguments = [*KSERVE, "--storage", "pvc://models", "--name", "Tips"]
    result = warm_command("serve", "--root", tmp_path / "absent", *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    assert yaml.safe_load(result.stdout)["metadata"]["name"] == "tips"


def test_the_name_is_that_of_the_pipeline(warm_command, push):
    result = warm_command("serve", "--root", push("regressor", 5), *KSERVE, "--storage", "s3://b/r")
    assert yaml.safe_load(result.stdout)["metadata"]["name"] == "root"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--manifest", "kserve"], "--manifest kserve needs --image and --storage."),
        (KSERVE, "--manifest kserve needs --image and --storage."),
        ([*KSERVE, "--versions", "2"], "--versions is not in the manifest."),
        ([*KSERVE, "--host", "::"], "--host is not in the manifest."),
        (["--image", "x"], "--image and --storage are for --manifest kserve only."),
        ([*KSERVE, "--storage", "s3://b/r", "--root", "absent"], "There is no folder "),
        ([*KSERVE, "--storage", "here", "--name", "x"], "The storage is the address of the root"),
    ],
)
def test_options_that_do_not_fit_are_refused(warm_command, tmp_path, arguments, message):
    result = warm_command("serve", *arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(message)


def test_the_command_takes_the_arguments_of_the_manifest(push, monkeypatch):
    root = push("regressor", 5)
    monkeypatch.setenv("ESTIMATOR_PIPELINES_TOKEN", "secret")
    text = CliRunner().invoke(app, ["serve", *KSERVE, "--storage", "pvc://m", "--name", "sums"])
    (container,) = yaml.safe_load(text.stdout)["spec"]["predictor"]["containers"]
    asked = {}

    def serve(root, name, address, say, num_versions, settings, sample, grpc_port):
        asked.update(name=name, host=address.host, port=address.port, token=settings.token)
        assert (sample, grpc_port) == (None, None)

    monkeypatch.setattr("pipelines.serving.server.process.serve", serve)
    given = [str(root) if argument == "/mnt/root" else argument for argument in container["args"]]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    assert asked == {"name": "sums", "host": "0.0.0.0", "port": 8501, "token": "secret"}


@pytest.fixture
def serve(monkeypatch, tmp_path):
    """Returns a function that returns the settings with which the command starts a server, and its output."""

    def run(*arguments):
        started = []
        monkeypatch.setattr(
            "pipelines.serving.server.process.serve",
            lambda root, name, address, say, versions, settings, sample, grpc: started.append(settings),
        )
        result = CliRunner().invoke(app, ["serve", "--root", str(tmp_path), "--name", "m", *arguments])
        return started, result.output

    return run


def test_options_are_the_limits(serve):
    limits = ["--max-body", "1000", "--max-rows", "11", "--max-waiting", "12", "--timeout", "13"]
    more = ["--max-connections", "14", "--max-header", "500", "--header-timeout", "1.5"]
    (settings,), _ = serve(*limits, *more, "--idle-timeout", "16")
    batches, connections = settings.batches, settings.connections
    assert settings.max_body_bytes == 1_000
    assert (batches.max_request_rows, batches.max_waiting_rows, batches.timeout_secs) == (11, 12, 13)
    assert (connections.max_connections, connections.max_header_bytes) == (14, 500)
    assert (connections.header_secs, connections.idle_secs) == (1.5, 16)


@pytest.mark.parametrize(
    ("token", "in_file", "in_environment"),
    [
        ("geheimß", "of the token is", "ESTIMATOR_PIPELINES_TOKEN: character"),
        ("two words", "of the token is", "ESTIMATOR_PIPELINES_TOKEN: character"),
        ("two\nlines", "of the token is", "ESTIMATOR_PIPELINES_TOKEN: character"),
        ("\ufefftoken", "of the token is", "ESTIMATOR_PIPELINES_TOKEN: character"),
        ("", "token.txt is empty", "ESTIMATOR_PIPELINES_TOKEN is empty"),
        (" \n", "token.txt is empty", "ESTIMATOR_PIPELINES_TOKEN is empty"),
    ],
)
def test_a_token_that_no_header_can_carry_is_refused(
    serve, monkeypatch, tmp_path, token, in_file, in_environment
):
    file = tmp_path / "token.txt"
    file.write_text(token)
    started, output = serve("--token-file", str(file))
    assert (started, in_file in output) == ([], True)
    monkeypatch.setenv("ESTIMATOR_PIPELINES_TOKEN", token)
    started, output = serve()
    assert (started, in_environment in output) == ([], True)


@pytest.mark.parametrize(
    ("size", "content", "message"),
    [(2, b"\xff\xfe", "of the token is"), (100 << 20, b"", "too much for a token")],  # a device has no end
)
def test_what_is_no_token_file_is_refused(serve, tmp_path, size, content, message):
    file = tmp_path / "token.txt"
    with file.open("wb") as stream:
        stream.write(content)
        stream.truncate(size)
    started, output = serve("--token-file", str(file))
    assert (started, message in output) == ([], True)


def test_white_space_around_a_token_does_not_count(serve, monkeypatch, tmp_path):
    (tmp_path / "token.txt").write_text("secret!~\n")
    monkeypatch.setenv("ESTIMATOR_PIPELINES_TOKEN", " other\n")
    for arguments, token in ((["--token-file", f"{tmp_path}/token.txt"], "secret!~"), ([], "other")):
        (settings,), _ = serve(*arguments)
        assert settings.token == token
