"""No input brings about a traceback: the message names the fault, and the exit code says whose it is."""

import pytest
from typer.testing import CliRunner

from pipelines.cli.app import app
from tests.pipelines.cli.test_app import root_with_two_versions

READS_A_ROOT = (
    "runs",
    "runs --json",
    "report",
    "report --index",
    "rollback",
    "approve 1 --because x",
    "lineage",
    "prune --runs 1",
    "schema show",
    "schema accept",
    "schedule list",
    "schedule enable nightly",
    "schedule delete nightly",
    "schedule backfill --from 1 --to 2",
    "schedule manifest --kind systemd",
)


def invoke(*arguments):
    """Runs a command, and returns its exit code, stdout and stderr; an unexpected error is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("command", READS_A_ROOT)
def test_a_root_that_is_no_folder_is_bad_input(command, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    for name, why in (("missing", ""), ("file", " (it is a file)"), ("file/below", ""), ("loop", "")):
        code, stdout, stderr = invoke(*command.split(), "--root", tmp_path / name)
        assert (code, stdout) == (2, ""), name
        assert stderr.startswith(f"There is no folder {tmp_path / name}{why}: give the --root of")


def test_a_scheduler_tries_again_when_its_root_is_not_there_yet(tmp_path):
    # systemd restarts it, but for exit code 2.
    for command in ("run", "check", "metrics"):
        assert invoke("schedule", command, "--root", tmp_path / "missing")[0] == 1


def test_a_name_that_is_too_long_is_bad_input(tmp_path):
    code, stdout, stderr = invoke("runs", "--root", tmp_path / ("x" * 300))
    assert (code, stdout) == (2, "")
    assert "File name too long. Check the path and its permissions." in stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "-o"),
        ("plan", "-o"),
        ("compile", "-o"),
        ("plan", "--config"),
        ("prune", "--root"),
        ("schedule", "metrics", "--metrics-file"),
    ],
    ids=" ".join,
)
def test_an_empty_path_is_a_mistake_and_not_the_folder_here(arguments):
    code, stdout, stderr = invoke(*arguments, "")
    assert (code, stdout) == (2, "")
    assert f"Invalid value for '{arguments[-1]}': the path is empty" in stderr


def test_a_report_goes_to_where_it_can_be_written(tmp_path):
    root_with_two_versions(tmp_path / "root")
    report = ("report", "--root", tmp_path / "root", "-o")
    (tmp_path / "loop").symlink_to("loop")
    for name, why in (
        ("", "Is a directory"),
        ("none/page.html", "No such file or directory"),
        ("loop", "Too many levels of symbolic links"),
    ):
        code, stdout, stderr = invoke(*report, tmp_path / name)
        assert (code, stdout) == (2, "")
        place = tmp_path / name
        assert stderr == f"{place}: {why}. Check the path and its permissions.\n"
    (tmp_path / "link").symlink_to("page.html")
    assert invoke(*report, tmp_path / "link")[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert "<html" in (tmp_path / "page.html").read_text()


def test_a_damaged_file_beside_a_version_is_named(tmp_path):
    root_with_two_versions(tmp_path)
    damaged = tmp_path / "serving" / "12" / "assets.extra" / "push.json"
    damaged.write_text("{")
    code, _, stderr = invoke("prune", "--runs", "1", "--root", tmp_path)
    assert code == 2
    assert f"{damaged} is not what the Pusher wrote (JSONDecodeError" in stderr


def test_a_configuration_that_this_version_does_not_know_is_said(tmp_path):
    root_with_two_versions(tmp_path)
    (record,) = (tmp_path / "runs").glob("*.json")
    record.write_text(record.read_text().replace('"train_steps"', '"num_steps"'))
    code, _, stderr = invoke("schema", "show", "--root", tmp_path)
    assert code == 2
    assert "The configuration in the record of run 20260101-000000 cannot be used" in stderr
    assert "trainer.num_steps" in stderr
    assert invoke("runs", "--root", tmp_path)[0] == 0
