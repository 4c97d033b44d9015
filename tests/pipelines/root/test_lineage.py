import dataclasses
import shutil

import pytest

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.lineage import find_lineage, lineage_lines, lineage_parameters, versions_of_spans
from pipelines.root.records import RunRecord
from tests.pushed_versions import add_model

FIRST = RunRecord(
    run_id="20260101-000000", name="a", status="pushed", started="2026-01-01T00:00:00+00:00",
    finished="2026-01-01T00:01:00+00:00", log="/l", version="1700",
    config={"name": "a", "data": {"path": "/d/{SPAN}.csv", "label": "y"}, "module": {"path": "my.taxi"},
            "trainer": {"train_steps": 50, "seed": None, "custom_config": {}}},
    data_fingerprint="11" * 32, code_fingerprint="22" * 32, metrics={"auc": 0.75},
    spans=({"span": 3, "version": None, "num_files": 1},),
    data_files=({"path": "/d/3.csv", "bytes": 1234, "sha256": "33" * 32},),
    environment={"git commit": "abc"},
)  # fmt: skip
SECOND = dataclasses.replace(
    FIRST, run_id="20260102-000000", version="1800", baseline_version="1700", mended=None,
    spans=({"span": 3, "version": None, "num_files": 1}, {"span": 4, "version": None, "num_files": 1}),
)  # fmt: skip
THIRD = dataclasses.replace(
    FIRST, run_id="20260103-000000", version=None, status="not_blessed", baseline_version="1800",
    spans=({"span": 4, "version": None, "num_files": 1},), data_files=(),
)  # fmt: skip


@pytest.fixture
def root(tmp_path):
    for record in (FIRST, SECOND, THIRD):
        Root(tmp_path).records.write(record)
    add_model(tmp_path / "serving" / "1800")
    add_model(tmp_path / "serving" / "1700")
    return tmp_path


def test_backward_from_what_serves_by_version_by_run_and_forward_from_a_span(root):
    (found,) = find_lineage(Root(root))
    assert (found["run_id"], found["version"], found["version_state"]) == (
        SECOND.run_id, "1800", "serving",
    )  # fmt: skip
    assert found["data"]["files"] == list(FIRST.data_files)
    assert found["baseline_run"] == FIRST.run_id
    assert found["compared_by"] == [THIRD.run_id]
    assert found["code"]["module"] == "my.taxi"
    assert found["parameters"] == {"module.path": "my.taxi", "trainer.train_steps": 50}
    assert find_lineage(Root(root), "1700") == find_lineage(Root(root), FIRST.run_id)
    found = find_lineage(Root(root), span="4")
    assert [(one["run_id"], one["version"]) for one in found] == [
        (SECOND.run_id, "1800"), (THIRD.run_id, None),
    ]  # fmt: skip
    assert [one["run_id"] for one in find_lineage(Root(root), span="3")] == [FIRST.run_id, SECOND.run_id]


def test_runs_whose_records_were_removed_are_told(root):
    Root(root).pruned.add([FIRST])
    (root / "runs" / f"{FIRST.run_id}.json").unlink()
    shutil.rmtree(root / "serving" / "1700")
    found = find_lineage(Root(root), span="3")
    assert [(one["run_id"], one["version"], one["version_state"], one["is_pruned"]) for one in found] == [
        (FIRST.run_id, "1700", "removed", True), (SECOND.run_id, "1800", "serving", False),
    ]  # fmt: skip
    assert find_lineage(Root(root), "1700") == find_lineage(Root(root), FIRST.run_id) == found[:1]
    assert "\n".join(lineage_lines(found[0])) == (
        "version 1700 (removed)\n"
        f"  run        {FIRST.run_id} of 'a': pushed, {FIRST.started} to {FIRST.finished}\n"
        "  spans      3\n"
        "  record     removed by the retention rules; nothing else is known"
    )
    (three, four) = versions_of_spans(Root(root), SECOND.spans, [SECOND, THIRD])
    assert [(run["run_id"], run["version_state"]) for run in three["runs"]] == [
        (FIRST.run_id, "removed"), (SECOND.run_id, "serving"),
    ]  # fmt: skip
    assert [(run["status"], run["version"]) for run in four["runs"]] == [
        ("pushed", "1800"), ("not_blessed", None),
    ]  # fmt: skip


def test_what_is_not_there_is_named_with_what_is(root, tmp_path):
    with pytest.raises(BadInputError, match=r"No recorded run of .* has read the span 7. Spans: 3, 4"):
        find_lineage(Root(root), span="7")
    with pytest.raises(BadInputError, match=r"'9' .* Versions: 1700, 1800; the newest runs: 2026"):
        find_lineage(Root(root), "9")
    with pytest.raises(BadInputError, match="No version is live"):
        find_lineage(Root(tmp_path / "empty"))


def test_the_lineage_as_text_names_data_code_and_settings(root):
    text = "\n".join(lineage_lines(find_lineage(Root(root))[0]))
    for part in (
        "version 1800 (serving)",
        "spans      3..4",
        f"/d/3.csv (1,234 bytes, sha256 {'33' * 32})",
        "commit     abc",
        "settings   module.path = my.taxi, trainer.train_steps = 50",
        f"version 1700 ({FIRST.run_id})",
        f"baseline   of the runs {THIRD.run_id}",
    ):
        assert part in text
    old = "\n".join(lineage_lines(find_lineage(Root(root), THIRD.run_id)[0]))
    assert "the files were not recorded" in old
    assert "no version was pushed" in old


def test_parameters_leave_out_what_is_not_set():
    config = {"data": {"path": "x"}, "pusher": {"keep": 5}, "evaluator": {"metrics": None}}
    config["kubeflow"] = {"image": "registry/image:1"}
    assert lineage_parameters(dataclasses.replace(FIRST, config=config)) == {"pusher.keep": 5}


def test_runs_of_a_span_are_in_the_order_of_their_numbers(root):
    ahead = dataclasses.replace(FIRST, run_id="20270101-000000", number=1)
    after = dataclasses.replace(FIRST, run_id="20260101-000001", number=2)
    Root(root).records.write(after)
    Root(root).pruned.add([ahead])
    expected = [FIRST.run_id, SECOND.run_id, ahead.run_id, after.run_id]
    assert [one["run_id"] for one in find_lineage(Root(root), span="3")] == expected
    (of_span,) = versions_of_spans(Root(root), [{"span": 3}], Root(root).records.read_all())
    assert [one["run_id"] for one in of_span["runs"]] == expected
