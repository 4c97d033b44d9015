"""The arguments of a step's container."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipelines.root import Root

if TYPE_CHECKING:
    from tfx.types.artifact import Artifact


Artifacts = dict[str, list["Artifact"]]


@dataclass(frozen=True)
class StepCall:
    """Arguments that Kubeflow passes to a container.

    Attributes:
      root: Root of the runs.
      executor_input: KFP's `ExecutorInput`, as parsed JSON.
      inputs: Paths of the launcher's local copies of the input artifacts, by key.
      outputs: Paths that the launcher takes the output artifacts from, by key.
      beam_options: Beam options of this run; they take precedence over the plan's.
    """

    root: Root
    executor_input: dict[str, Any]
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    beam_options: tuple[str, ...] = ()
