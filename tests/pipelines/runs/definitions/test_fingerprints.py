import pytest

from pipelines.data.profile import profile_csv
from pipelines.data.staging import StagedData
from pipelines.root import Root
from pipelines.root.schema.curated import CuratedSchema
from pipelines.runs.definitions import fingerprints
from pipelines.runs.definitions.csv_to_serving import csv_to_serving
from pipelines.runs.definitions.fingerprints import (
    code_fingerprint,
    component_fingerprints,
    file_hashes,
    model_fingerprint,
)
from pipelines.runs.plan.run_plan import RunRequest, plan_run


@pytest.fixture
def plan(data, tmp_path, display):
    return plan_run(RunRequest(root=Root(tmp_path / "root"), data=str(data), label="y"), display)


@pytest.fixture
def pipeline(plan, tmp_path):
    return csv_to_serving(plan, StagedData(tmp_path, "data.csv", ()))


@pytest.fixture
def changed(plan, pipeline):
    """Returns a function that gives the components that run again after a change."""
    start = {"run_id": "run-1", "data_fingerprint": "0" * 64, "code": plan.code}
    before = component_fingerprints(pipeline, **start)

    def components_with_another_fingerprint(**changes):
        now = component_fingerprints(pipeline, **{**start, **changes})
        return {
            component
            for component in pipeline.pipeline.components
            if now[component.id] != before[component.id]
        }

    return components_with_another_fingerprint


def test_the_pusher_alone_runs_in_every_run(changed, pipeline):
    assert changed() == set()
    assert changed(run_id="run-2") == {pipeline.pusher}


def test_other_data_are_read_again(changed, pipeline):
    assert changed(data_fingerprint="1" * 64) == {pipeline.example_gen}


def test_another_schema_is_imported_again(changed, pipeline):
    assert changed(schema="1" * 64) == {pipeline.schema_gen}


def test_other_user_code_is_transformed_and_trained_again(changed, pipeline, plan, tmp_path):
    from dataclasses import replace

    module = tmp_path / "module.py"
    module.write_text("def preprocessing_fn(): pass\n")
    code = replace(plan.code, module_file=str(module))
    assert changed(code=code) == {pipeline.transform, pipeline.trainer}


def test_a_training_of_two_versions_of_the_code_is_shared_with_no_other_run(changed, pipeline):
    assert changed(mixes_code=True) == {pipeline.trainer}
    assert changed(mixes_code=True, run_id="run-2") == {pipeline.trainer, pipeline.pusher}


@pytest.mark.parametrize(
    ("package", "roles"),
    [
        ("components", {"example_gen", "example_validator", "trainer", "evaluator", "serving_check"}),
        ("estimator_core", {"trainer"}),
    ],
)
def test_other_code_of_our_own_runs_what_uses_it(changed, pipeline, monkeypatch, package, roles):
    original = fingerprints.package_fingerprint
    monkeypatch.setattr(
        fingerprints, "package_fingerprint", lambda name: "edited" if name == package else original(name)
    )
    assert changed() == {getattr(pipeline, role) for role in roles}


def test_another_library_runs_everything_again(changed, pipeline, monkeypatch):
    monkeypatch.setattr(fingerprints.metadata, "version", lambda library: "9.9")
    assert changed() == set(pipeline.pipeline.components)


def test_another_tfdv_runs_the_statistics_again_and_makes_no_other_model(
    changed, pipeline, plan, monkeypatch
):
    model = (plan.config, plan.code, plan.profile.digests, None)
    version, before = fingerprints.metadata.version, model_fingerprint(*model)
    monkeypatch.setattr(
        fingerprints.metadata,
        "version",
        lambda name: "9.9" if name == "tensorflow-data-validation" else version(name),
    )
    assert changed() == {pipeline.statistics_gen}
    assert model_fingerprint(*model) == before


def test_a_model_is_the_same_whatever_its_data_file_is_called_and_however_it_is_judged(
    plan, data, tmp_path, display
):
    def fingerprint(file=data, *settings, schema=None):
        request = RunRequest(
            root=Root(tmp_path / "root"), data=str(file), label="y", settings=tuple(settings)
        )
        made = plan_run(request, display)
        return model_fingerprint(made.config, made.code, made.profile.digests, schema)

    first = fingerprint()
    assert len(first) == 64
    renamed = data.rename(tmp_path / "renamed.csv")
    judged = ("evaluator.confidence=0.9", "pusher.keep=2", "name=trips")
    assert fingerprint(renamed) == fingerprint(renamed, *judged) == first
    schema = CuratedSchema(tmp_path / "schema.pbtxt", "abc")
    others = [
        fingerprint(renamed, "trainer.seed=2"),
        fingerprint(renamed, "trainer.train_steps=7"),
        fingerprint(renamed, 'data.categorical=["x"]'),
        fingerprint(renamed, schema=schema),
    ]
    renamed.write_text(renamed.read_text().replace("7.5,1", "7.6,1"))
    others.append(fingerprint(renamed))
    assert len({first, *others}) == 6


def test_a_model_is_the_same_whatever_its_spans_are_called(spans, tmp_path, display):
    def fingerprint(wanted):
        settings = (f"data.spans={wanted}", "name=trips")
        request = RunRequest(root=Root(tmp_path / "root"), data=spans, label="y", settings=settings)
        made = plan_run(request, display)
        return model_fingerprint(made.config, made.code, made.profile.digests, None)

    # All spans hold the same rows.
    assert fingerprint("8") == fingerprint("10") == fingerprint("newest")
    assert fingerprint("8..9") == fingerprint("last 2") != fingerprint("8")


def test_a_model_of_unknown_code_has_no_fingerprint(plan):
    from dataclasses import replace

    unknown = replace(plan.code, trainer_path="no_such_project.trainer_fn")
    assert model_fingerprint(plan.config, unknown, plan.profile.digests, None) == ""


def test_the_code_of_a_module_file_and_of_an_import_path(plan, tmp_path):
    from dataclasses import replace

    generic = code_fingerprint(plan.code)
    module = tmp_path / "module.py"
    module.write_text("A = 1\n")
    users = code_fingerprint(replace(plan.code, module_file=str(module)))
    assert generic
    assert users not in ("", generic)
    elsewhere = replace(plan.code, trainer_path="no_such_project.trainer_fn")
    assert code_fingerprint(elsewhere) == ""


def test_files_with_their_hashes(tmp_path):
    import hashlib

    file = tmp_path / "a.csv"
    file.write_bytes(b"x\n1\n")
    (found,) = file_hashes(profile_csv([file]))
    assert found == {
        "path": str(file), "bytes": 4, "sha256": hashlib.sha256(b"x\n1\n").hexdigest(),
    }  # fmt: skip
    file.write_bytes(b"x\n22\n")
    assert file_hashes(profile_csv([file]))[0]["sha256"] == hashlib.sha256(b"x\n22\n").hexdigest()
