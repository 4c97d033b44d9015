"""The arguments of a step's container."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfx.types.artifact import Artifact


Artifacts = dict[str, list["Artifact"]]


@dataclass(frozen=True)
class StepCall:
    """What a container of Kubeflow is called with.

    Attributes:
      root: Of the pipeline.
      executor_input: KFP's `ExecutorInput`, as JSON has it.
      inputs: The launcher's local copies of the input artifacts, by key.
      outputs: Where it takes the output artifacts from, by key.
      beam_options: Of this run, for components that work with Beam. They go before the plan's.
    """

    root: Path
    executor_input: dict[str, Any]
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    beam_options: tuple[str, ...] = ()
