"""Source data of a report: the record of a run, its details, and the other runs of the root."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.root import Root
from pipelines.root.records import RunRecord

NOT_RECORDED = "Not recorded by the version that made this run."


@dataclass(frozen=True)
class Context:
    record: RunRecord
    root: Root
    # Details by section, see `RunDetails`; without those that were not recorded.
    details: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    records: Sequence[RunRecord] = ()  # All runs of the root, oldest first, including this run

    @property
    def previous(self) -> RunRecord | None:
        """Run to compare with: the newest earlier run with metrics, or else the previous run."""
        earlier = [run for run in self.records[: self.number - 1] if run.attempt]
        evaluated = [run for run in earlier if run.metrics]
        return next(reversed(evaluated or earlier), None)

    @property
    def number(self) -> int:
        """Number of the run in the root, from 1."""
        ids = [run.run_id for run in self.records]
        return ids.index(self.record.run_id) + 1 if self.record.run_id in ids else len(ids) + 1

    @property
    def ran(self) -> set[str]:
        return {component.name for component in self.record.components if component.status != "failed"}

    def missing(self, component: str) -> str:
        """Returns the reason why there are no details of a component."""
        if component in self.ran:
            return NOT_RECORDED
        return f"{component} did not run, or failed."
