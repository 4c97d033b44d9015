import shutil


def test_artifacts_beyond_the_newest_go_and_records_stay(root):
    runs = [root.add_run(age, version=1000 - age) for age in (50, 40, 30, 20, 10)]
    removals = root.prune(artifacts=2)
    # All versions are still in `serving`: each can be rolled back to, and is then the baseline.
    assert [root.has(run) for run in runs] == [root.OF_A_VERSION] * 3 + [root.ALL] * 2
    assert root.records == runs
    copies = {item.name for item in (root.path / "data").iterdir()}
    assert copies == {f"data-{run}" for run in runs[-2:]}
    kinds = [removal.kind for removal in removals]
    assert {kind: kinds.count(kind) for kind in kinds} == {"step": 6, "artifact": 3, "data": 3}
    reasons = {removal.reason for removal in removals if removal.kind != "data"}
    assert reasons == {"not used by the newest 2 runs whose artifacts are kept"}
    assert root.prune(artifacts=2) == []


def test_copies_of_remote_data_stay_as_long_as_the_artifacts_of_their_runs(root):
    for age, name in ((90, "aa"), (10, "bb")):  # CsvExampleGen has read a copy of the copy
        file = root.path / "data" / name / "day-1" / "trips.csv"
        file.parent.mkdir(parents=True)
        root.add_run(age, status="not_blessed", data_files=({"path": str(file), "bytes": 1, "sha256": ""},))
    root.prune(artifacts=1)
    assert [(root.path / "data" / name).exists() for name in ("aa", "bb")] == [False, True]


def test_checkpoints_go_before_the_rest(root):
    runs = [root.add_run(age, version=1000 - age) for age in (40, 30, 20, 10)]
    checkpoints = root.folder(runs[1], "model_run")
    removals = root.prune(artifacts=3, checkpoints=2)
    left = [root.OF_A_VERSION, root.ALL - {"model_run"}, root.ALL, root.ALL]
    assert [root.has(run) for run in runs] == left
    (removal,) = (removal for removal in removals if removal.path == checkpoints)
    assert removal.size_bytes == 4_000
    assert removal.reason == "not used by the newest 2 runs whose checkpoints are kept"


def test_steps_of_a_run_whose_record_was_removed_by_hand_go(root):
    runs = [root.add_run(age, status="not_blessed") for age in (90, 80, 70)]
    (root.path / "runs" / f"{runs[0]}.json").unlink()
    removals = root.prune(artifacts=3)
    assert [root.has(run) for run in runs] == [set(), root.ALL, root.ALL]
    reasons = {removal.reason for removal in removals if removal.kind == "log"}
    assert reasons == {f"the record of run {runs[0]} no longer exists"}


def test_a_step_of_no_run_by_rules_of_records_says_so(root):
    root.add_run(90, status="not_blessed")
    root.add_run(80, status="not_blessed")
    removals = root.prune(runs=1)
    reasons = {removal.reason for removal in removals if removal.kind == "step"}
    assert reasons == {"the runs that used it are not the newest run"}


def test_what_a_killed_removal_began_goes_with_the_next(root):
    run = root.add_run(90, status="not_blessed")
    root.add_run(80, status="not_blessed")
    model_run, examples = (root.folder(run, key) for key in ("model_run", "examples"))
    model_run.rename(model_run.with_name(".removing-model_run"))
    step = examples.parent
    half = shutil.copytree(step, step.with_name(f".removing-{step.name}"))
    (half / "examples" / "file").unlink()
    removals = root.prune(artifacts=5)  # which keeps both runs
    assert {(item.path, item.reason) for item in removals} == {
        (half, "its removal was begun"),
        (model_run.with_name(".removing-model_run"), "its removal was begun"),
    }
    assert not half.exists()
    assert root.has(run) == root.ALL - {"model_run"}


def test_a_removal_that_was_begun_before_does_not_hinder_the_next(root):
    old = root.add_run(90, status="not_blessed")
    root.add_run(80, status="not_blessed")
    step = root.folder(old, "model").parent
    shutil.copytree(step, step.with_name(f".removing-{step.name}"))
    root.prune(artifacts=1)
    assert [path for path in step.parent.iterdir() if step.name in path.name] == []


def test_a_step_that_a_failed_run_left_stays_for_resume(root):
    root.add_run(90, status="not_blessed")
    half = root.path / "artifacts" / "Trainer" / ("0" * 64) / "unfinished"
    half.mkdir(parents=True)
    root.add_run(80, status="interrupted")
    root.prune(artifacts=1)
    assert half.exists()
    root.add_run(70, status="not_blessed")
    root.prune(artifacts=1)
    assert not half.parent.exists()
