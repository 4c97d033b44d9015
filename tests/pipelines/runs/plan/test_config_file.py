import pytest
import tomllib

from pipelines.config.load import load_config
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.runs.plan.config_file import render_plan_file
from pipelines.runs.plan.data_plan import plan_data, read_data

NUM = 300


@pytest.fixture
def csv(tmp_path):
    """A CSV with a column of each kind, one of them the label in other words."""
    columns = {
        "price": [f'"${number},000.50"' if number % 4 else "" for number in range(NUM)],
        "share": [f'"0,{number % 90 + 10}"' for number in range(NUM)],
        "ordered": [f"{number % 28 + 1}.{number % 12 + 1}.2014 1{number % 9}:00" for number in range(NUM)],
        "created_at": [1_400_000_000 + 7_001 * number for number in range(NUM)],
        "hour": [number % 4 for number in range(NUM)],
        "vip": ["Yes", "no", "NO"] * (NUM // 3),
        "flag": ["true", "false"] * (NUM // 2),
        "zip": [f"{number % 7:05d}" for number in range(NUM)],
        "customer_id": [number % 50 for number in range(NUM)],
        "note": [f"it came {number} days late" for number in range(NUM)],
        "uuid": [f"u{number}" for number in range(NUM)],
        "same": ["x"] * NUM,
        "outcome": ["bad", "bad", "good"] * (NUM // 3),
        "y": ["p", "p", "q"] * (NUM // 3),
    }  # fmt: skip
    file = tmp_path / "data" / "orders.csv"
    file.parent.mkdir()
    rows = zip(*columns.values(), strict=True)
    file.write_text("\n".join(",".join(map(str, row)) for row in ([*columns], *rows)) + "\n")
    return file


def plan_of(config):
    return plan_data(config, read_data(config), stops_at_copies=False)


def test_a_run_with_the_file_has_the_same_plan(csv, tmp_path):
    settings = ("columns.outcome=ignore", "trainer.train_steps=7", "evaluator.metrics=['auc']",
                "evaluator.thresholds=[{metric='roc_auc', lower=0.6}, "
                "{metric='recall', class='q', slice={zip='00003', hour=1}, max_regression=0.1}]")  # fmt: skip
    config = load_config(data=str(csv), label="y", settings=settings)
    before = plan_of(config)
    target = tmp_path / "plan.toml"
    target.write_text(render_plan_file(config, before, tmp_path))
    after = plan_of(load_config(target))
    assert after.code == before.code
    assert after.code.thresholds[1].slice_ == {"zip": "00003", "hour": "1"}
    assert [row.kind for row in after.columns] == [row.kind for row in before.columns]
    assert 'path = "data/orders.csv"' in target.read_text()


def test_inferred_kinds_are_in_comments_as_an_entry_accepts_its_column(csv, tmp_path):
    config = load_config(data=str(csv), label="y", settings=("columns.note=text",))
    text = render_plan_file(config, plan_of(config), tmp_path)
    assert tomllib.loads(text)["columns"] == {"note": "text", "outcome": "ignore"}
    inferred = {
        "price": "number", "ordered": "date", "created_at": "date", "hour": "number",
        "flag": "category", "zip": "category", "customer_id": "category",
    }  # fmt: skip
    for name, kind in inferred.items():
        assert f'\n# "{name}" = "{kind}"  # ' in text
    for start in ('# "share" = "number"  # ', '# "vip" = "category"  # '):
        (line,) = (line for line in text.splitlines() if line.startswith(start))
        assert "may be target leakage" in line
    assert '# "uuid" = "id"  # not used: nearly every row' in text
    assert '"outcome" = "ignore"  # target leakage' in text
    config = load_config(data=str(csv), label="hour")  # "number" would make it a regression
    assert '\n# "hour" = "category"  # label (multi-class' in render_plan_file(
        config, plan_of(config), tmp_path
    )


def test_every_setting_is_there_or_in_a_comment(csv, tmp_path):
    config = load_config(data=str(csv), label="y", settings=("pusher.keep=3",))
    text = render_plan_file(config, plan_of(config), tmp_path)
    lines = text.splitlines()
    for name, field in PipelineConfig.model_fields.items():
        value = getattr(config, name)
        if not hasattr(value, "model_dump"):
            continue
        start = lines.index(f"[{field.alias or name}]")
        for key in type(value).model_fields:
            assert any(line.removeprefix("# ").startswith(f"{key} = ") for line in lines[start:])
    assert "keep = 3" in lines
    assert '# problem_type = "binary"' in lines
    assert '# quote = "\\""' in lines
