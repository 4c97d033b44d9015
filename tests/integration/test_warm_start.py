"""A monthly retraining whose training starts from the model that serves."""

import random
from pathlib import Path

import pytest
import tensorflow as tf

MODULE = Path(__file__).with_name("warm_start_module.py")


def write(file, seed):
    draw = random.Random(seed)
    rows = [(x, int(x + draw.gauss(0, 0.3) > 0.5)) for x in (draw.random() for _ in range(600))]
    file.write_text("x,y\n" + "".join(f"{x:.4f},{y}\n" for x, y in rows))


@pytest.mark.slow
def test_the_next_training_starts_where_the_one_before_has_ended(run_pipeline, tmp_path):
    root = tmp_path / "root"

    def run(month, *settings):
        write(tmp_path / f"{month}.csv", month)
        bound = 'evaluator.thresholds=[{metric="auc", lower=0.0}]'
        settings = (f"module.file={MODULE}", "evaluator.default_checks=false", bound, *settings)
        code, line, shown = run_pipeline(tmp_path / f"{month}.csv", root, *settings)
        assert code == 0, shown[-3_000:]
        version = line["version"]
        variables = tf.train.load_checkpoint(root / "serving" / version / "variables" / "variables")
        return variables.get_tensor("linear/linear_model/x/weights").item()

    slow = "trainer.custom_config.learning_rate=0.0"
    warm = "trainer.warm_start=true"
    first = run(1, warm, "trainer.custom_config.learning_rate=0.5")  # nothing serves yet
    assert abs(first) > 0.1
    # With a learning rate of 0, the weights are those that the training has started from.
    assert run(2, warm, slow) == first
    assert run(3, slow) == 0.0
