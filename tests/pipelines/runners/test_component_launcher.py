from pathlib import Path

import pytest

from components.interruption import interruption
from pipelines.errors import RunFailedError


def test_components_come_in_topological_order_and_leave_their_outputs(launch, calls):
    pipeline = launch("run-1")
    assert pipeline.launcher.components == (pipeline.first, pipeline.second)
    with pytest.raises(LookupError, match=r"no artifact yet in .*First"):
        _ = pipeline.output
    pipeline.run_both()
    assert calls == [("First", "good"), ("Second", "good")]
    assert pipeline.events == [("First", "finished"), ("Second", "finished")]
    assert Path(pipeline.output.uri).is_dir()
    assert pipeline.output.get_string_custom_property("value") == "good"


def test_unchanged_components_are_reused_and_a_fingerprint_makes_a_change(launch):
    launch("run-1", fingerprints=("a", "x")).run_both()
    for run_id, fingerprints, expected in (
        ("run-2", ("a", "x"), [("First", "cached"), ("Second", "cached")]),
        ("run-3", ("a", "y"), [("First", "cached"), ("Second", "finished")]),
        ("run-4", ("b", "y"), [("First", "finished"), ("Second", "cached")]),
        ("run-5", ("b", None), [("First", "cached"), ("Second", "finished")]),
    ):
        pipeline = launch(run_id, fingerprints=fingerprints)
        pipeline.run_both()
        assert pipeline.events == expected, run_id


def test_the_same_run_id_goes_on_where_the_run_ended(launch, calls):
    pipeline = launch("run-1", fingerprints=("a", "a"))
    pipeline.launcher.run(pipeline.first)
    (Path(pipeline.output.uri) / "kept").touch()
    # Other fingerprints rule the cache out: only the run id can make it keep the output.
    pipeline = launch("run-1", fingerprints=("b", "b"))
    pipeline.run_both()
    assert pipeline.events == [("First", "cached"), ("Second", "finished")]
    assert (Path(pipeline.output.uri) / "kept").exists()
    assert calls == [("First", "good"), ("Second", "good")]


def test_what_a_killed_component_has_left_is_removed_before_it_runs_again(
    launch, calls, handles_signals
):
    pipeline = launch("run-1", value="killed at first")
    with handles_signals():
        pipeline.launcher.run(pipeline.first)
    assert pipeline.events == [("First", "failed")]
    interruption.reason = None  # as in another process
    pipeline = launch("run-1", value="killed at first")
    pipeline.launcher.run(pipeline.first)
    # The second execution writes to the same folder, and finds it empty.
    assert calls == [("killed in", calls[0][1], []), ("killed in", calls[0][1], [])]
    assert pipeline.output.uri == calls[0][1]


def test_a_failure_names_the_component_and_the_cause(launch):
    pipeline = launch("run-1", value="bad")
    with pytest.raises(RunFailedError) as error:
        pipeline.launcher.run(pipeline.first)
    assert error.value.component == "First"
    message = str(error.value)
    file = Path(__file__).with_name("conftest.py")
    assert message.startswith(f"ValueError: what the user did wrong and more lines ({file}, line ")
    assert pipeline.events == [("First", "failed")]
    pipeline = launch("run-1", value="good")
    pipeline.run_both()
    assert pipeline.events == [("First", "finished"), ("Second", "finished")]


@pytest.mark.parametrize(("value", "is_bad_input"), [("no such setting", True), ("bad", False)])
def test_a_setting_that_a_component_refuses_is_bad_input(launch, value, is_bad_input):
    pipeline = launch("run-1", value=value)
    with pytest.raises(RunFailedError) as error:
        pipeline.launcher.run(pipeline.first)
    assert error.value.is_bad_input is is_bad_input


def test_code_that_exits_is_a_failure_like_any_other(launch):
    pipeline = launch("run-1", value="exits")
    with pytest.raises(RunFailedError, match=r"SystemExit: 0 \(.*conftest.py, line \d+\)"):
        pipeline.launcher.run(pipeline.first)
    assert pipeline.events == [("First", "failed")]
    launch("run-2", value="good").run_both()


def test_a_check_sees_the_outputs_and_can_end_the_run(launch):
    seen = []

    def check(outputs):
        seen.extend(artifact.get_string_custom_property("value") for artifact in outputs["out"])
        raise RunFailedError("First", "not good enough")

    for _ in range(2):  # the second time its outputs are there already
        pipeline = launch("run-1", check=check)
        with pytest.raises(RunFailedError, match="not good enough"):
            pipeline.launcher.run(pipeline.first)
    assert seen == ["good", "good"]
    assert pipeline.events == [("First", "cached")]


def test_beams_options_reach_the_executors_and_not_the_cache(launch_beam):
    first, calls = launch_beam("run-1", ("--parallelism=3", "--runner=Some"))
    first.run()
    (arguments,) = calls
    # The pipeline's own, then the further ones, which go before them.
    given = [one for one in arguments if one.startswith(("--runner", "--parallelism"))]
    assert given == ["--runner=Own", "--parallelism=3", "--runner=Some"]
    second, calls = launch_beam("run-2", ("--parallelism=4",))
    second.run()
    assert calls == []
    assert second.events == [("Worker", "cached")]
