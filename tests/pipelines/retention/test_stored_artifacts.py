def test_checkpoints_go_before_the_rest(root):
    runs = [root.add_run(age, version=1000 - age) for age in (40, 30, 20, 10)]
    removals = root.prune(artifacts=3, checkpoints=2)
    assert [root.has(run) for run in runs] == [
        root.OF_A_VERSION,
        root.ALL - {"model_run"},
        root.ALL,
        root.ALL,
    ]
    assert [removal.reason for removal in removals if runs[1] in removal.reason] == [
        f"run {runs[1]} is not among the newest 2 runs whose checkpoints stay"
    ]


def test_what_a_kept_run_took_from_the_cache_stays(root):
    first = root.add_run(50, status="not_blessed")
    lonely = root.add_run(40, status="not_blessed")
    second = root.add_run(30, status="not_blessed", cached_from=first)
    unchanged = [root.add_run(age, status="unchanged", same_as=second) for age in (20, 10)]
    root.prune(artifacts=1)
    assert root.has(first) == root.has(second) == root.ALL
    assert root.has(lonely) == set()
    assert root.records == [first, lonely, second, *unchanged]
