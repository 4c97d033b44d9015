import json

from pipelines.root.records import Decision, HeldModel


def test_a_record_goes_when_no_rule_keeps_it(root):
    runs = [root.add_run(age, status="not_blessed") for age in (400, 300, 200, 100, 5)]
    assert root.prune(runs=2, days=250, dry_run=True)
    assert root.records == runs
    root.prune(runs=2, days=250)
    assert root.records == runs[2:]
    assert {file.stem for file in (root.path / "logs").iterdir()} == set(runs[2:])
    assert {item.stem for item in (root.path / "runs").iterdir()} == {
        *runs[2:],
        "details",
        "pruned",
    }
    assert {folder.name for folder in (root.path / "runs" / "details").iterdir()} == set(runs[2:])
    assert [root.has(run) for run in runs] == [set()] * 2 + [root.ALL] * 3


def test_what_serves_can_serve_again_or_was_accepted_keeps_its_run(root):
    serving, second, withdrawn, accepted, *others = (
        root.add_run(age, version=version, status=status)
        for age, version, status in (
            (500, 12, "pushed"), (450, 9, "pushed"), (400, 8, "pushed"), (350, None, "failed"),
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
    # The newest run may be resumed; the cache is from the one before it.
    assert root.records == [serving, second, withdrawn, accepted, *others[1:]]
    assert root.has(serving) == root.ALL
    assert root.has(second) == root.has(withdrawn) == root.OF_A_VERSION
    assert root.has(accepted) == root.ALL
    assert [root.has(run) for run in others] == [set(), root.ALL, root.ALL]


def test_a_run_whose_training_another_goes_on_with_stays(root):
    former = root.add_run(90, status="failed")
    other = root.add_run(80, status="failed")
    newest = root.add_run(70, status="failed", mended=former)
    root.prune(runs=1, artifacts=1)
    assert root.records == [former, newest]
    assert [root.has(run) for run in (former, other, newest)] == [root.ALL, set(), root.ALL]


def test_a_record_that_cannot_be_read_keeps_what_it_may_need(root, caplog):
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
