import pytest
from tfx.dsl.component.experimental.annotations import OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.types.standard_artifacts import Examples

import components  # noqa: F401  - makes TFX importable
from pipelines.errors import RunFailedError
from pipelines.runners.local import LocalRunner

CALLS = []


@component
def First(out: OutputArtifact[Examples], value: Parameter[str]):  # noqa: N802 - TFX's style
    if value == "bad":
        raise ValueError("what the user did wrong\nand more lines")
    CALLS.append(("First", value))
    out.set_string_custom_property("value", value)


@component
def Second(out: OutputArtifact[Examples], value: Parameter[str]):  # noqa: N802
    CALLS.append(("Second", value))


class Events(list):
    def component_started(self, component):
        pass

    def component_finished(self, component, cached, elapsed_secs):
        self.append((component, "cached" if cached else "finished"))

    def component_failed(self, component, elapsed_secs):
        self.append((component, "failed"))


@pytest.fixture
def make_runner(tmp_path):
    def make(run_id, value="good", fingerprints=None):
        second = Second(value=value)
        first = First(value=value)
        second.add_upstream_node(first)
        pipeline = Pipeline(
            pipeline_name="test",
            pipeline_root=str(tmp_path / "artifacts"),
            metadata_connection_config=metadata.sqlite_metadata_connection_config(
                str(tmp_path / "metadata.sqlite")
            ),
            components=[second, first],
            enable_cache=True,
        )
        events = Events()
        return LocalRunner(pipeline, run_id, fingerprints or {}, events), events

    CALLS.clear()
    return make


def test_nodes_run_in_topological_order_and_leave_their_outputs(make_runner):
    runner, events = make_runner("run-1")
    assert runner.node_ids == ["First", "Second"]
    runner.run()
    assert CALLS == [("First", "good"), ("Second", "good")]
    assert events == [("First", "finished"), ("Second", "finished")]
    output = runner.outputs("First")["out"]
    assert output.path.is_dir()
    assert output.properties["value"] == "good"


def test_unchanged_nodes_are_reused_and_a_fingerprint_makes_a_change(make_runner):
    make_runner("run-1", fingerprints={"*": "a", "Second": "x"})[0].run()
    runner, events = make_runner("run-2", fingerprints={"*": "a", "Second": "x"})
    runner.run()
    assert events == [("First", "cached"), ("Second", "cached")]
    runner, events = make_runner("run-3", fingerprints={"*": "a", "Second": "y"})
    runner.run()
    assert events == [("First", "cached"), ("Second", "finished")]
    runner, events = make_runner("run-4", fingerprints={"*": "b", "Second": "y"})
    runner.run()
    assert events == [("First", "finished"), ("Second", "finished")]


def test_the_same_run_id_goes_on_where_the_run_ended(make_runner):
    runner, _ = make_runner("run-1", fingerprints={"*": "a"})
    runner.run_node("First")
    (runner.outputs("First")["out"].path / "kept").touch()
    # Another fingerprint rules the cache out: only the run id can make it keep the output.
    runner, events = make_runner("run-1", fingerprints={"*": "b"})
    runner.run()
    assert events == [("First", "cached"), ("Second", "finished")]
    assert (runner.outputs("First")["out"].path / "kept").exists()
    assert CALLS == [("First", "good"), ("Second", "good")]


def test_a_failure_names_the_component_and_the_cause(make_runner):
    runner, events = make_runner("run-1", value="bad")
    with pytest.raises(RunFailedError) as error:
        runner.run()
    assert error.value.component == "First"
    message = str(error.value)
    assert message.startswith(f"ValueError: what the user did wrong ({__file__}, line ")
    assert events == [("First", "failed")]
    runner, events = make_runner("run-1", value="good")
    runner.run()
    assert events == [("First", "finished"), ("Second", "finished")]
