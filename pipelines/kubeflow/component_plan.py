"""What a component's step does: a file in the root that is named after its content.

`Plan` writes it and hands the name on. So Kubeflow's cache, which looks at the parameters of a step,
sees the data, the code and the settings.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipelines import atomic_files

_FOLDER = "plans"


@dataclass(frozen=True)
class ComponentPlan:
    """What a component's step does. All of it is plain values.

    Attributes:
      component: Id of the component.
      executor: `type` is the name of TFX's proto, `spec` its content.
      parameters: TFX's `NodeParameters`: the execution properties.
      fingerprint: Of what the component depends on beyond them: data, code, libraries.
      inputs: Import path of the type of each input artifact, by key.
      outputs: The same of the output artifacts.
      check: What is checked behind it, see `pipelines.checks.component_checks`; None for nothing.
      baselines: Folders in the root that are further inputs, by key, relative to the root.
      schema: The root's schema as text, in place of the input `schema`; None takes the input.
      push: What the step of the Pusher does beside pushing; None for any other.
      code: What the step runs, see `code_of_step`; None where nothing is known of it.
      findings_id: Of the folder that the check's findings go to, see `findings_id`.
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


def write_component_plan(root: Path, plan: ComponentPlan) -> str:
    """Writes a plan and returns its name.

    Args:
      root: Of the pipeline.
      plan: What to write.
    """
    content = json.dumps(asdict(plan), sort_keys=True, indent=1, allow_nan=False).encode()
    return write_named_by_content(root / _FOLDER, content)


def read_component_plan(root: Path, name: str) -> ComponentPlan:
    """Returns a plan.

    Raises:
      FileNotFoundError: There is none: the step does not see the folder that `Plan` has written to.
    """
    file = root / _FOLDER / f"{name}.json"
    if not file.is_file():
        raise FileNotFoundError(
            f"There is no plan {name} in {file.parent}: this step does not see the folder that the step "
            "Plan has written to. kubeflow.root must be on a volume that every step mounts. "
            f"Received: root={str(root)!r}"
        )
    return ComponentPlan(**json.loads(file.read_text(encoding="utf-8")))


def write_named_by_content(folder: Path, content: bytes) -> str:
    """Writes a JSON file that is named after the SHA-256 of its content, and returns that."""
    name = hashlib.sha256(content).hexdigest()
    file = folder / f"{name}.json"
    if not file.is_file():
        atomic_files.write(file, content)
    file.touch()  # a file of a run of late, which is not tidied away
    return name
