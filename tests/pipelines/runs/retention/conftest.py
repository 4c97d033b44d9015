import json
from dataclasses import asdict
from datetime import datetime, timedelta, timezone

import pytest

from pipelines.config.load import load_config
from pipelines.config.retention import RetentionConfig
from pipelines.root import Root
from pipelines.root.records import ComponentRecord, RunRecord
from pipelines.runs.retention import prune
from pipelines.steps.step_folders import StepFolders
from pipelines.steps.step_plan import OutputRef, StepPlan

NOW = datetime(2026, 7, 1, tzinfo=timezone.utc)


OUTPUTS = {
    "CsvExampleGen": ("examples",), "StatisticsGen": ("statistics",), "Trainer": ("model", "model_run"),
    "Evaluator": ("evaluation", "blessing"),
}  # fmt: skip
INPUTS = {
    "CsvExampleGen": (), "StatisticsGen": ("examples",), "Trainer": ("examples",),
    "Evaluator": ("examples", "model"),
}  # fmt: skip

SIZES = {"examples": 500, "statistics": 20, "model": 300, "model_run": 4_000, "evaluation": 60, "blessing": 5}


class RootOfRuns:
    """A root with runs that never happened: records, files, and the steps of four components."""

    NOW = NOW
    ALL = frozenset(SIZES)
    OF_A_VERSION = frozenset(("model", "statistics"))  # the rest of these steps goes

    def __init__(self, path):
        self.path = path
        self.config = load_config(data="d.csv", label="y").model_dump(mode="json")
        self._last_number = 0

    def add_run(self, age_days, status="pushed", version=None, reuses=None, baseline=None, **fields):
        """Adds a run that began this long ago, and returns its id.

        `reuses`: run whose steps it reused; `baseline`: run whose model its own was compared with.
        """
        started = NOW - timedelta(days=age_days)
        run_id = started.strftime("%Y%m%d-%H%M%S")
        log = self.path / "logs" / f"{run_id}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("a line\n")
        components = ()
        if reuses is not None:
            components = Root(self.path).records.read(reuses).components
        elif "same_as" not in fields:
            components = self._make_steps(run_id, status, baseline)
        report = self.path / "runs" / f"{run_id}.html"
        record = RunRecord(
            run_id=run_id, name="d", status=status, started=started.isoformat(), config=self.config,
            data_fingerprint="f", log=str(log), report=str(report), components=components,
            version=None if version is None else str(version), **fields,
        )  # fmt: skip
        Root(self.path).records.write(record)
        report.write_text("<html>")
        Root(self.path).details(run_id).write("training", {"curves": []})
        if version is not None:
            self.add_version(version, run_id, f"artifacts/Trainer/{record.step('Trainer')}/model")
        return run_id

    def add_version(self, version, run_id, model):
        """Adds a served version; `model` is relative to the root."""
        extra = self.path / "serving" / str(version) / "assets.extra"
        extra.mkdir(parents=True)
        (extra.parent / "saved_model.pb").write_bytes(b"m" * 300)
        (extra / "push.json").write_text(json.dumps({"pipeline_run_id": run_id, "model": f"../{model}"}))

    def _make_steps(self, run_id, status, baseline):
        data = self.path / "data" / f"data-{run_id}"
        data.mkdir(parents=True)
        (data / "data.csv").write_text("y\n1\n")
        outputs = {}
        records = []
        for component, keys in OUTPUTS.items():
            inputs = {key: (outputs[key],) for key in INPUTS[component]}
            if baseline and component == "Evaluator":
                step = Root(self.path).records.read(baseline).step("Trainer")
                inputs["baseline_model"] = (OutputRef("Trainer", step, "model"),)
            base = {"fieldValue": {"stringValue": f"{{{{ROOT}}}}/data/{data.name}"}}
            plan = StepPlan(
                component,
                executor={"type": "PythonClassExecutableSpec"},
                parameters={"parameters": {"input_base": base}},
                inputs=inputs,
                outputs={key: f"types.{'ModelBlessing' * (key == 'blessing')}" for key in keys},
                fingerprints={"data": run_id},
            )
            outputs |= {key: OutputRef(component, plan.name, key) for key in keys}
            self._finish(plan, run_id, is_blessed=status == "pushed")
            records.append(ComponentRecord(component, "finished", 1.0, step=plan.name))
        return tuple(records)

    def _finish(self, plan, run_id, is_blessed):
        """Writes what `StepFolders.finish` does, without TFX."""
        self._last_number += 1
        folder = self.path / "artifacts" / plan.component / plan.name
        for key in plan.outputs:
            (folder / key).mkdir(parents=True)
            (folder / key / "file").write_bytes(b"x" * SIZES[key])
        properties = {"properties": {}, "customProperties": {}}
        outputs = {key: {**properties, "path": key} for key in plan.outputs}
        if "blessing" in outputs:
            value = {"intValue": str(int(is_blessed))}
            outputs["blessing"] = {**properties, "path": "blessing", "customProperties": {"blessed": value}}
        fields = {
            "plan": asdict(plan), "outputs": outputs, "number": self._last_number, "run_id": run_id,
            "elapsed_secs": 1.0,
        }  # fmt: skip
        (folder / "step.json").write_text(json.dumps(fields))

    def folder(self, run_id, key):
        """Returns the folder of an output of a run."""
        (component,) = (name for name, keys in OUTPUTS.items() if key in keys)
        for step in StepFolders(self.path / "artifacts").all_finished(component):
            if step.plan["fingerprints"]["data"] == run_id:
                return step.folder / key
        return self.path / "artifacts" / component / "gone" / key

    def has(self, run_id):
        """Returns the outputs that the run has made, of finished steps; their files are checked."""
        outputs = set()
        for key, size in SIZES.items():
            folder = self.folder(run_id, key)
            if folder.exists():
                assert (folder / "file").stat().st_size == size, f"{key} of {run_id} is torn"
                outputs.add(key)
        return outputs

    def prune(self, dry_run=False, **rules):
        """Prunes it, and returns the removals."""
        return prune.prune_root(Root(self.path), RetentionConfig(**rules), dry_run, NOW)

    @property
    def records(self):
        return [record.run_id for record in Root(self.path).records.read_all()]


@pytest.fixture
def root(tmp_path):
    return RootOfRuns(tmp_path / "root")
