import json
import sqlite3

import pytest

from pipelines.config.load import load_config
from pipelines.root import Root
from pipelines.root.baseline import find_baseline_statistics
from pipelines.root.migration import take_over
from tests.pipelines.root.metadata_store import Event, open_store, put_statistics
from tests.pipelines.run_records import make_record

OLD, UNPUSHED, SERVED, *NEWEST = (f"2026010{day}-000000" for day in range(1, 7))


@pytest.fixture
def root(tmp_path):
    """A root as earlier versions left it: six runs, of which two pushed, and the last one is cached."""
    root = Root(tmp_path / "root")
    store = open_store(root.path)
    config = load_config(data="d.csv", label="y").model_dump(mode="json")
    for number, run_id in enumerate((OLD, UNPUSHED, SERVED, *NEWEST)):
        folder = root.artifacts / "StatisticsGen" / "statistics" / str(number)
        if run_id == NEWEST[-1]:
            folder = folder.with_name("1")  # of UNPUSHED
        else:
            folder.mkdir(parents=True)
            (folder / "file").write_text(run_id)
        put_statistics(store, run_id, folder, is_cached=run_id == NEWEST[-1])
        root.records.write(make_record(run_id, config=config))
    for version, run_id in ((5, OLD), (7, SERVED)):
        extra = root.serving / str(version) / "assets.extra"
        extra.mkdir(parents=True)
        (extra.parent / "saved_model.pb").touch()
        (extra / "push.json").write_text(json.dumps({"pipeline_run_id": run_id, "model": "../m"}))
    return root


def statistics(root):
    """Returns the texts of the kept statistics, by run."""
    return {file.parts[-3]: file.read_text() for file in root.kept.glob("*/statistics/file")}


EXPECTED = {run: run for run in (OLD, SERVED, *NEWEST[:-1])} | {NEWEST[-1]: UNPUSHED}


def test_statistics_that_new_data_may_be_compared_with_are_kept(root):
    line = take_over(root)
    assert line.startswith(f"{root} is from an earlier version of this program. Its versions")
    assert line.endswith(f"{root}/metadata.old is no longer read.")
    assert statistics(root) == EXPECTED
    assert find_baseline_statistics(root, "run-new") == root.kept_artifact(SERVED, "statistics")
    assert find_baseline_statistics(root, "run-new", NEWEST[0]) == root.kept_artifact(NEWEST[0], "statistics")
    assert take_over(root) is None


def test_those_of_the_accepted_run_are_kept(root):
    (root.path / "schema").mkdir()
    (root.path / "schema" / "origin.json").write_text(
        json.dumps({"run_id": UNPUSHED, "written": "", "sha256": "", "accepted_for": "7"})
    )
    take_over(root)
    assert statistics(root) == EXPECTED | {UNPUSHED: UNPUSHED}


def test_a_root_that_was_moved_before(root, tmp_path):
    root.path.rename(tmp_path / "moved")
    moved = Root(tmp_path / "moved")
    assert "metadata.old" in take_over(moved)
    assert statistics(moved) == EXPECTED


def test_statistics_that_were_pruned_are_left_out(root):
    for path in sorted((root.artifacts / "StatisticsGen").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert take_over(root) is not None
    assert statistics(root) == {}


def test_inputs_of_a_run_are_not_its_statistics(root):
    other = root.artifacts / "StatisticsGen" / "statistics" / "99"
    other.mkdir()
    (other / "file").write_text("baseline")
    put_statistics(open_store(root.path), "20250101-000000", other)
    with sqlite3.connect(root.path / "metadata" / "metadata.sqlite") as store:
        (execution,) = store.execute(
            "SELECT Association.execution_id FROM Association JOIN Context ON Context.id = context_id"
            " WHERE name = ?",
            (SERVED,),
        ).fetchone()
        cursor = store.execute(
            "INSERT INTO Event (artifact_id, execution_id, type) SELECT max(id), ?, ? FROM Artifact",
            (execution, Event.INPUT),
        )
        store.execute(
            "INSERT INTO EventPath (event_id, is_index_step, step_key) VALUES (?, 0, 'statistics')",
            (cursor.lastrowid,),
        )
    take_over(root)
    assert statistics(root) == EXPECTED


@pytest.mark.parametrize("how", ["damaged", "empty", "missing", "database of its own"])
def test_a_store_that_cannot_be_read_is_put_aside(root, how):
    file = root.path / "metadata" / "metadata.sqlite"
    if how == "damaged":
        content = file.read_bytes()
        file.write_bytes(content[:100] + b"\xff" * 4_000 + content[4_100:])
    elif how == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
    line = take_over(root)
    assert "The statistics of earlier data cannot be read (" in line
    assert line.endswith("drift is compared again from the next pushed run on.")
    assert find_baseline_statistics(root, "run-new") is None
    assert not (root.path / "metadata").exists()


def test_a_take_over_that_was_killed_is_repeated(root):
    root.kept_artifact(OLD, "statistics").mkdir(parents=True)
    (root.kept_artifact(OLD, "statistics") / "file").write_text("copied before")
    take_over(root)
    assert statistics(root) == EXPECTED | {OLD: "copied before"}


def test_a_root_that_an_earlier_version_used_once_more(root):
    take_over(root)
    put_statistics(open_store(root.path), NEWEST[0], "elsewhere")
    assert take_over(root).endswith(f"{root}/metadata.old2 is no longer read.")
    assert (root.path / "metadata.old" / "metadata.sqlite").is_file()
