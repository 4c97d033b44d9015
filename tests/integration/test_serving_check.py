"""A module whose serving function alone is wrong: the judged model is good, and nothing is pushed."""

import random
from pathlib import Path

import pytest

MODULE = Path(__file__).with_name("warm_start_module.py")
RIGHT = "ServingInputReceiver(features, serialized)"
NEGATED = 'ServingInputReceiver({"x": -features["x"]}, serialized)'


@pytest.mark.slow
def test_what_was_not_judged_is_not_pushed(run_pipeline, tmp_path):
    root, module, data = tmp_path / "root", tmp_path / "module.py", tmp_path / "data.csv"
    draw = random.Random(1)
    rows = [(x, int(x + draw.gauss(0, 0.3) > 0.5)) for x in (draw.random() for _ in range(900))]
    data.write_text("x,y\n" + "".join(f"{x:.4f},{y}\n" for x, y in rows))

    def run(*settings):
        settings = (f"module.file={module}", "trainer.custom_config.learning_rate=0.5", *settings)
        return run_pipeline(data, root, *settings)

    source = MODULE.read_text()
    assert RIGHT in source
    module.write_text(source.replace(RIGHT, NEGATED))
    code, line, shown = run()
    assert (code, line["status"], line["version"]) == (3, "not_blessed", None), shown[-2_000:]
    assert line["metrics"]["auc"] > 0.8  # the Evaluator was content
    assert all(check["passed"] for check in line["checks"])
    assert "the exported model gives other predictions than in the evaluation" in line["reason"]
    assert line["reason"] in shown
    assert not (root / "serving").exists() or not any((root / "serving").iterdir())
    report = (root / "runs" / f"{line['run_id']}.html").read_text()
    assert "but the ServingCheck stopped it, so nothing was pushed." in report
    assert "Asked before the push" in report

    module.write_text(source)
    code, line, shown = run("serving_check.max_load_seconds=0.001")
    assert (code, line["status"]) == (1, "failed"), shown[-2_000:]
    assert "max_load_seconds is 0.001" in line["reason"]

    code, line, shown = run()
    assert (code, line["status"]) == (0, "pushed"), shown[-2_000:]
    assert "= Trainer  unchanged, reused" in shown
    version = root / "serving" / line["version"]
    assert (version / "assets.extra" / "tf_serving_warmup_requests").is_file()
    assert (version / "assets.extra" / "push.json").is_file()
