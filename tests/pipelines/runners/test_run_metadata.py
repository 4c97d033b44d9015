from pipelines.runners.run_metadata import RunMetadata


def read(pipeline, component):
    """Returns what is known of a component in the run of `pipeline`."""
    launcher = pipeline.launcher
    return RunMetadata(launcher._connection), launcher._nodes[component.id]


def test_a_component_that_has_not_run(launch):
    pipeline = launch("run-1")
    metadata, node = read(pipeline, pipeline.first)
    assert metadata.execution(node) is None
    assert (metadata.is_finished(node), metadata.is_cached(node)) == (False, False)
    assert metadata.outputs(node) == {}


def test_a_component_that_has_run_and_one_that_is_reused(launch):
    pipelines = {run_id: launch(run_id) for run_id in ("run-1", "run-2")}
    for run_id, is_cached in (("run-1", False), ("run-2", True)):
        pipeline = pipelines[run_id]
        pipeline.launcher.run(pipeline.first)
        metadata, node = read(pipeline, pipeline.first)
        assert (metadata.is_finished(node), metadata.is_cached(node)) == (True, is_cached)
        ((artifact,),) = metadata.outputs(node).values()
        assert artifact.get_string_custom_property("value") == "good"
    assert len({pipelines[run_id].output.uri for run_id in pipelines}) == 1


def test_a_component_that_failed_is_not_finished(launch, handles_signals):
    pipeline = launch("run-1", value="killed at first")
    with handles_signals():
        pipeline.launcher.run(pipeline.first)
    metadata, node = read(pipeline, pipeline.first)
    assert metadata.execution(node) is not None
    assert not metadata.is_finished(node)
