import shutil

import pytest

from pipelines.config.retention import RetentionConfig
from pipelines.root import Root
from pipelines.runs.retention import prune
from pipelines.runs.retention.plan import plan_removals
from pipelines.runs.retention.prune import remove
from pipelines.steps.step_folders import StepFolders


class KilledError(BaseException):
    """Ends a removal where a kill would."""


def state_of(root):
    """Checks that nothing refers to removed files, and returns what is there."""
    files = sorted(str(path.relative_to(root.path)) for path in root.path.rglob("*"))
    for record in Root(root.path).records.read_all():
        for name in (record.log, record.report):
            assert name in {str(root.path / file) for file in files}
    return [file for file in files if file != ".lock"]


@pytest.mark.slow
def test_a_removal_that_is_killed_between_any_two_changes_leaves_nothing_torn(root, tmp_path):
    runs = [root.add_run(age, version=1000 - age) for age in (90, 70)]
    runs += [root.add_run(age, status="not_blessed", baseline=runs[1]) for age in (60, 50, 40, 30)]
    rules = RetentionConfig(runs=2, artifacts=2, checkpoints=1)
    copy = shutil.copytree(root.path, tmp_path / "copy")
    expected_to_go = {removal.path for removal in plan_removals(Root(root.path), rules, root.NOW)}
    prune.prune_root(Root(root.path), rules, now=root.NOW)
    expected = state_of(root)
    changes = 0
    while True:
        shutil.rmtree(root.path)
        shutil.copytree(copy, root.path)
        changes += 1
        if not _killed_after(changes, root, rules):
            break
        for run in runs:
            root.has(run)  # outputs of the steps that count as finished are whole
        finished = StepFolders(Root(root.path).artifacts).all_finished()
        keys = {step.key for step in finished}
        for step in finished:
            if step.folder in expected_to_go:
                inputs = [one for outputs in step.plan["inputs"].values() for one in outputs]
                assert {(one["component"], one["step"]) for one in inputs} <= keys
        state_of(root)
        prune.prune_root(Root(root.path), rules, now=root.NOW)
        assert state_of(root) == expected, f"killed after change {changes}"
        assert prune.prune_root(Root(root.path), rules, now=root.NOW) == []
    assert changes > 30


def _killed_after(changes, root, rules):
    """Prunes, and stops after some changes; returns False if there were fewer."""
    left = [changes]

    def after_step():
        left[0] -= 1
        if left[0] == 0:
            raise KilledError

    try:
        remove(Root(root.path), plan_removals(Root(root.path), rules, root.NOW), after_step)
    except KilledError:
        return True
    return False


def _tree(folder):
    """Returns the content of each file below a folder."""
    return {path: path.is_dir() or path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("name", ["Trainer", "Trainer/model"])
def test_nothing_outside_of_the_folder_of_the_artifacts_is_removed(root, tmp_path, name, caplog):
    """A link to a folder of another root: with steps in it, or with artifacts of an earlier version."""
    old, new = (root.add_run(age, status="not_blessed") for age in (90, 80))
    others = tmp_path / "somebody_elses"
    artifacts = Root(root.path).artifacts
    if name == "Trainer":
        (artifacts / "Trainer").rename(others)
    else:
        (others / "3").mkdir(parents=True)
        (others / "3" / "file").write_text("precious")
    (others / ".removing-3").mkdir()
    (others / ("0" * 64)).mkdir()
    (artifacts / name).symlink_to(others)
    before = _tree(others)
    root.prune(artifacts=1)
    assert _tree(others) == before
    assert root.has(new) == root.ALL
    assert "examples" not in root.has(old)
    if name == "Trainer":
        assert f"{others}" in caplog.text


@pytest.mark.parametrize("key", ["model", "model_run", "step"])
def test_a_link_is_removed_but_not_what_it_points_to(root, tmp_path, key):
    old = root.add_run(90, status="not_blessed")
    root.add_run(80, status="not_blessed")
    others = tmp_path / "somebody_elses"
    place = root.folder(old, "model_run")
    place = place.parent if key == "step" else place.with_name(key)
    place.rename(others)
    place.symlink_to(others)
    before = _tree(others)
    root.prune(artifacts=1)
    assert _tree(others) == before
    assert root.has(old) == set()
    assert not place.is_symlink()


def test_links_to_copies_of_data_are_removed_but_not_the_data(root, tmp_path):
    root.add_run(90, status="not_blessed")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "data.csv").write_text("precious")
    (root.path / "data" / "0123").symlink_to(tmp_path / "mine")
    root.prune(artifacts=1)
    assert not (root.path / "data" / "0123").is_symlink()
    assert (tmp_path / "mine" / "data.csv").exists()


def test_the_folder_of_the_artifacts_may_be_a_link_to_another_disk(root, tmp_path):
    old = root.add_run(90, version=7)
    older = root.add_run(100, status="not_blessed")
    new = root.add_run(80, version=8)
    folder = Root(root.path).artifacts
    folder.rename(tmp_path / "disk")
    folder.symlink_to(tmp_path / "disk")
    root.prune(artifacts=1)
    assert [root.has(run) for run in (older, old, new)] == [set(), root.OF_A_VERSION, root.ALL]
