"""Runners: where the Beam work of a run is done. The components themselves run in the run's own process."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from components.nearest import nearest_first
from pipelines.beam.options import given_options
from pipelines.config.beam import BeamConfig
from pipelines.errors import BadInputError


class Runner:
    """Beam works in this process, with the `args` of the configuration."""

    def check(self, config: BeamConfig) -> None:
        """Checks the settings of `[beam]`, before anything is written: all are accepted."""
        del config

    @contextlib.contextmanager
    def beam_options(self, config: BeamConfig, folder: Path) -> Iterator[tuple[str, ...]]:
        del folder
        yield given_options(config)


class BeamRunner(Runner):
    """Beam works on an engine."""

    def check(self, config: BeamConfig) -> None:
        """Checks the settings of `[beam]`, before anything is written."""
        if not config.has_engine:
            raise BadInputError(
                '--runner beam needs an engine: beam.runner = "direct" with beam.direct.workers = 1 is the '
                "same as --runner local. Set beam.direct.workers to the number of processes, or beam.runner "
                'to "flink" or "spark".'
            )
        if config.runner == "dataflow":
            raise BadInputError(
                '--runner beam cannot run with beam.runner = "dataflow": the root is a folder (on Kubeflow, '
                "on a volume), which Dataflow cannot read. Use a Flink or Spark cluster that can."
            )

    @contextlib.contextmanager
    def beam_options(self, config: BeamConfig, folder: Path) -> Iterator[tuple[str, ...]]:
        """Yields the Beam options, while the engine that they name is running."""
        from pipelines.beam.engine import running_engine

        with running_engine(config, folder) as options:
            yield (*options, *config.args)


RUNNERS: dict[str, Runner] = {"local": Runner(), "beam": BeamRunner()}

KUBEFLOW = "kubeflow"
"""Further name for `--runner`: runs a compiled pipeline, not the components in this process."""

RUNNER_NAMES = (*RUNNERS, KUBEFLOW)


def find_runner(name: str) -> Runner:
    if name not in RUNNERS:
        raise BadInputError(
            f"--runner {name} is not available. "
            f"Available runners: {', '.join(nearest_first(name, RUNNER_NAMES))}."
        )
    return RUNNERS[name]
