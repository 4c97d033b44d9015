"""What the check of a step finds: kept in the root, since `Record` needs it of a cached step, too.

The folder has an id, which is in the plan of every component: when the folder is gone, a new one has
another id, and no step is taken from the cache whose findings were in the old one.
"""

import json
import uuid
from pathlib import Path
from typing import Any

from pipelines import atomic_files
from pipelines.artifacts.anomalies import NOTE_PREFIX
from pipelines.checks.component_checks import Findings
from pipelines.kubeflow.component_plan import write_named_by_content
from pipelines.root.details import RunDetails

_FOLDER, _ID = "findings", "id"


class KeptFindings:
    """Takes what a check finds; `Findings`."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []

    @property
    def has_anomalies(self) -> bool:
        """Whether the ExampleValidator has found some."""
        return any(call["values"].get("text", "").startswith(NOTE_PREFIX) for call in self._calls)

    def note(self, text: str) -> None:
        """Keeps it."""
        self._keep("note", text=text)

    def add_label_comparison(self, comparison: dict[str, Any]) -> None:
        """Keeps it."""
        self._keep("add_label_comparison", comparison=comparison)

    def add_models(self, models: tuple[dict[str, Any], ...]) -> None:
        """Keeps them."""
        self._keep("add_models", models=models)

    def add_details(self, section: str, values: dict[str, Any]) -> None:
        """Keeps it."""
        self._keep("add_details", section=section, values=values)

    def add_verdict(
        self,
        metrics: Any,
        baseline_metrics: Any,
        slices: Any,
        checks: Any = (),
        not_checked: Any = (),
        intervals: Any = None,
    ) -> None:
        """Keeps it."""
        self._keep(
            "add_verdict",
            metrics=metrics,
            baseline_metrics=baseline_metrics,
            slices=slices,
            checks=checks,
            not_checked=not_checked,
            intervals=intervals,
        )

    def write_details(self, root: Path, run_id: str) -> None:
        """Writes the details at once: of a run that fails later, no `Record` does."""
        for call in self._calls:
            if call["method"] == "add_details":
                RunDetails(root, run_id).write(**call["values"])

    def write(self, root: Path) -> str:
        """Writes what was found, and returns the name to read it by."""
        return write_named_by_content(root / _FOLDER, self.as_json().encode())

    def as_json(self) -> str:
        """Returns what was found."""
        return json.dumps(self._calls, indent=1, allow_nan=False)

    def _keep(self, method: str, **values: Any) -> None:
        self._calls.append({"method": method, "values": values})


def findings_id(root: Path) -> str:
    """Returns the id of the folder that has what steps have found; a new folder has a new one.

    Args:
      root: Of the pipeline; its lock is held.
    """
    file = root / _FOLDER / _ID
    if not file.is_file():
        atomic_files.write(file, uuid.uuid4().hex)
    return file.read_text(encoding="utf-8")


def read_findings(root: Path, name: str) -> list[dict[str, Any]]:
    """Returns what a step has found, for `report_json`.

    Args:
      root: Of the pipeline.
      name: That `KeptFindings.write` has returned.

    Raises:
      LookupError: It is not there any more.
    """
    file = root / _FOLDER / f"{name}.json"
    if not file.is_file():
        raise LookupError(
            f"There is no {name}.json in {file.parent}, where a step has written what it found: files of "
            f"that folder were removed. Remove all of {file.parent} and run again: then no step is taken "
            "from the cache."
        )
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return found


def report_json(calls: list[dict[str, Any]], findings: Findings) -> None:
    """Reports what `KeptFindings` has kept."""
    methods: dict[str, Any] = {
        "note": findings.note,
        "add_label_comparison": findings.add_label_comparison,
        "add_models": findings.add_models,
        "add_details": findings.add_details,
        "add_verdict": findings.add_verdict,
    }
    for call in calls:
        values = call["values"]
        if call["method"] == "add_models":
            values["models"] = tuple(values["models"])
        if call["method"] == "add_verdict":
            for key in ("checks", "not_checked"):
                values[key] = tuple(values[key])
            intervals = values["intervals"] or {}
            values["intervals"] = {key: (low, high) for key, (low, high) in intervals.items()}
        methods[call["method"]](**values)
