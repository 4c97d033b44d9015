import os
import shutil
import signal
from pathlib import Path

import pytest

from pipelines.config.retention import RetentionConfig
from pipelines.retention import prune
from pipelines.retention.plan import plan_removals
from pipelines.retention.removal import remove
from pipelines.root import Root


def state_of(root):
    """Checks that nothing refers to removed items, and returns those that are there."""
    files = sorted(str(path.relative_to(root.path)) for path in root.path.rglob("*"))
    for record in Root(root.path).records.read_all():
        for name in (record.log, record.report):
            assert name in {str(root.path / file) for file in files}
    return [file for file in files if "metadata" not in file and file != ".lock"]


@pytest.mark.slow
def test_a_removal_that_is_killed_between_any_two_steps_leaves_nothing_torn(root, tmp_path_factory):
    runs = [root.add_run(age, version=1000 - age) for age in (90, 70)]
    runs += [root.add_run(age, status="not_blessed") for age in (60, 50, 40, 30)]
    rules = RetentionConfig(runs=2, artifacts=1, checkpoints=1)
    copy = tmp_path_factory.mktemp("copy") / "root"
    shutil.copytree(root.path, copy)
    prune.prune_root(Root(root.path), rules, now=root.NOW)
    expected = state_of(root)
    number_of_steps = 0
    while True:
        shutil.rmtree(root.path)
        shutil.copytree(copy, root.path)
        number_of_steps += 1
        if not _killed_after(number_of_steps, root, rules):
            break
        for run in runs:
            root.has(run)  # the items that the cache may take are whole
        state_of(root)
        prune.prune_root(Root(root.path), rules, now=root.NOW)
        assert state_of(root) == expected, f"killed after step {number_of_steps}"
        assert prune.prune_root(Root(root.path), rules, now=root.NOW) == []
    assert number_of_steps > 20


def _killed_after(step, root, rules):
    """Prunes in a process that kills itself after some steps; returns True if it did."""
    child = os.fork()
    if child == 0:
        left = [step]

        def after_step():
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        store = root.store
        removals = plan_removals(Root(root.path), rules, root.NOW, store)
        remove(Root(root.path), removals, store, after_step)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _tree(folder):
    """Returns the content of each file below a folder; links are not followed."""
    return {path: path.is_dir() or path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("through", ["dots", "link", "whole_folder", "parent_of_kept"])
def test_nothing_outside_of_the_folder_of_the_artifacts_is_removed(root, tmp_path, through, caplog):
    old, new = (root.add_run(age, status="not_blessed") for age in (90, 80))
    others = tmp_path / "somebody_elses"
    (others / "deep").mkdir(parents=True)
    (others / "deep" / "file").write_text("precious")
    artifact = root.artifacts_of(old)["model"]
    folder = Root(root.path).artifacts
    if through == "dots":
        artifact.uri = str(folder / ".." / ".." / others.name)
    elif through == "link":
        (folder / "link").symlink_to(others)
        artifact.uri = str(folder / "link" / "deep")
    elif through == "whole_folder":
        artifact.uri = str(folder)
    else:
        artifact.uri = str(Path(root.artifacts_of(new)["model"].uri).parent)
    root.store.put_artifacts([artifact])
    before = _tree(others)
    root.prune(artifacts=1)
    assert _tree(others) == before
    assert root.has(new) == root.ALL
    assert str(artifact.uri) in caplog.text


def test_a_link_is_removed_but_not_what_it_points_to(root, tmp_path):
    old = root.add_run(90, status="not_blessed")
    root.add_run(80, status="not_blessed")
    others = tmp_path / "somebody_elses"
    model = Path(root.artifacts_of(old)["model"].uri)
    model.rename(others)
    model.symlink_to(others)
    root.prune(artifacts=1)
    assert (others / "file").exists()
    assert not model.is_symlink()


def test_the_folder_of_the_artifacts_may_be_a_link_to_another_disk(root, tmp_path):
    old = root.add_run(90, status="not_blessed")
    new = root.add_run(80, status="not_blessed")
    folder = Root(root.path).artifacts
    folder.rename(tmp_path / "disk")
    folder.symlink_to(tmp_path / "disk")
    root.prune(artifacts=1)
    assert (root.has(old), root.has(new)) == (set(), root.ALL)
    assert not Path(root.artifacts_of(old)["model"].uri).exists()
