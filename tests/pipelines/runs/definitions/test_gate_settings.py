import json
from dataclasses import asdict, replace

import pytest

from components.evaluator.gate.default_checks import DefaultChecks, ValueThen
from components.evaluator.gate.slice_doubts import ALL, Slice, SliceExcess
from pipelines.config.evaluator import ThresholdConfig
from pipelines.errors import BadInputError
from pipelines.runs.definitions import gate_settings as settings_of
from pipelines.runs.definitions.evaluation import resolve_slices, same_values
from pipelines.runs.definitions.gate_settings import gate_settings
from tests.pushed_versions import serve_version

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


@pytest.fixture
def settings(plan, table):
    """Returns a function that gives the gate's settings of a run of the table."""
    return lambda *settings: gate_settings(plan(*settings, data=str(table)))


@pytest.fixture
def serve(root, killed):
    """Returns a function that has a run of the table push version 7, and returns the run's details."""

    def push(**fields):
        checks = ({"metric": "auc", "against": "trivial", "value": 0.9, "reference": 0.5},)
        config = {**killed.config, "name": "table"}
        fields = {"status": "pushed", "version": "7", "checks": checks, "config": config, **fields}
        root.records.write(killed.changed(**fields))
        serve_version(root.serving, 7, killed.run_id)
        return root.details(killed.run_id)

    return push


def test_a_first_model_has_nothing_to_be_compared_with(settings, plan, table):
    first = settings()
    assert (first.baseline_then, first.slices_then, first.doubts) == (None, (), "hold")
    assert first.categories == ("kind",)
    assert {"n1", "n2", "n3", "n4"} <= set(first.numbers)
    assert settings("gate.doubts=warn").doubts == "warn"
    planned = plan(data=str(table))
    assert gate_settings(replace(planned, code=replace(planned.code, default_checks=None))) is None


def test_numbers_that_were_sliced_or_are_important_come_first(settings, serve, monkeypatch):
    monkeypatch.setattr(settings_of, "MAX_NUMBERS", 3)
    features = [{"feature": "kind"}, {"feature": "n4"}, {"feature": "gone"}]
    importance = {"features": features, "loss": 0.1}
    excesses = [asdict(one) for one in EXCESSES]
    serve().write("evaluation", {"excesses": excesses, "importance": importance})
    later = settings()
    assert later.slices_then == EXCESSES
    assert later.numbers == ("n2", "n4", "n1")
    assert later.baseline_then == (ValueThen("auc", 0.9, 0.5),)
    assert json.loads(later.to_json())["numbers"] == ["n2", "n4", "n1"]
    # Metrics of rows with other weights are not comparable; what is important stays so.
    weighted = settings("data.weight=n3")
    assert (weighted.baseline_then, weighted.slices_then, weighted.numbers[0]) == (None, (), "n4")


def test_a_column_that_tells_the_label_is_doubted_until_it_is_named_or_serves(settings, serve):
    (doubt,) = settings().known_doubts
    assert doubt.startswith("column 'told' alone predicts 'y' correctly in 99.")
    assert doubt.endswith('[columns] told = "ignore"; if it is, accept it: [columns] told = "number"')
    assert settings("columns.told=number").known_doubts == ()
    serve(notes=("leak? column 'told' alone predicts 'y' correctly in 98 % of 90 rows",))
    assert settings().known_doubts == ()


def test_a_changed_positive_class_is_a_finding(plan, serve, table):
    serve().write("evaluation", {"plots": {"classes": ["0", "1"]}})
    findings = [plan(*settings, data=str(table)).findings for settings in ((), ["data.positive=0"])]
    assert [sum("the positive class is" in finding for finding in of_plan) for of_plan in findings] == [0, 1]
    assert 'set data.positive = "1"' in " ".join(findings[1])
    quoted = table.parent / "quoted.csv"
    quoted.write_text(table.read_text().replace(",1\n", ',"""a"""\n'))
    serve().write("evaluation", {"plots": {"classes": ["0", '"a"']}})
    (finding,) = plan("data.positive=0", data=str(quoted)).findings[-1:]
    assert finding.endswith('set data.positive = "\\"a\\""')
    serve().write("evaluation", {"plots": {"classes": ["no", "yes"]}})  # other names: not the same label
    assert plan("data.positive=0", data=str(table)).findings == findings[0]


def test_a_model_may_live_on_columns_that_are_known(settings, serve, table):
    lines = table.read_text().splitlines()
    dates = (f"2024-01-{i % 28 + 1:02d},{'2024-02-01' if i % 3 else ''}" for i in range(3_000))
    pairs = zip(lines, ["at,left_at", *dates], strict=True)
    table.write_text("".join(f"{a},{b}\n" for a, b in pairs))
    found = settings("columns.n1=number")
    assert found.accepted == ("at", "n1", "told")  # a date without gaps, named, doubted already
    features = [
        {"feature": name, "growth": growth, "low": growth}
        for name, growth in (("n3", 3.0), ("n1", 0.1), ("n2", 0.0), ("kind", 0.0), ("y", 0.0))
    ]
    importance = {"features": features, "loss": 0.1, "trivial_loss": 0.5}
    serve().write("evaluation", {"importance": importance})
    found = settings()
    assert found.accepted == ("at", "n3", "told")  # the served model lives on n3
    assert DefaultChecks.from_json(found.to_json()) == found


def test_slices_take_as_one_what_the_model_takes_as_one(plan, tmp_path):
    woods, yes = ["oak", "n/a", "-", "ash"], ["Yes", "no", "NO", "yes"]
    rows = (f"{i * 0.5},{woods[i % 4]},{yes[i // 3 % 4]},{i % 2}" for i in range(200))
    file = tmp_path / "woods.csv"
    file.write_text("\n".join(["n,wood,dry,y", *rows]) + "\n")
    planned = plan(data=str(file))
    found = same_values(planned.code.plan, planned.profile, ["n", "wood", "dry", "other"])
    assert list(found) == ["wood", "dry"]
    assert {found["wood"][word] for word in ("", "n/a", "N/A", "-")} == {"[missing]"}
    assert "oak" not in found["wood"]
    assert (found["dry"]["Yes"], found["dry"]["NO"], found["dry"]["?"]) == ("yes", "no", "[missing]")

    def resolve(**values):
        bound = ThresholdConfig(metric="auc", lower=0.6, slice=values)
        return resolve_slices((bound,), planned.code.plan, planned.profile)[0].slice_

    assert resolve(wood="N/A", dry="Yes", y=1) == {"wood": "[missing]", "dry": "yes", "y": "1"}
    for values, message in (
        (
            {"wood": "oka"},
            r"slice = \{wood = 'oka'\}: no row .* this value\. Did you mean 'oak'\? Values: oak, ",
        ),
        ({"dry": "?"}, r"dry = '\?'.* Values: "),
        ({"n": "0.5"}, r"n = '0\.5'\}: the column has fractions"),
    ):
        with pytest.raises(BadInputError, match=message):
            resolve(**values)
