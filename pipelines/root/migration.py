"""Takes over a root of a version of this program that kept its runs in ML Metadata."""

import contextlib
import sqlite3
from pathlib import Path

from pipelines import atomic_files
from pipelines.root import Root

_RUNS_TO_ACCEPT = 3  # the newest, whose data `schema accept` may still take
_OUTPUT = 4  # type of ML Metadata's events
_STATISTICS = """
    SELECT Context.name, Artifact.uri
    FROM Context
    JOIN Association ON Association.context_id = Context.id
    JOIN Event ON Event.execution_id = Association.execution_id
    JOIN EventPath ON EventPath.event_id = Event.id
    JOIN Artifact ON Artifact.id = Event.artifact_id
    WHERE EventPath.step_key = 'statistics' AND Event.type = ?
    ORDER BY Artifact.id
"""


def has_metadata_store(root: Root) -> bool:
    """Returns True if no run has taken over the root yet."""
    return _folder(root).is_dir()


def take_over(root: Root) -> str | None:
    """Keeps the statistics that new data are compared with, and puts ML Metadata's folder aside.

    The caller holds the root's lock. Nothing else of such a root needs a change: its models are found by
    their path.

    Returns a line for the user; None if there was nothing to do.
    """
    if not has_metadata_store(root):
        return None
    folder = _folder(root)
    problem = ""
    try:
        with contextlib.closing(
            sqlite3.connect(f"{(folder / 'metadata.sqlite').as_uri()}?mode=ro", uri=True)
        ) as store:
            made = dict(store.execute(_STATISTICS, (_OUTPUT,)).fetchall())
    except sqlite3.Error as error:  # damaged, or the runs were in MySQL
        made = {}
        problem = (
            f" The statistics of earlier data cannot be read ({error}), so drift is compared again from the "
            "next pushed run on."
        )
    for run_id in _compared_runs(root) & made.keys():
        # The root may have been moved since.
        statistics = root.artifacts.joinpath(*Path(made[run_id]).parts[-3:])
        target = root.kept_artifact(run_id, "statistics")
        if statistics.is_dir() and not target.is_dir():
            atomic_files.copy_folder(statistics, target)
    names = (f"metadata.old{number}" for number in ("", *range(2, 100)))  # old code may run again
    aside = next(path for path in map(folder.with_name, names) if not path.exists())
    folder.rename(aside)
    return (
        f"{root} is from an earlier version of this program. Its versions, records, schema and reports are "
        f"kept, the next model is compared with its live model, and every component runs once more. {aside} "
        f"is no longer read.{problem}"
    )


def _folder(root: Root) -> Path:
    return root.path / "metadata"


def _compared_runs(root: Root) -> set[str]:
    runs = {origin.pipeline_run_id for _, origin in root.versions.origins()}
    runs |= {record.run_id for record in root.records.read_begun()[-_RUNS_TO_ACCEPT:]}
    origin = root.schema.origin()
    return runs | ({origin.run_id} if origin else set())
