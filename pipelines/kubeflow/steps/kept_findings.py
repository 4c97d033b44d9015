"""Findings of the steps' checks: kept in the root, since `Record` needs those of cached steps, too.

The folder has an id, which is in the plan of every component. When the folder is gone, a new one has
another id, so that no step whose findings were in the old one is taken from the cache.
"""

import json
import uuid
from typing import Any

from pipelines import atomic_files
from pipelines.artifacts.anomalies import NOTE_PREFIX
from pipelines.checks.component_checks import Findings
from pipelines.kubeflow.component_plan import write_named_by_content
from pipelines.root import Root

_ID = "id"


class KeptFindings:
    """Keeps the findings of a check; implements `Findings`."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []

    @property
    def has_anomalies(self) -> bool:
        """True if the ExampleValidator has found anomalies."""
        return any(call["values"].get("text", "").startswith(NOTE_PREFIX) for call in self._calls)

    def note(self, text: str) -> None:
        """Keeps a note."""
        self._keep("note", text=text)

    def add_label_comparison(self, comparison: dict[str, Any]) -> None:
        """Keeps the comparison."""
        self._keep("add_label_comparison", comparison=comparison)

    def add_models(self, models: tuple[dict[str, Any], ...]) -> None:
        """Keeps the facts about models."""
        self._keep("add_models", models=models)

    def add_details(self, section: str, values: dict[str, Any]) -> None:
        """Keeps values of a section of the details."""
        self._keep("add_details", section=section, values=values)

    def add_verdict(
        self,
        metrics: Any,
        baseline_metrics: Any,
        slices: Any,
        checks: Any = (),
        not_checked: Any = (),
        intervals: Any = None,
        doubts: Any = (),
    ) -> None:
        """Keeps the verdict on a model."""
        self._keep(
            "add_verdict",
            metrics=metrics,
            baseline_metrics=baseline_metrics,
            slices=slices,
            checks=checks,
            not_checked=not_checked,
            intervals=intervals,
            doubts=doubts,
        )

    def write_details(self, root: Root, run_id: str) -> None:
        """Writes the details at once, since `Record` does not run if the run fails later."""
        for call in self._calls:
            if call["method"] == "add_details":
                root.details(run_id).write(**call["values"])

    def write(self, root: Root) -> str:
        """Writes the findings, and returns the name to read them by."""
        return write_named_by_content(root.findings, self.as_json().encode())

    def as_json(self) -> str:
        """Returns the findings as JSON."""
        return json.dumps(self._calls, indent=1, allow_nan=False)

    def _keep(self, method: str, **values: Any) -> None:
        self._calls.append({"method": method, "values": values})


def findings_id(root: Root) -> str:
    """Returns the id of the folder of findings; a new folder gets a new one.

    Args:
      root: Root of the runs; its lock is held.
    """
    file = root.findings / _ID
    if not file.is_file():
        atomic_files.write(file, uuid.uuid4().hex)
    return file.read_text(encoding="utf-8")


def read_findings(root: Root, name: str) -> list[dict[str, Any]]:
    """Returns the findings of a step, for `report_json`.

    Args:
      root: Root of the runs.
      name: Name that `KeptFindings.write` returned.

    Raises:
      LookupError: The file was removed.
    """
    file = root.findings / f"{name}.json"
    if not file.is_file():
        raise LookupError(
            f"There is no {name}.json in {file.parent}, where a step has written what it found: files of "
            f"that folder were removed. Remove all of {file.parent} and run again: then no step is taken "
            "from the cache."
        )
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return found


def report_json(calls: list[dict[str, Any]], findings: Findings) -> None:
    """Reports the calls that `KeptFindings` has kept."""
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
