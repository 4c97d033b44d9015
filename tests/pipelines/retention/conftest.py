import json
from datetime import datetime, timedelta, timezone

import pytest
from ml_metadata.proto import metadata_store_pb2

from pipelines.config.load import load_config
from pipelines.config.retention import RetentionConfig
from pipelines.retention import prune
from pipelines.root import Root
from pipelines.root.records import RunRecord

NOW = datetime(2026, 7, 1, tzinfo=timezone.utc)
OUTPUTS = {
    "CsvExampleGen": ("examples",),
    "StatisticsGen": ("statistics",),
    "Trainer": ("model", "model_run"),
}
SIZES = {"examples": 500, "statistics": 20, "model": 300, "model_run": 4_000}


class RootOfRuns:
    """A root with runs that were never made: records, files, and ML Metadata of three components."""

    NOW = NOW
    ALL = frozenset(SIZES)
    OF_A_VERSION = frozenset(("model", "statistics"))

    def __init__(self, path):
        import ml_metadata

        self.path = path
        (path / "metadata").mkdir(parents=True)
        config = metadata_store_pb2.ConnectionConfig()
        config.sqlite.filename_uri = str(Root(path).metadata.sqlite_file)
        config.sqlite.connection_mode = 3  # READWRITE_OPENCREATE
        store = ml_metadata.MetadataStore(config)
        self.kinds = {
            name: store.put_execution_type(metadata_store_pb2.ExecutionType(name=name))
            for name in OUTPUTS
        }
        self.artifact_kinds = {
            key: store.put_artifact_type(metadata_store_pb2.ArtifactType(name=key))
            for keys in OUTPUTS.values()
            for key in keys
        }
        self.context_kind = store.put_context_type(
            metadata_store_pb2.ContextType(name="pipeline_run")
        )
        self.config = load_config(data="d.csv", label="y").model_dump(mode="json")

    @property
    def store(self):
        return Root(self.path).metadata.open()

    def add_run(self, age_days, status="pushed", version=None, cached_from=None, **fields):
        """Adds a run that began this long ago, and returns its id; cached_from: components that it reuses."""
        started = NOW - timedelta(days=age_days)
        run_id = started.strftime("%Y%m%d-%H%M%S")
        if version is not None:
            folder = self.path / "serving" / str(version) / "assets.extra"
            folder.mkdir(parents=True)
            (folder.parent / "saved_model.pb").write_bytes(b"m" * 300)
        log = self.path / "logs" / f"{run_id}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_text("a line\n")
        record = RunRecord(
            run_id=run_id,
            name="d",
            status=status,
            started=started.isoformat(),
            config=self.config,
            data_fingerprint="f",
            log=str(log),
            report=str(self.path / "runs" / f"{run_id}.html"),
            version=None if version is None else str(version),
            **fields,
        )
        Root(self.path).records.write(record)
        (self.path / "runs" / f"{run_id}.html").write_text("<html>")
        Root(self.path).details(run_id).write("training", {"curves": []})
        if "same_as" not in fields:
            model = self._put_executions(run_id, cached_from)
            if version is not None:
                (folder / "push.json").write_text(
                    json.dumps({"pipeline_run_id": run_id, "model": f"../{model}"})
                )
        return run_id

    def _put_executions(self, run_id, cached_from):
        store = self.store
        context = metadata_store_pb2.Context(type_id=self.context_kind, name=run_id)
        (number,) = store.put_contexts([context])
        context.id = number
        data = self.path / "data" / f"data-{run_id}"
        data.mkdir(parents=True)
        (data / "data.csv").write_text("y\n1\n")
        model = ""
        for name, keys in OUTPUTS.items():
            execution = metadata_store_pb2.Execution(type_id=self.kinds[name])
            execution.last_known_state = execution.CACHED if cached_from else execution.COMPLETE
            execution.custom_properties["input_base"].string_value = str(data)
            if name != "CsvExampleGen":
                del execution.custom_properties["input_base"]
            number, _, _ = store.put_execution(execution, [], [context])
            (self.path / "artifacts" / name / ".system" / "executor_execution" / str(number)).mkdir(
                parents=True
            )
            for key in keys:
                event = metadata_store_pb2.Event(execution_id=number, type=4)  # OUTPUT
                event.path.steps.add().key = key
                event.path.steps.add().index = 0
                if cached_from:
                    event.artifact_id = self.artifacts_of(cached_from)[key].id
                else:
                    folder = self.path / "artifacts" / name / key / str(number)
                    folder.mkdir(parents=True)
                    (folder / "file").write_bytes(b"x" * SIZES[key])
                    artifact = metadata_store_pb2.Artifact(
                        type_id=self.artifact_kinds[key], uri=str(folder), state=2
                    )
                    (event.artifact_id,) = store.put_artifacts([artifact])
                    if key == "model":
                        model = f"artifacts/{name}/{key}/{number}"
                store.put_events([event])
        return model

    def artifacts_of(self, run_id):
        """Returns the artifacts of a run by key."""
        store = self.store
        context = store.get_context_by_type_and_name("pipeline_run", run_id)
        executions = [item.id for item in store.get_executions_by_context(context.id)]
        events = store.get_events_by_execution_ids(executions)
        by_id = {
            item.id: item for item in store.get_artifacts_by_id([e.artifact_id for e in events])
        }
        return {event.path.steps[0].key: by_id[event.artifact_id] for event in events}

    def has(self, run_id):
        """Returns the artifacts of a run that the cache may take; their files are checked."""
        found = set()
        for key, artifact in self.artifacts_of(run_id).items():
            if artifact.state == artifact.LIVE:
                file = self.path / artifact.uri / "file"
                assert file.stat().st_size == SIZES[key], f"{key} of {run_id} is not whole"
                found.add(key)
        return found

    def prune(self, dry_run=False, **rules):
        """Prunes it, and returns the removed items."""
        return prune.prune_root(Root(self.path), RetentionConfig(**rules), dry_run, NOW)

    @property
    def records(self):
        return [record.run_id for record in Root(self.path).records.read_all()]


@pytest.fixture
def root(tmp_path):
    return RootOfRuns(tmp_path / "root")
