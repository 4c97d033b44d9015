import hashlib
from dataclasses import replace

import pytest

from pipelines.data.profile import profile_csv
from pipelines.data.staging import StagedData
from pipelines.root.schema.curated import CuratedSchema
from pipelines.runs.definitions import fingerprints
from pipelines.runs.definitions.csv_to_serving import csv_to_serving
from pipelines.runs.definitions.fingerprints import (
    code_fingerprint,
    component_fingerprints,
    file_hashes,
    model_fingerprint,
)


@pytest.fixture
def planned(plan):
    return plan()


@pytest.fixture
def pipeline(planned, tmp_path):
    return csv_to_serving(planned, StagedData(tmp_path, "data.csv", ()))


@pytest.fixture
def changed(planned, pipeline):
    """Returns a function that gives the components that run again after a change."""
    start = {"run_id": "run-1", "data_fingerprint": "0" * 64, "code": planned.code}
    before = component_fingerprints(pipeline, **start)

    def components_with_another_fingerprint(**changes):
        now = component_fingerprints(pipeline, **{**start, **changes})
        return {one for one in pipeline.pipeline.components if now[one.id] != before[one.id]}

    return components_with_another_fingerprint


def fingerprint_of(planned, schema=None, code=None):
    return model_fingerprint(planned.config, code or planned.code, planned.profile.digests, schema)


@pytest.mark.parametrize(
    ("changes", "roles"),
    [
        ({}, ()),
        ({"run_id": "run-2"}, ("pusher",)),
        ({"data_fingerprint": "1" * 64}, ("example_gen",)),
        ({"schema": "1" * 64}, ("schema_gen",)),
        # A training of two versions of the code is shared with no other run.
        ({"mixes_code": True}, ("trainer",)),
        ({"mixes_code": True, "run_id": "run-2"}, ("trainer", "pusher")),
    ],
)
def test_what_runs_again_after_a_change(changed, pipeline, changes, roles):
    assert changed(**changes) == {getattr(pipeline, role) for role in roles}


def test_other_user_code_is_transformed_and_trained_again(changed, pipeline, planned, tmp_path):
    module = tmp_path / "module.py"
    module.write_text("def preprocessing_fn(): pass\n")
    code = replace(planned.code, module_file=str(module))
    assert changed(code=code) == {pipeline.transform, pipeline.trainer}


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
    changed, pipeline, planned, monkeypatch
):
    version, before = fingerprints.metadata.version, fingerprint_of(planned)

    def another(name):
        return "9.9" if name == "tensorflow-data-validation" else version(name)

    monkeypatch.setattr(fingerprints.metadata, "version", another)
    assert changed() == {pipeline.statistics_gen}
    assert fingerprint_of(planned) == before


def test_a_model_is_the_same_whatever_its_data_file_is_called_and_however_it_is_judged(plan, data, tmp_path):
    first = fingerprint_of(plan())
    assert len(first) == 64
    file = data.rename(tmp_path / "renamed.csv")

    def fingerprint(*settings, schema=None):
        return fingerprint_of(plan(*settings, data=str(file)), schema)

    judged = ("evaluator.confidence=0.9", "pusher.keep=2", "name=trips")
    assert fingerprint() == fingerprint(*judged) == first
    others = [
        fingerprint("trainer.seed=2"),
        fingerprint("trainer.train_steps=7"),
        fingerprint('data.categorical=["x"]'),
        fingerprint(schema=CuratedSchema(tmp_path / "schema.pbtxt", "abc")),
    ]
    file.write_text(file.read_text().replace("7.5,1", "7.6,1"))
    others.append(fingerprint())
    assert len({first, *others}) == 6


def test_a_model_is_the_same_whatever_its_spans_are_called(plan, spans):
    def fingerprint(wanted):
        return fingerprint_of(plan(f"data.spans={wanted}", "name=trips", data=spans))

    # All spans hold the same rows.
    assert fingerprint("8") == fingerprint("10") == fingerprint("newest")
    assert fingerprint("8..9") == fingerprint("last 2") != fingerprint("8")


def test_the_code_of_a_module_file_and_of_an_import_path(planned, tmp_path):
    generic = code_fingerprint(planned.code)
    module = tmp_path / "module.py"
    module.write_text("A = 1\n")
    users = code_fingerprint(replace(planned.code, module_file=str(module)))
    assert generic
    assert users not in ("", generic)
    unknown = replace(planned.code, trainer_path="no_such_project.trainer_fn")
    assert code_fingerprint(unknown) == fingerprint_of(planned, code=unknown) == ""


def test_files_with_their_hashes(tmp_path):
    file = tmp_path / "a.csv"
    for content in (b"x\n1\n", b"x\n22\n"):
        file.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        expected = {"path": str(file), "bytes": len(content), "sha256": digest}
        assert file_hashes(profile_csv([file])) == (expected,)
