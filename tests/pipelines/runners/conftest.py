import contextlib
import signal
import sys
from pathlib import Path

import pytest
from pipelines.runners.component_launcher import ComponentLauncher
from tfx.dsl.component.experimental.annotations import OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.base import base_beam_component, base_beam_executor, executor_spec
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.types.channel import Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec
from tfx.types.standard_artifacts import Examples

from components.errors import SettingError

CALLS = []
ARGUMENTS = []


@component
def First(out: OutputArtifact[Examples], value: Parameter[str]):  # noqa: N802 - TFX's style
    if value == "bad":
        raise ValueError("what the user did wrong\nand more lines")
    if value == "no such setting":
        raise SettingError(value)
    if value == "exits":
        sys.exit(0)
    if value == "killed at first":
        CALLS.append(("killed in", out.uri, [item.name for item in Path(out.uri).iterdir()]))
        (Path(out.uri) / "half").touch()
        if len(CALLS) == 1:
            signal.raise_signal(signal.SIGTERM)
        return
    if value == "drops a signal":
        with contextlib.suppress(BaseException):
            signal.raise_signal(signal.SIGTERM)
    CALLS.append(("First", value))
    out.set_string_custom_property("value", value)


@component
def Second(out: OutputArtifact[Examples], value: Parameter[str]):  # noqa: N802
    CALLS.append(("Second", value))


class Events(list):
    def component_started(self, component):
        pass

    def __init__(self):
        super().__init__()
        self.outcomes = []

    def component_finished(self, component, cached, elapsed_secs, outcome):
        self.append((component.id, "cached" if cached else "finished"))
        self.outcomes.append(outcome)

    def component_failed(self, component, elapsed_secs):
        self.append((component.id, "failed"))


class LaunchedPipeline:
    """Two components, the second one behind the first, listed the wrong way round."""

    def __init__(
        self, folder, run_id, value="good", fingerprints=(None, None), check=None, cache=True
    ):
        self.first, self.second = First(value=value), Second(value=value)
        self.second.add_upstream_node(self.first)
        pipeline = Pipeline(
            pipeline_name="test",
            pipeline_root=str(folder / "artifacts"),
            metadata_connection_config=metadata.sqlite_metadata_connection_config(
                str(folder / "metadata.sqlite")
            ),
            components=[self.second, self.first],
            enable_cache=cache,
        )
        self.events = Events()
        self.launcher = ComponentLauncher(
            pipeline,
            run_id,
            {
                component: fingerprint
                for component, fingerprint in zip(
                    (self.first, self.second), fingerprints, strict=True
                )
                if fingerprint
            },
            self.events,
            checks={self.first: check} if check else None,
        )

    def run_both(self):
        self.launcher.run(self.first)
        self.launcher.run(self.second)

    @property
    def output(self):
        """The output of the first component."""
        return self.launcher.artifact(self.first.outputs["out"])


class BeamExecutor(base_beam_executor.BaseBeamExecutor):
    def Do(self, input_dict, output_dict, exec_properties):
        ARGUMENTS.append(self._beam_pipeline_args)


class WorkerSpec(ComponentSpec):
    PARAMETERS = {}
    INPUTS = {}
    OUTPUTS = {"out": ChannelParameter(type=Examples)}


class Worker(base_beam_component.BaseBeamComponent):
    SPEC_CLASS = WorkerSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(BeamExecutor)

    def __init__(self):
        super().__init__(WorkerSpec(out=Channel(type=Examples)))


class LaunchedBeam:
    """A pipeline with one component, whose executor would use Beam."""

    def __init__(self, folder, run_id, beam_options):
        self.worker = Worker()
        pipeline = Pipeline(
            pipeline_name="test",
            pipeline_root=str(folder / "artifacts"),
            metadata_connection_config=metadata.sqlite_metadata_connection_config(
                str(folder / "metadata.sqlite")
            ),
            components=[self.worker],
            enable_cache=True,
            beam_pipeline_args=["--runner=Own", "--sdk_container_image=unused"],
        )
        self.events = Events()
        self.launcher = ComponentLauncher(
            pipeline, run_id, {}, self.events, beam_options=beam_options
        )

    def run(self):
        self.launcher.run(self.worker)


@pytest.fixture
def launch_beam(tmp_path):
    """Returns a function that makes a `LaunchedBeam`, and the options that its executor gets."""

    def make(run_id, beam_options):
        ARGUMENTS.clear()
        return LaunchedBeam(tmp_path, run_id, beam_options), ARGUMENTS

    return make


@pytest.fixture
def calls():
    """The components that were executed, with their parameters."""
    CALLS.clear()
    return CALLS


@pytest.fixture
def launch(tmp_path, calls):
    """Returns a function that makes a `LaunchedPipeline`; all share one metadata store."""
    return lambda *args, **kwargs: LaunchedPipeline(tmp_path, *args, **kwargs)
