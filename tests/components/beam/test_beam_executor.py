import components  # noqa: I001  Before TFX: makes TFDV importable.

import pytest
from apache_beam.options.pipeline_options import SetupOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.portability.portable_runner import PortableRunner

from components.beam.beam_executor import BeamExecutor
from components.beam.processes import ProcessesRunner

assert components


class Executor(BeamExecutor):
    WORKER_MODULES = ("components.nearest",)
    Do = None


@pytest.mark.more
@pytest.mark.parametrize(
    ("args", "runner"),
    [
        ([], FnApiRunner),
        (["--runner=DirectRunner"], FnApiRunner),
        (["--direct_running_mode=multi_processing"], ProcessesRunner),
        (["--runner=DirectRunner", "--direct_running_mode=multi_processing"], ProcessesRunner),
        (["--runner=PortableRunner", "--job_endpoint=localhost:1"], PortableRunner),
    ],
)
def test_it_chooses_what_the_direct_runner_is(args, runner):
    executor = Executor(Executor.Context(beam_pipeline_args=[*args, "--beam_plugins=math"]))
    pipeline = executor._make_beam_pipeline()
    assert type(pipeline.runner) is runner
    plugins = pipeline.options.view_as(SetupOptions).beam_plugins
    assert plugins == ["math", "components.tfx.compat", "components.nearest"]
