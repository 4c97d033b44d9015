import pytest

from pipelines.errors import BadInputError
from pipelines.retention import prune
from pipelines.retention.config import RetentionConfig
from pipelines.run_lock import LOCAL_KUBEFLOW, locked


def test_the_rules_are_those_of_the_newest_run_and_options_go_before_them(root):
    root.config = {**root.config, "retention": {"runs": 7, "artifacts": 3}}
    root.add_run(30, status="not_blessed")
    assert prune.rules_of(root.path, {"artifacts": 5, "days": None}) == RetentionConfig(
        runs=7, artifacts=5
    )
    with pytest.raises(BadInputError, match=r"--checkpoints 0: .*greater than or equal to 1"):
        prune.rules_of(root.path, {"checkpoints": 0})
    with pytest.raises(BadInputError, match="checkpoints = 9 is above artifacts = 3"):
        prune.rules_of(root.path, {"checkpoints": 9})
    with pytest.raises(BadInputError, match="There are no runs"):
        prune.prune_command(root.path / "nothing", {}, dry_run=False)


def test_without_rules_it_is_refused(root):
    root.config = {**root.config, "retention": {}}
    root.add_run(30)
    with pytest.raises(BadInputError, match=r"Nothing says what .* is to keep"):
        prune.prune_command(root.path, {}, dry_run=False)


def test_it_waits_for_no_run_that_is_going_on(root):
    root.add_run(30)
    for held in ({}, {"name": LOCAL_KUBEFLOW}):
        with (
            locked(root.path, **held),
            pytest.raises(BadInputError, match="Another run is going on"),
        ):
            prune.prune_command(root.path, {"artifacts": 1}, dry_run=False)


def test_behind_a_run_a_fault_is_shown_and_raises_nothing(root, monkeypatch):
    said = []
    prune.prune_after_run(root.path, RetentionConfig(), said.append)
    assert said == []

    def fail(root, rules, settings):
        raise PermissionError("it is read-only")

    monkeypatch.setattr(prune, "prune_root", fail)
    prune.prune_after_run(root.path, RetentionConfig(artifacts=1), said.append)
    assert said == [
        "! [retention] was not applied (PermissionError: it is read-only); `prune` tries again"
    ]


def test_it_says_what_was_removed(root):
    for age in (90, 80):
        root.add_run(age, status="not_blessed")
    said = []
    prune.prune_after_run(root.path, RetentionConfig(artifacts=1), said.append)
    # 4,820 bytes of artifacts, 4 of data; and three empty folders of executions
    assert said == ["  [retention] removed 8 files and folders, 4.8 kB"]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (12_340_000, "12.3 MB")],
)
def test_sizes_are_readable(size, text):
    assert prune.shown_bytes(size) == text
