"""The folder of a pipeline's runs: the paths in it, and the objects that read and write them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.root.details import RunDetails
    from pipelines.root.lock import RootLock
    from pipelines.root.records import PrunedRuns, RunRecords
    from pipelines.root.schema.root_schema import SchemaFolder
    from pipelines.root.versions import Versions


class _Place:
    """Path in the root, as an attribute."""

    def __init__(self, name: str):
        self._name = name

    def __get__(self, root: "Root", owner: type) -> Path:
        return root.path / self._name


@dataclass(frozen=True)
class Root:
    """The folder of a pipeline's runs, which can be passed to `str` and `os` functions like a path."""

    path: Path  # made absolute; the folder need not exist

    runs = _Place("runs")  # records, details and pages
    index = _Place("runs/index.html")  # page about all runs
    openlineage = _Place("runs/openlineage.jsonl")  # events of the runs
    run_details = _Place("runs/details")
    logs = _Place("logs")
    serving = _Place("serving")  # versions, of which TensorFlow Serving serves the highest
    withdrawn = _Place("withdrawn")  # versions that a rollback took out of service
    artifacts = _Place("artifacts")  # of the steps
    data = _Place("data")  # copies of the user's files that CsvExampleGen cannot read as they are
    requests = _Place("requests")  # sampled rows of requests to the server
    schedules = _Place("schedules")
    beam = _Place("beam")  # what Beam's engines write
    kept = _Place("kept")  # models and statistics of runs of earlier versions of this program
    kubeflow = _Place("kubeflow")  # what the steps of a run on Kubeflow leave for each other
    local_kubeflow = _Place("kubeflow_local")  # files of `run --runner kubeflow --local`

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", self.path.absolute())

    def __str__(self) -> str:
        return str(self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    # Imported where used, because the command line creates a Root before it loads anything heavy.

    @property
    def records(self) -> "RunRecords":
        from pipelines.root.records import RunRecords

        return RunRecords(self.runs)

    @property
    def pruned(self) -> "PrunedRuns":
        from pipelines.root.records import PrunedRuns

        return PrunedRuns(self.runs)

    @property
    def versions(self) -> "Versions":
        """Versions of the model that were pushed."""
        from pipelines.root.versions import Versions

        return Versions(self.serving, self.withdrawn)

    @property
    def lock(self) -> "RootLock":
        """Lock that allows one run at a time."""
        from pipelines.root.lock import RootLock

        return RootLock(self.path)

    @property
    def schema(self) -> "SchemaFolder":
        """Schema that new data are validated against."""
        from pipelines.root.schema.root_schema import SchemaFolder

        return SchemaFolder(self.path, self.versions)

    def details(self, run_id: str) -> "RunDetails":
        from pipelines.root.details import RunDetails

        return RunDetails(self.run_details / run_id)

    def kept_artifact(self, run_id: str, name: str) -> Path:
        """Returns the folder for an artifact of a run: `model` or `statistics`."""
        return self.kept / run_id / name

    def report(self, run_id: str) -> Path:
        return self.runs / f"{run_id}.html"

    def log(self, run_id: str) -> Path:
        return self.logs / f"{run_id}.log"
