import pytest

from components.pusher.provenance import Provenance
from pipelines.kubeflow.steps.served_baseline import forget_unserved, keep, kept_metadata
from pipelines.root import Root
from pipelines.root.baseline import find_baseline_statistics
from pipelines.root.records import RunRecord
from tests.pushed_versions import write_version


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


def put(root, version, run_id, model=None, folder="serving"):
    """Puts a version there, pushed by a run."""
    place = root / folder / str(version)
    place.mkdir(parents=True)
    model = model or Root(root).kept_artifact(run_id, "model")
    write_version(Provenance(run_id, str(model)), str(place), str(root / folder))


def keep_all(root, tmp_path, run_id):
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True, exist_ok=True)
    (source / "deep" / "file").write_text(run_id)
    for name in ("model", "statistics"):
        keep(Root(root), run_id, name, source, {"of": name})


def test_what_was_kept_is_found_with_its_metadata(root, tmp_path):
    keep_all(root, tmp_path, "run-a")
    put(root, 5, "run-a")
    statistics = find_baseline_statistics(Root(root), "run-new")
    assert (statistics / "deep" / "file").read_text() == "run-a"
    assert kept_metadata(statistics) == {"of": "statistics"}
    assert kept_metadata(tmp_path / "made" / "here") == {"tfx_artifact": "{}"}


def test_keeping_twice_keeps_the_first(root, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("first")
    keep(Root(root), "run-a", "model", source, {})
    (source / "file").write_text("second")
    assert (keep(Root(root), "run-a", "model", source, {}) / "file").read_text() == "first"


def test_what_cannot_be_served_any_more_is_forgotten(root, tmp_path):
    names = {
        "20260101-000000": "running",
        **{f"2026010{day}-000000": "failed" for day in range(2, 7)},
    }
    for run_id, status in names.items():
        Root(root).records.write(
            RunRecord(run_id, "taxi", status, "2026-01-02T03:04:05+00:00", {}, "", "")
        )
    for run_id in (*names, "serving", "withdrawn"):
        keep_all(root, tmp_path, run_id)
    put(root, 5, "serving")
    put(root, 6, "withdrawn", folder="withdrawn")
    assert forget_unserved(Root(root)) == ["20260102-000000", "20260103-000000"]
    kept = sorted(folder.name for folder in (root / "kept").iterdir())
    assert kept == [
        "20260101-000000",  # it goes on
        *(f"2026010{day}-000000" for day in (4, 5, 6)),  # `schema accept` may take them
        "serving",
        "withdrawn",
    ]


def test_what_is_no_folder_of_a_run_stays(root):
    (root / "kept").mkdir(parents=True)
    (root / "kept" / "model.metadata.json").write_text("{}")
    assert forget_unserved(Root(root)) == []
