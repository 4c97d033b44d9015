import json
from dataclasses import asdict, replace

import pytest

from components.evaluator.gate.default_checks import DefaultChecks, ValueThen
from components.evaluator.gate.slice_doubts import ALL, Slice, SliceExcess
from components.pusher.provenance import Provenance
from pipelines.root import Root
from pipelines.runs.definitions import gate_settings as settings_of
from pipelines.runs.definitions.gate_settings import gate_settings, same_values
from pipelines.runs.plan.run_plan import RunRequest, plan_run
from tests.pushed_versions import write_version

EXCESSES = (SliceExcess(ALL, 900, -0.4, 0.01), SliceExcess(Slice("n2", low=3.0), 90, -0.2, 0.05))


@pytest.fixture
def table(tmp_path):
    """A CSV with four numbers, a category, a column that is nearly the label, and the label."""
    rows = ["n1,n2,n3,n4,kind,told,y"]
    for i in range(3_000):
        y = (i * 7919) % 13 < 6
        told = (y if i % 400 else not y) * 500 + i % 450
        rows.append(f"{i * 0.5},{i * 0.25},{i * 1.5},{i * 2.5},{'abc'[i % 3]},{told},{int(y)}")
    file = tmp_path / "table.csv"
    file.write_text("\n".join(rows) + "\n")
    return file


def plan(table, tmp_path, display, *settings):
    request = RunRequest(root=Root(tmp_path / "root"), data=str(table), label="y", settings=settings)
    return plan_run(request, display)


def serve(tmp_path, killed, **fields):
    root = Root(tmp_path / "root")
    checks = ({"metric": "auc", "against": "trivial", "value": 0.9, "reference": 0.5},)
    config = {**killed.config, "name": "table"}
    root.records.write(killed.changed(status="pushed", version="7", checks=checks, config=config, **fields))
    base = root.serving
    write_version(Provenance(killed.run_id, "m"), str(base / "7"), str(base))
    return root.details(killed.run_id)


def test_a_first_model_has_nothing_to_be_compared_with(table, tmp_path, display):
    found = gate_settings(plan(table, tmp_path, display))
    assert (found.baseline_then, found.slices_then, found.doubts) == (None, (), "hold")
    assert found.categories == ("kind",)
    assert {"n1", "n2", "n3", "n4"} <= set(found.numbers)
    found = gate_settings(plan(table, tmp_path, display, "gate.doubts=warn"))
    assert found.doubts == "warn"
    left_out = plan(table, tmp_path, display)
    without = replace(left_out, code=replace(left_out.code, default_checks=None))
    assert gate_settings(without) is None


def test_numbers_that_were_sliced_or_are_important_come_first(table, tmp_path, display, killed, monkeypatch):
    monkeypatch.setattr(settings_of, "MAX_NUMBERS", 3)
    serve(tmp_path, killed).write(
        "evaluation",
        {
            "excesses": [asdict(one) for one in EXCESSES],
            "importance": {
                "features": [{"feature": "kind"}, {"feature": "n4"}, {"feature": "gone"}],
                "loss": 0.1,
            },
        },
    )
    found = gate_settings(plan(table, tmp_path, display))
    assert found.slices_then == EXCESSES
    assert found.numbers == ("n2", "n4", "n1")
    assert found.baseline_then == (ValueThen("auc", 0.9, 0.5),)
    assert json.loads(found.to_json())["numbers"] == ["n2", "n4", "n1"]


def test_a_column_that_tells_the_label_is_doubted_until_it_is_named_or_serves(
    table, tmp_path, display, killed
):
    (doubt,) = gate_settings(plan(table, tmp_path, display)).known_doubts
    assert doubt.startswith("column 'told' alone predicts 'y' correctly in 99.")
    assert doubt.endswith('[columns] told = "ignore"; if it is, accept it: [columns] told = "number"')
    named = plan(table, tmp_path, display, "columns.told=number")
    assert gate_settings(named).known_doubts == ()
    serve(tmp_path, killed, notes=("leak? column 'told' alone predicts 'y' correctly in 98 % of 90 rows",))
    assert gate_settings(plan(table, tmp_path, display)).known_doubts == ()


def test_a_model_may_live_on_columns_that_are_known(table, tmp_path, display, killed):
    lines = table.read_text().splitlines()
    dates = [
        "at,left_at",
        *(f"2024-01-{i % 28 + 1:02d},{'2024-02-01' if i % 3 else ''}" for i in range(3_000)),
    ]
    table.write_text("".join(f"{a},{b}\n" for a, b in zip(lines, dates, strict=True)))
    found = gate_settings(plan(table, tmp_path, display, "columns.n1=number"))
    assert found.accepted == ("at", "n1", "told")  # a date without gaps, named, doubted already
    features = [
        {"feature": name, "growth": growth, "low": growth}
        for name, growth in (("n3", 3.0), ("n1", 0.1), ("n2", 0.0), ("kind", 0.0), ("y", 0.0))
    ]
    serve(tmp_path, killed).write(
        "evaluation", {"importance": {"features": features, "loss": 0.1, "trivial_loss": 0.5}}
    )
    found = gate_settings(plan(table, tmp_path, display))
    assert found.accepted == ("at", "n3", "told")  # the served model lives on n3
    assert DefaultChecks.from_json(found.to_json()) == found


def test_slices_take_as_one_what_the_model_takes_as_one(tmp_path, display):
    woods, yes = ["oak", "n/a", "-", "ash"], ["Yes", "no", "NO", "yes"]
    rows = (f"{i * 0.5},{woods[i % 4]},{yes[i // 3 % 4]},{i % 2}" for i in range(200))
    file = tmp_path / "woods.csv"
    file.write_text("\n".join(["n,wood,dry,y", *rows]) + "\n")
    found = same_values(plan(file, tmp_path, display), ["n", "wood", "dry", "other"])
    assert list(found) == ["wood", "dry"]
    assert {found["wood"][word] for word in ("", "n/a", "N/A", "-")} == {"[missing]"}
    assert "oak" not in found["wood"]
    assert (found["dry"]["Yes"], found["dry"]["NO"], found["dry"]["?"]) == ("yes", "no", "[missing]")
