"""No input brings about a traceback: the message names the fault, and the exit code says whose it is."""

import pytest

from tests.pipelines.cli.invocation import invoke
from tests.pipelines.cli.test_app import root_with_two_versions

READS_A_ROOT = (
    "runs", "runs --json", "report", "report --index", "rollback", "approve 1 --because x", "lineage",
    "prune --runs 1", "schema show", "schema accept", "schedule list", "schedule enable nightly",
    "schedule delete nightly", "schedule backfill --from 1 --to 2", "schedule manifest --kind systemd",
)  # fmt: skip


@pytest.mark.parametrize("command", READS_A_ROOT)
def test_a_root_that_is_no_folder_is_bad_input(command, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    for name, why in (("missing", ""), ("file", " (it is a file)"), ("file/below", ""), ("loop", "")):
        result = invoke(*command.split(), "--root", tmp_path / name, code=2)
        assert result.stdout == "", name
        assert result.stderr.startswith(f"There is no folder {tmp_path / name}{why}: give the --root of")


@pytest.mark.parametrize("command", ["run", "check", "metrics"])
def test_a_scheduler_tries_again_when_its_root_is_not_there_yet(tmp_path, command):
    # systemd restarts it, but for exit code 2.
    root = tmp_path / "volume that is not mounted"
    assert f"There is no folder {root}" in invoke("schedule", command, "--root", root, code=1).stderr
    assert not root.exists()


def test_a_name_that_is_too_long_is_bad_input(tmp_path):
    result = invoke("runs", "--root", tmp_path / ("x" * 300), code=2)
    assert result.stdout == ""
    assert "File name too long. Check the path and its permissions." in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "-o"), ("plan", "-o"), ("compile", "-o"), ("plan", "--config"), ("prune", "--root"),
        ("schedule", "metrics", "--metrics-file"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_empty_path_is_a_mistake_and_not_the_folder_here(arguments):
    result = invoke(*arguments, "", code=2)
    assert result.stdout == ""
    assert f"Invalid value for '{arguments[-1]}': the path is empty" in result.stderr


def test_a_report_goes_to_where_it_can_be_written(tmp_path):
    root_with_two_versions(tmp_path / "root")
    report = ("report", "--root", tmp_path / "root", "-o")
    (tmp_path / "loop").symlink_to("loop")
    for name, why in (
        ("", "Is a directory"),
        ("none/page.html", "No such file or directory"),
        ("loop", "Too many levels of symbolic links"),
    ):
        result = invoke(*report, tmp_path / name, code=2)
        assert result.stdout == ""
        assert result.stderr == f"{tmp_path / name}: {why}. Check the path and its permissions.\n"
    (tmp_path / "link").symlink_to("page.html")
    invoke(*report, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert "<html" in (tmp_path / "page.html").read_text()


def test_a_damaged_file_beside_a_version_is_named(tmp_path):
    root_with_two_versions(tmp_path)
    damaged = tmp_path / "serving" / "12" / "assets.extra" / "push.json"
    damaged.write_text("{")
    result = invoke("prune", "--runs", "1", "--root", tmp_path, code=2)
    assert f"{damaged} is not what the Pusher wrote (JSONDecodeError" in result.stderr


def test_a_configuration_that_this_version_does_not_know_is_said(tmp_path):
    root_with_two_versions(tmp_path)
    (record,) = (tmp_path / "runs").glob("*.json")
    record.write_text(record.read_text().replace('"train_steps"', '"num_steps"'))
    said = invoke("schema", "show", "--root", tmp_path, code=2).stderr
    assert "The configuration in the record of run 20260101-000000 cannot be used" in said
    assert "trainer.num_steps" in said
    invoke("runs", "--root", tmp_path)
