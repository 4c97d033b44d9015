import pytest
import typer
from rich.table import Table

from pipelines.cli.options import HostOptions, errors_as_exit_codes, print_table
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


def test_cells_of_a_table_are_printed_as_they_are(capsys):
    table = Table("column", "value")
    for cells in (("weight [kg]", "'[missing]'"), ("a [/b]", ":+1:")):
        table.add_row(*cells)
    print_table(table)
    printed = capsys.readouterr().out
    assert all(cell in printed for cell in ("weight [kg]", "'[missing]'", "a [/b]", ":+1:"))


def test_a_host_is_an_address(tmp_path):
    with pytest.raises(BadInputError, match="--kubeflow takes an address"):
        HostOptions("localhost:8080", None, None).server()
    with pytest.raises(BadInputError, match="--token-file"):
        HostOptions("http://localhost:1", None, tmp_path / "none").server()
