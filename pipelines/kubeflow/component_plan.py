"""Plan of a component's step: a file in the root that is named after its content.

The step `Plan` writes it and passes its name to the component's step. Kubeflow's cache compares a step's
parameters, so the name covers the data, the code and the settings.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipelines import atomic_files
from pipelines.root import Root


@dataclass(frozen=True)
class ComponentPlan:
    """Plan of a component's step, in plain values.

    Attributes:
      component: Id of the component.
      executor: `type` is the name of TFX's proto, `spec` its content.
      parameters: Execution properties, as TFX's `NodeParameters`.
      fingerprint: Fingerprint of the component's other dependencies: data, code, libraries.
      inputs: Import path of the type of each input artifact, by key.
      outputs: Import path of the type of each output artifact, by key.
      check: Check after the component, see `pipelines.checks.component_checks`; None for no check.
      baselines: Folders of further inputs by key, relative to the root.
      schema: Text of the root's schema, which replaces the input `schema`; None uses the input.
      push: Further settings of the Pusher's step; None for any other step.
      code: Code that the step runs, see `code_of_step`; None if unknown.
      findings_id: Id of the folder for the check's findings, see `findings_id`.
    """

    component: str
    executor: dict[str, Any]
    parameters: dict[str, Any]
    fingerprint: str
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    check: dict[str, Any] | None = None
    baselines: dict[str, str] = field(default_factory=dict)
    schema: str | None = None
    push: dict[str, Any] | None = None
    code: dict[str, Any] | None = None
    findings_id: str = ""


def write_component_plan(root: Root, plan: ComponentPlan) -> str:
    """Writes a plan and returns its name.

    Args:
      root: Root of the runs.
      plan: Plan to write.
    """
    content = json.dumps(asdict(plan), sort_keys=True, indent=1, allow_nan=False).encode()
    return write_named_by_content(root.plans, content)


def read_component_plan(root: Root, name: str) -> ComponentPlan:
    """Returns a plan.

    Raises:
      FileNotFoundError: No such plan: the step does not see the folder that `Plan` wrote to.
    """
    file = root.plans / f"{name}.json"
    if not file.is_file():
        raise FileNotFoundError(
            f"There is no plan {name} in {file.parent}: this step does not see the folder that the step "
            "Plan has written to. kubeflow.root must be on a volume that every step mounts. "
            f"Received: root={str(root)!r}"
        )
    return ComponentPlan(**json.loads(file.read_text(encoding="utf-8")))


def write_named_by_content(folder: Path, content: bytes) -> str:
    """Writes a JSON file that is named after the SHA-256 of its content, and returns the name."""
    name = hashlib.sha256(content).hexdigest()
    file = folder / f"{name}.json"
    if not file.is_file():
        atomic_files.write(file, content)
    file.touch()  # files of recent runs are not removed
    return name
