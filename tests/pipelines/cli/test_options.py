import pytest
import typer

from pipelines.cli.options import HostOptions, errors_as_exit_codes
from pipelines.errors import BadInputError
from pipelines.kubeflow.server.submission import ServerError


@pytest.mark.parametrize(
    ("error", "code"), [(BadInputError("no"), 2), (FileNotFoundError("no"), 2), (ServerError("no"), 1)]
)
def test_errors_become_messages_and_exit_codes(error, code, capsys):
    with pytest.raises(typer.Exit) as raised, errors_as_exit_codes():
        raise error
    assert raised.value.exit_code == code
    assert capsys.readouterr().err == "no\n"


def test_faults_of_ours_stay_faults():
    with pytest.raises(RuntimeError, match="ours"), errors_as_exit_codes():
        raise RuntimeError("ours")


def test_a_host_is_an_address(tmp_path):
    with pytest.raises(BadInputError, match="--kubeflow takes an address"):
        HostOptions("localhost:8080", None, None).server()
    with pytest.raises(BadInputError, match="--token-file"):
        HostOptions("http://localhost:1", None, tmp_path / "none").server()
