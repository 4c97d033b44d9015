from pipelines.root import Root


def test_artifacts_beyond_the_newest_go_and_records_stay(root):
    runs = [root.add_run(age, version=1000 - age) for age in (50, 40, 30, 20, 10)]
    removals = root.prune(artifacts=2)
    # All versions are still in `serving`: each can be rolled back to, and is then the baseline.
    assert [root.has(run) for run in runs] == [root.OF_A_VERSION] * 3 + [root.ALL] * 2
    assert root.records == runs
    copies = {item.name for item in (root.path / "data").iterdir()}
    assert copies == {f"data-{run}" for run in runs[-2:]}
    artifacts = [removal for removal in removals if removal.kind == "artifact"]
    assert {removal.size_bytes for removal in artifacts} == {500, 4_000}
    assert len(artifacts) == 6
    assert "is not among the newest 2 runs whose artifacts stay" in artifacts[0].reason
    assert root.prune(artifacts=2) == []


def test_runs_of_kubeflow_that_go_on_stay_and_so_do_their_data(root):
    going_on = root.add_run(90, status="running", kubeflow_run="k")
    root.add_run(80, status="not_blessed")
    newest = root.add_run(70, status="not_blessed")
    root.prune(runs=1, artifacts=1)
    assert root.records == [going_on, newest]
    assert len(list((root.path / "data").iterdir())) == 3


def test_artifacts_of_a_run_whose_record_was_removed_by_hand_go(root):
    runs = [root.add_run(age, status="not_blessed") for age in (90, 80, 70)]
    (root.path / "runs" / f"{runs[0]}.json").unlink()
    removals = root.prune(artifacts=3)
    assert [root.has(run) for run in runs] == [set(), root.ALL, root.ALL]
    reasons = {removal.reason for removal in removals if removal.kind in ("artifact", "log")}
    assert reasons == {f"run {runs[0]} is without a record", f"the record of run {runs[0]} is gone"}


def test_half_a_folder_of_a_killed_removal_goes_with_the_next(root):
    runs = [root.add_run(age, status="not_blessed") for age in (90, 80)]
    artifact = root.artifacts_of(runs[0])["examples"]
    artifact.state = artifact.MARKED_FOR_DELETION
    root.store.put_artifacts([artifact])
    removals = root.prune(artifacts=5)  # which keeps both runs
    assert [(item.path.parts[-3:-1], item.reason) for item in removals] == [
        (("CsvExampleGen", "examples"), "its removal was begun")
    ]
    assert root.has(runs[0]) == root.ALL - {"examples"}


def test_the_details_of_a_report_go_with_its_record(root):
    runs = [root.add_run(age, status="not_blessed") for age in (90, 80, 70)]
    for run in runs:
        Root(root.path).details(run).write("anomalies", {"found": run})
    root.prune(runs=2)
    left = {folder.name for folder in (root.path / "runs" / "details").iterdir()}
    assert left == set(root.records) == set(runs[1:])
    assert root.prune(runs=2) == []
