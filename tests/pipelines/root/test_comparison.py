import dataclasses
import io

from rich.console import Console

from pipelines.root.comparison import compare_runs, comparison_json, comparison_table
from pipelines.root.records import ComponentRecord, RunRecord

FIRST = RunRecord(
    run_id="r1", name="a", status="pushed", started="2026", log="", version="1",
    config={"name": "a", "trainer": {"train_steps": 50, "seed": None}, "kubeflow": {"image": "x"}},
    data_fingerprint="11" * 32, metrics={"auc": 0.75, "loss": None},
    code_definitions={"m.py:f": "aa" * 32, "m.py:g": "bb" * 32},
    components=(ComponentRecord("Trainer", "finished", 10.04), ComponentRecord("Pusher", "cached", 0.3)),
    columns=({"name": "x", "kind": "number", "use": "as it is"},),
    models=({"model": "linear", "is_chosen": True, "loss": 0.5, "step": 40},),
    data_files=({"path": "/d/1.csv", "bytes": 9, "sha256": "cc" * 32},),
)  # fmt: skip
SECOND = dataclasses.replace(
    FIRST,
    run_id="r2", version="2", metrics={"auc": 0.8125, "loss": None, "recall": 0.5},
    config={"name": "a", "trainer": {"train_steps": 70, "seed": 3, "new": []}, "kubeflow": {}},
    code_definitions={"m.py:f": "ab" * 32}, spans=({"span": 4, "version": None, "num_files": 1},),
    components=(ComponentRecord("Trainer", "finished", 12.0), ComponentRecord("Pusher", "cached", 0.1)),
    columns=({"name": "x", "kind": "category", "use": "one of 3"},),
)  # fmt: skip


def test_what_differs_and_nothing_else_with_the_changes_of_numbers():
    found = [(one.section, one.name, one.before, one.after) for one in compare_runs(FIRST, SECOND)]
    assert found == [
        ("outcome", "version", "1", "2"),
        ("metrics", "auc", 0.75, 0.8125),
        ("metrics", "recall", None, 0.5),
        ("data", "spans", None, "4"),
        ("columns", "x", "number: as it is", "category: one of 3"),
        ("configuration", "trainer.train_steps", 50, 70),
        ("configuration", "trainer.seed", None, 3),
        ("code", "m.py:f", "aa" * 8, "ab" * 8),
        ("code", "m.py:g", "bb" * 8, None),
        ("durations", "Trainer", 10.0, 12.0),
    ]
    assert compare_runs(FIRST, FIRST) == []
    changes = {one.name: one.change for one in compare_runs(FIRST, SECOND)}
    assert (changes["auc"], changes["trainer.train_steps"]) == (0.0625, 20)
    assert (changes["version"], changes["recall"], changes["m.py:f"]) == (None, None, None)


def test_json_and_table():
    given = comparison_json(FIRST, SECOND)
    assert given["runs"] == ["r1", "r2"]
    assert given["differences"][1] == {
        "section": "metrics", "name": "auc", "before": 0.75, "after": 0.8125, "change": 0.0625,
    }  # fmt: skip
    shown = io.StringIO()
    odd = dataclasses.replace(SECOND, metrics={"[bold]auc": 0.5})  # no markup of rich's
    Console(file=shown, width=120).print(comparison_table(FIRST, odd))
    text = shown.getvalue()
    for part in ("[bold]auc", "10.0 s", "12.0 s", "+20", "r1", "r2"):
        assert part in text
