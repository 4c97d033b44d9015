"""The base of executors with Beam pipelines: which runner and workers they get."""

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from tfx.dsl.components.base import base_beam_executor

from components.beam import in_memory_runner
from components.beam.worker_modules import worker_modules

_DIRECT = (None, "DirectRunner", "direct", "directrunner", "SwitchingDirectRunner")
IN_PROCESS_RUNNER = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"
PROCESSES_RUNNER = "--runner=components.beam.processes.ProcessesRunner"


class BeamExecutor(base_beam_executor.BaseBeamExecutor):
    """Chooses what `DirectRunner` means, and has workers import what they need before they unpickle.

    Beam's own choice for DirectRunner may be Prism, a program that it downloads, or workers without TFDV's
    stand-in module.
    """

    _beam_pipeline_args: list[str]

    WORKER_MODULES: tuple[str, ...] = ()
    """Modules for the workers of this component, besides those of `worker_modules`."""

    def _make_beam_pipeline(self) -> beam.Pipeline:
        args = self._beam_pipeline_args
        options = PipelineOptions(args)
        added = [f"--beam_plugins={name}" for name in (*worker_modules, *self.WORKER_MODULES)]
        if options.view_as(StandardOptions).runner in _DIRECT:
            mode = options.view_as(DirectOptions).direct_running_mode
            added.append(PROCESSES_RUNNER if mode == "multi_processing" else IN_PROCESS_RUNNER)
        self._beam_pipeline_args = [*args, *(arg for arg in added if arg not in args)]
        return super()._make_beam_pipeline()


class InMemoryExecutor(BeamExecutor):
    """Makes Beam pipelines for `components.beam.in_memory_runner`; other engines run theirs as before.

    Source: `_make_beam_pipeline` of TFX 1.21's executors.
    """

    def _make_beam_pipeline(self) -> beam.Pipeline:
        pipeline = super()._make_beam_pipeline()
        in_memory_runner.install(pipeline)
        return pipeline
