"""Selection of the runs whose records and artifacts stay, by the rules and by what still needs them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from components.pusher.provenance import Provenance
from pipelines.atomic_files import with_real_parent
from pipelines.config.retention import RetentionConfig
from pipelines.root import Root
from pipelines.root.records import UNFINISHED, RunRecord


@dataclass(frozen=True)
class KeptRuns:
    """Ids of the runs to keep."""

    records: frozenset[str]  # Runs that keep their record, report and log
    # Runs that keep all their artifacts, except for the training directory.
    artifacts: frozenset[str]
    checkpoints: frozenset[str]  # Runs that also keep the training directory
    # Origin of each version that serves or can be served again; its model and the statistics of its
    # data stay.
    versions: tuple[Provenance, ...]

    @cached_property
    def models(self) -> frozenset[Path]:
        """Folders of the models of `versions`."""
        return frozenset(with_real_parent(Path(version.model_uri)) for version in self.versions)


def kept_runs(
    root: Root, records: Sequence[RunRecord], rules: RetentionConfig, now: datetime
) -> KeptRuns:
    begun = [record for record in records if record.attempt]  # the others made nothing
    by_id = {record.run_id: record for record in records}
    versions = tuple(origin for _, origin in root.versions.origins())
    needed = _with_predecessors(by_id, _needed(root, begun))
    of_versions = {version.pipeline_run_id for version in versions} & set(by_id)
    unreadable = root.records.ids() - set(by_id)
    needed |= unreadable  # their dependencies are unknown
    by_rule = set(_newest(records, rules, now))
    with_record = _with_predecessors(by_id, by_rule | of_versions) | needed
    artifacts = needed | _made_by_newest(begun, rules.artifacts, with_record)
    checkpoints = needed | _made_by_newest(begun, rules.checkpoints, artifacts)
    return KeptRuns(
        frozenset(with_record),
        frozenset(artifacts | _with_predecessors(by_id, artifacts)),
        frozenset(checkpoints | _with_predecessors(by_id, checkpoints)),
        versions,
    )


def _newest(records: Sequence[RunRecord], rules: RetentionConfig, now: datetime) -> Iterator[str]:
    num_newer, start = 0, now
    for record in reversed(records):
        by_number = rules.runs is not None and num_newer < rules.runs
        recorded_start = datetime.fromisoformat(record.started)
        if recorded_start <= now:  # otherwise a clock was ahead: it began before the next run did
            start = recorded_start
        by_time = rules.days is not None and start >= now - timedelta(days=rules.days)
        if by_number or by_time or (rules.runs is None and rules.days is None):
            yield record.run_id
        num_newer += record.attempt > 0  # runs that did not even begin displace no others


def _made_by_newest(
    records: Sequence[RunRecord], number: int | None, kept: Iterable[str]
) -> set[str]:
    """Returns the newest runs that are kept and made artifacts; a run that found all unchanged made none."""
    made = [record.run_id for record in records if not record.same_as]
    newest = made if number is None else made[-number:]
    return set(newest) & set(kept)


def _needed(root: Root, records: Sequence[RunRecord]) -> set[str]:
    """Returns the runs that a later run, or one in progress, may need."""
    needed = {record.run_id for record in records[-1:]}
    # Since the root is locked, no other run of this machine is in progress.
    needed |= {run.run_id for run in records if run.status == "running" and run.kubeflow_run}
    needed |= {record.run_id for record in records if record.awaits_decision}
    complete = [record for record in records if record.status not in UNFINISHED]
    needed |= {
        record.run_id for record in complete[-1:]
    }  # the next run takes cached artifacts from it
    versions = [record for record in records if record.version]
    newest = max(versions, key=lambda record: int(str(record.version)), default=None)
    needed |= {newest.run_id} if newest else set()  # so that no version number is used twice
    origin = root.schema.origin()
    needed |= {origin.run_id} if origin and origin.accepted_for is not None else set()
    serving = root.versions.origin()
    needed |= {serving.pipeline_run_id} if serving else set()
    return needed & {record.run_id for record in records}


def _with_predecessors(records: dict[str, RunRecord], run_ids: Iterable[str]) -> set[str]:
    """Returns runs, with the runs that they continued or took all artifacts from."""
    waiting, run_ids_found = list(run_ids), set()
    while waiting:
        run_id = waiting.pop()
        if run_id in run_ids_found or run_id not in records:
            continue
        run_ids_found.add(run_id)
        waiting += [
            earlier for earlier in (records[run_id].mended, records[run_id].same_as) if earlier
        ]
    return run_ids_found
