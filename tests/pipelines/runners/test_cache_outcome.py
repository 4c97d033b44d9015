import shutil
from pathlib import Path

import ml_metadata
import pytest
from ml_metadata.proto import metadata_store_pb2

from pipelines.cache.outcome import CacheOutcome


@pytest.fixture
def outcomes(launch):
    """Returns a function that runs both components, and returns the outcome of the cache."""

    def run(run_id, **settings):
        pipeline = launch(run_id, **settings)
        pipeline.run_both()
        return pipeline.events.outcomes

    return run


def test_what_nothing_changed_for_names_the_run_that_made_it(outcomes):
    assert outcomes("run-1") == [CacheOutcome("first")] * 2
    assert outcomes("run-2") == [CacheOutcome("reused", "run-1")] * 2
    assert outcomes("run-3") == [CacheOutcome("reused", "run-1")] * 2


def test_parts_of_the_fingerprint_and_settings_that_changed_are_named(outcomes):
    outcomes("run-1", fingerprints=("code=1|data=2", "code=1"))
    assert outcomes("run-2", fingerprints=("code=1|data=3", "code=2")) == [
        CacheOutcome("changed", "run-1", parts=("data",)),
        CacheOutcome("changed", "run-1", parts=("code",)),
    ]
    assert outcomes("run-3", value="better", fingerprints=("code=1|data=3", "code=4")) == [
        CacheOutcome("changed", "run-2", settings=("value",)),
        CacheOutcome("changed", "run-2", settings=("value",), parts=("code",)),
    ]
    # Back to the settings of the first run: that is the run that is named.
    assert (
        outcomes("run-4", fingerprints=("code=1|data=2", "code=1"))
        == [CacheOutcome("reused", "run-1")] * 2
    )


def test_without_the_cache_it_is_said_that_it_was_asked_for(outcomes):
    outcomes("run-1")
    assert outcomes("run-2", cache=False) == [CacheOutcome("asked for", "run-1")] * 2
    asked_for = [CacheOutcome("asked for", "run-2")] * 2
    assert outcomes("run-3", value="better", cache=False) == asked_for


def test_a_run_that_goes_on_had_it_finished(launch):
    pipeline = launch("run-1")
    pipeline.launcher.run(pipeline.first)
    again = launch("run-1")
    again.run_both()
    assert again.events.outcomes == [CacheOutcome("finished before"), CacheOutcome("first")]


@pytest.mark.parametrize("files_are_there", [True, False])
def test_an_artifact_that_is_being_pruned_is_never_taken(launch, tmp_path, files_are_there):
    first = launch("run-1")
    first.run_both()
    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(tmp_path / "metadata.sqlite")
    store = ml_metadata.MetadataStore(config)
    (artifact,) = store.get_artifacts_by_uri(first.output.uri)
    if files_are_there:  # the removal was killed before it came to them
        artifact.state = artifact.MARKED_FOR_DELETION
        store.put_artifacts([artifact])
    else:
        shutil.rmtree(Path(artifact.uri))
    again = launch("run-2")
    again.run_both()
    assert again.events == [("First", "finished"), ("Second", "cached")]
    assert again.events.outcomes[0] == CacheOutcome("pruned", "run-1")
    assert again.output.uri != first.output.uri


def test_an_artifact_under_two_keys_counts_for_both():
    from pipelines.cache import outcome as cache_outcome

    event = metadata_store_pb2.Event(execution_id=7, artifact_id=5, type=3)
    for key in ("baseline_statistics", "statistics"):
        event.path.steps.add().key = key
        event.path.steps.add().index = 0

    class Store:
        def get_events_by_execution_ids(self, ids):
            return [event]

    execution = metadata_store_pb2.Execution(id=7)
    assert cache_outcome._events(Store(), execution, (3,)) == {
        "baseline_statistics": [5],
        "statistics": [5],
    }
