"""Definitions of TFX 1.0 to 1.15 on TFX's LocalDagRunner: with one more line, and with other imports."""

import csv
import itertools
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from components import load_verdict

pytestmark = pytest.mark.slow  # a whole pipeline each, in a process of its own

FOLDER = Path(__file__).with_name("tfx_projects")
NAMES = ["trainer_fn", "run_fn", "runtime_parameters", "custom_pusher", "warm_start"]


def one_line(source: str) -> str:
    return source.replace("import os\n", "import components; components.install()\nimport os\n", 1)


def other_imports(source: str) -> str:
    return source.replace("from tfx.components", "from components")


def two_processes(source: str) -> str:
    assert "in_memory" in source
    source = source.replace("in_memory", "multi_processing").replace("workers=1", "workers=2")
    return one_line(source)


def trips() -> list[dict[str, object]]:
    """Returns trips: cards tip 30 % nine times out of ten, cash never."""
    draw, rows = random.Random(3), []
    for i in range(400):
        fare = round(draw.uniform(4, 40), 2)
        tips = 0.3 * fare if i % 2 and draw.random() < 0.9 else 0.0
        payment_type = ("Cash", "Card")[i % 2]
        rows.append(
            {
                "fare": fare,
                "payment_type": payment_type,
                "tips": round(tips, 2),
                "trip_start_hour": i // 2 % 4,
            }
        )
    return rows


def write_rows(file: Path, rows: list[dict[str, object]]) -> None:
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)


def write_project(folder: Path, change: object) -> None:
    """Writes the definition, its module, and trips."""
    (folder / "definition.py").write_text(change((FOLDER / "definition.py").read_text()))
    (folder / "taxi_module.py").write_text((FOLDER / "taxi_module.py").read_text())
    (folder / "data").mkdir()
    write_rows(folder / "data" / "trips.csv", trips())


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "definition.py", *arguments], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stderr


def newest(folder: Path) -> Path:
    return max(folder.iterdir(), key=lambda path: int(path.name))


@pytest.mark.parametrize(
    ("name", "change"), [*itertools.product(NAMES, (one_line, other_imports)), ("trainer_fn", two_processes)]
)
def test_it_trains_judges_and_pushes(name: str, change: object, tmp_path: Path) -> None:
    write_project(tmp_path, change)
    earlier = None
    for attempt in range(1, 3 if name == "warm_start" else 2):
        log = run(tmp_path, name)
        verdict = load_verdict(str(newest(tmp_path / "root" / "Evaluator" / "evaluation")))
        assert verdict.blessed
        baseline = "without a baseline" if attempt == 1 else "compared with /"
        assert (f"INFO:components.evaluator.executor:BLESSED, {baseline}" in log) == (
            change is not other_imports
        )
        # Half of the trips are paid by card, and one in ten of these has no tip: three standard deviations
        # for the 132 evaluated ones. TFMA has no such metric.
        assert verdict.metrics["accuracy"] == pytest.approx(0.95, abs=0.056)
        call = json.loads((tmp_path / "calls.jsonl").read_text().splitlines()[-1])
        is_generic = name in ("run_fn", "runtime_parameters")
        assert call["function"] == ("run_fn" if is_generic else "trainer_fn")
        assert call["config"] == {"hidden_units": [5 if name == "runtime_parameters" else 8]}
        # The first run has no model to start from, nor to be compared with.
        assert (call["base_model"] or "").startswith(str(earlier or ""))
        assert bool(call["base_model"]) == bool(verdict.baseline_metrics) == (attempt == 2)
        earlier = newest(tmp_path / "root" / "Trainer" / "model")
        pushed = tmp_path / ("archive" if name == "custom_pusher" else "serving")
        assert len([*pushed.iterdir()]) == attempt
        assert (newest(pushed) / "saved_model.pb").is_file()


def test_a_model_below_the_threshold_is_not_pushed_and_the_log_says_why(tmp_path: Path) -> None:
    write_project(tmp_path, one_line)
    log = run(tmp_path, "trainer_fn", "0.999")
    verdict = load_verdict(str(newest(tmp_path / "root" / "Evaluator" / "evaluation")))
    assert not verdict.blessed
    assert any("accuracy" in failure and "0.999" in failure for failure in verdict.failures)
    assert not (tmp_path / "serving").exists()
    assert verdict.failures[0] in log
