import re

import pytest

from pipelines.config.retention import RetentionConfig
from pipelines.errors import BadInputError
from pipelines.report.files import index_file
from pipelines.root import Root
from pipelines.root.history import read_runs
from pipelines.runs.retention import prune
from pipelines.runs.retention.plan import Removal


def test_the_rules_are_those_of_the_newest_run_and_options_go_before_them(root):
    root.config = {**root.config, "retention": {"runs": 7, "artifacts": 3}}
    root.add_run(30, status="not_blessed")
    assert prune.merge_rules(Root(root.path), {"artifacts": 5, "days": None}) == RetentionConfig(
        runs=7, artifacts=5
    )
    with pytest.raises(BadInputError, match=r"--checkpoints 0: .*greater than or equal to 1"):
        prune.merge_rules(Root(root.path), {"checkpoints": 0})
    with pytest.raises(BadInputError, match="checkpoints = 9 is above artifacts = 3"):
        prune.merge_rules(Root(root.path), {"checkpoints": 9})
    with pytest.raises(BadInputError, match="There are no runs"):
        prune.prune_command(Root(root.path / "nothing"), {}, dry_run=False)


def test_without_rules_it_is_refused(root):
    root.config = {**root.config, "retention": {}}
    root.add_run(30)
    with pytest.raises(BadInputError, match=r"There are no rules for .*: the newest run"):
        prune.prune_command(Root(root.path), {}, dry_run=False)


def test_it_is_refused_while_a_run_is_in_progress(root):
    root.add_run(30)
    lock = Root(root.path).lock
    for part in (lock.writing, lock.local_kubeflow):
        with part.held(), pytest.raises(BadInputError, match="Another run is in progress"):
            prune.prune_command(Root(root.path), {"artifacts": 1}, dry_run=False)


def test_after_a_run_an_error_is_shown_and_raises_nothing(root, monkeypatch):
    said = []
    prune.prune_after_run(Root(root.path), RetentionConfig(), said.append)
    assert said == []

    def fail(root, rules):
        raise PermissionError("it is read-only")

    monkeypatch.setattr(prune, "prune_root", fail)
    prune.prune_after_run(Root(root.path), RetentionConfig(artifacts=1), said.append)
    assert said == ["! [retention] was not applied (PermissionError: it is read-only); `prune` tries again"]


def test_it_says_what_was_removed(root):
    for age in (90, 80):
        root.add_run(age, status="not_blessed")
    said = []
    prune.prune_after_run(Root(root.path), RetentionConfig(artifacts=1), said.append)
    # 4 steps with 4,885 bytes of outputs, 4 bytes of data, and what `step.json` takes
    (line,) = said
    assert re.fullmatch(r"  \[retention\] removed 5 files and folders, [5-9]\.\d kB", line)


def test_one_removal_is_in_the_singular(root):
    removal = Removal("log", root.path / "run.log", "it is old", 1_000)
    assert prune.summary([removal]) == "removed 1 file or folder, 1.0 kB"
    assert prune.summary([removal], dry_run=True) == "would remove 1 file or folder, 1.0 kB"


def test_a_removed_run_stays_known_by_its_spans_and_version_and_the_index_is_made_again(root):
    spans = ({"span": 3, "version": None, "num_files": 1},)
    old = root.add_run(90, status="not_blessed", spans=spans)
    root.add_run(80, status="not_blessed")
    index = index_file(Root(root.path), read_runs(Root(root.path)))
    assert f'href="{old}.html"' in index.read_text()
    prune.prune_command(Root(root.path), {"runs": 1}, dry_run=True)
    assert f'href="{old}.html"' in index.read_text()
    prune.prune_command(Root(root.path), {"runs": 1}, dry_run=False)
    assert old not in index.read_text()
    (run,) = Root(root.path).pruned.read_all()
    assert (run.run_id, run.status, run.spans) == (old, "not_blessed", spans)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (12_340_000, "12.3 MB")]
)
def test_sizes_are_readable(size, text):
    assert prune.shown_bytes(size) == text
