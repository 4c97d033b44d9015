import json

import pytest

from pipelines.root import Root
from pipelines.root.records import Decision, HeldModel


def test_a_record_goes_when_no_rule_keeps_it(root):
    runs = [root.add_run(age, status="not_blessed") for age in (400, 300, 200, 100, 5)]
    assert root.prune(runs=2, days=250, dry_run=True)
    assert root.records == runs
    root.prune(runs=2, days=250)
    assert root.records == runs[2:]
    assert {file.stem for file in (root.path / "logs").iterdir()} == set(runs[2:])
    assert {item.stem for item in (root.path / "runs").iterdir()} == {*runs[2:], "details", "pruned"}
    assert {folder.name for folder in (root.path / "runs" / "details").iterdir()} == set(runs[2:])
    assert [root.has(run) for run in runs] == [set()] * 2 + [root.ALL] * 3


def test_what_serves_can_serve_again_or_was_accepted_keeps_its_run(root):
    withdrawn, second, serving, accepted, *others = (
        root.add_run(age, version=version, status=status)
        for age, version, status in (
            (500, 8, "pushed"), (450, 9, "pushed"), (350, 12, "pushed"), (330, None, "failed"),
            (300, None, "not_blessed"), (250, None, "not_blessed"), (200, None, "failed"),
        )
    )  # fmt: skip
    (root.path / "withdrawn").mkdir()
    (root.path / "serving" / "8").rename(root.path / "withdrawn" / "8")
    (root.path / "schema").mkdir()
    (root.path / "schema" / "origin.json").write_text(
        json.dumps({"run_id": accepted, "written": "", "sha256": "", "accepted_for": "12"})
    )
    root.prune(runs=1, artifacts=1)
    # The newest run may be resumed; the next one reuses steps of the one before it.
    assert root.records == [withdrawn, second, serving, accepted, *others[1:]]
    assert root.has(serving) == root.ALL
    assert root.has(second) == root.has(withdrawn) == root.OF_A_VERSION
    assert root.has(accepted) == root.ALL
    assert [root.has(run) for run in others] == [set(), root.ALL, root.ALL]


def test_what_the_newest_blessing_read_stays(root):
    """A pipeline of TFX looks up the newest blessed model, whatever serves."""
    blessed, *others = (
        root.add_run(age, status=status)
        for age, status in (
            (90, "pushed"), (80, "not_blessed"), (70, "not_blessed"), (60, "not_blessed"),
        )
    )  # fmt: skip
    root.prune(artifacts=1)
    assert root.has(blessed) == {"examples", "model", "evaluation", "blessing"}
    assert [root.has(run) for run in others] == [set(), set(), root.ALL]


def test_a_run_whose_training_another_continued_stays(root):
    former = root.add_run(90, status="failed")
    other = root.add_run(80, status="failed")
    newest = root.add_run(70, status="failed", mended=former)
    root.prune(runs=1, artifacts=1)
    assert root.records == [former, newest]
    assert [root.has(run) for run in (former, other, newest)] == [root.ALL, set(), root.ALL]


def test_a_record_that_cannot_be_read_keeps_what_its_run_made(root, caplog):
    runs = [root.add_run(age, status="not_blessed") for age in (90, 80, 70)]
    (root.path / "runs" / f"{runs[0]}.json").write_text("{")
    root.prune(runs=1, artifacts=1)
    assert root.has(runs[0]) == root.ALL
    assert root.has(runs[1]) == set()
    assert (root.path / "logs" / f"{runs[0]}.log").exists()


def test_a_held_model_stays_until_it_is_decided(root):
    model = HeldModel("m", "m/s")
    decided = Decision("rejected", "ann", "2026-01-01T00:00:00+00:00", "wrong")
    waiting = root.add_run(90, status="held", held=model)
    rejected = root.add_run(80, status="held", held=model, decision=decided)
    newest = root.add_run(70, status="not_blessed")
    root.prune(runs=1, artifacts=1)
    assert root.records == [waiting, newest]
    assert [root.has(run) for run in (waiting, rejected)] == [root.ALL, set()]


def test_what_a_kept_run_reused_stays(root):
    first = root.add_run(50, status="not_blessed")
    lonely = root.add_run(40, status="not_blessed")
    second = root.add_run(30, status="not_blessed", reuses=first)
    unchanged = [root.add_run(age, status="unchanged", same_as=second) for age in (20, 10)]
    root.prune(artifacts=1)
    assert root.has(first) == root.ALL
    assert root.has(lonely) == set()
    assert root.records == [first, lonely, second, *unchanged]


def test_what_a_kept_run_was_compared_with_stays(root):
    former = root.add_run(50, status="not_blessed")
    root.add_run(40, status="not_blessed")
    newest = root.add_run(30, status="not_blessed", baseline=former)
    root.prune(artifacts=1, checkpoints=1)
    assert root.has(former) == {"model"}
    assert root.has(newest) == root.ALL


@pytest.mark.parametrize("is_dropped", [False, True])
def test_artifacts_of_an_earlier_version_stay_while_a_version_or_a_held_model_is_one(root, is_dropped):
    folders = {}
    for number, name in enumerate(("Trainer/model", "Trainer/model_run", "ServingCheck/warmup"), 3):
        for age in (0, 10, 20):
            folders[name, age] = root.path / "artifacts" / name / str(number + age)
            folders[name, age].mkdir(parents=True)
    executions = root.path / "artifacts" / "Trainer" / ".system" / "executor_execution"
    executions.mkdir(parents=True)
    root.add_version(7, "20260101-000000", "artifacts/Trainer/model/3")
    model, warmup = "artifacts/Trainer/model/13", "artifacts/ServingCheck/warmup/15/requests"
    held = HeldModel(model, f"{model}/Format-Serving", warmup)
    decided = Decision("rejected", "ann", "2026-01-01T00:00:00+00:00") if is_dropped else None
    root.add_run(90, status="held", held=held, decision=decided)
    root.add_run(80, status="not_blessed")
    removals = root.prune(artifacts=2)
    left = {key for key, folder in folders.items() if folder.exists()}
    of_held = {("Trainer/model", 10), ("ServingCheck/warmup", 10)}
    assert left == {("Trainer/model", 0)} | (set() if is_dropped else of_held)
    assert not executions.exists()
    assert {removal.reason for removal in removals} == {
        "made by an earlier version of this program, and needed by no version of the model"
    }


def test_a_root_of_an_earlier_version_keeps_its_artifacts_until_a_run_has_taken_it_over(root):
    root.add_run(90, status="not_blessed")
    statistics = root.path / "artifacts" / "StatisticsGen" / "statistics" / "4"
    statistics.mkdir(parents=True)
    (root.path / "metadata").mkdir()
    assert root.prune(artifacts=1) == []
    (root.path / "metadata").rename(root.path / "metadata.old")
    root.prune(artifacts=1)
    assert not statistics.exists()


def test_runs_of_kubeflow_that_have_not_ended_stay_and_so_do_their_data(root):
    running = root.add_run(90, status="running", kubeflow_run="k")
    root.add_run(80, status="not_blessed")
    newest = root.add_run(70, status="not_blessed")
    root.prune(runs=1, artifacts=1)
    assert root.records == [running, newest]
    assert len(list(Root(root.path).data.iterdir())) == 3


def test_the_newest_runs_are_those_with_the_highest_numbers(root):
    ahead = root.add_run(-365, status="failed", number=1)
    older = root.add_run(2, status="failed", number=2)
    newest = root.add_run(3, status="failed", number=3)
    root.prune(runs=1, artifacts=1)
    assert root.records == [newest]
    assert [root.has(run_id) for run_id in (ahead, older, newest)] == [set(), set(), root.ALL]


def test_a_run_of_the_future_is_as_old_as_the_run_after_it(root):
    ahead = root.add_run(-365, status="failed", number=1)
    kept = root.add_run(20, status="failed", number=2)
    root.add_run(1, status="pushed", version=5, number=3)
    for days in (10**12, 30):  # the first is before the calendar begins
        root.prune(days=days)
        assert root.records[:2] == [ahead, kept]
    root.prune(days=10)
    assert ahead not in root.records


def test_runs_that_did_not_begin_displace_no_others(root):
    run_ids = [root.add_run(age, status="not_blessed", number=9 - age) for age in (3, 2)]
    for age in (1, 0):
        root.add_run(age, "failed", same_as=None, number=9 - age, attempt=0)
    assert len(root.records) == 4
    root.prune(runs=2, artifacts=2)
    assert root.records[:2] == run_ids
    assert root.has(run_ids[0]) == root.has(run_ids[1]) == root.ALL
