import json
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from tfx.proto.trainer_pb2 import EvalArgs, TrainArgs
from tfx.utils import json_utils, proto_utils

from components.trainer import task_logs
from components.trainer.cluster_task import ClusterTask
from components.trainer.task_failure import TaskFailedError

MODULE_FILE = str(Path(__file__).with_name("estimator_module.py"))
ROWS = [{"x": 1.0, "y": 3.0}, {"x": 2.0, "y": 6.0}]


@pytest.fixture
def make_task(make_examples, xy_schema, tmp_path, monkeypatch):
    monkeypatch.setattr(task_logs, "write_to_stderr", lambda: None)
    inputs = {"examples": [make_examples(train=ROWS, eval=ROWS)], "schema": [xy_schema]}

    def make(model_dir):
        return ClusterTask(
            inputs=json_utils.dumps(inputs),
            exec_properties={
                "module_file": MODULE_FILE,
                "trainer_fn": "trainer_fn",
                "train_args": proto_utils.proto_to_json(TrainArgs(num_steps=30)),
                "eval_args": proto_utils.proto_to_json(EvalArgs(num_steps=2)),
                "custom_config": json_utils.dumps(None),
            },
            directories={
                "serving_model_dir": str(tmp_path / "run" / "model"),
                "eval_model_dir": str(tmp_path / "eval"),
                "model_run_dir": str(tmp_path / "run"),
            },
            model_dir=model_dir,
        )

    return make


def test_it_trains_as_its_tf_config_says(make_task, tmp_path, monkeypatch):
    chief = {"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": "chief", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(chief))
    model_dir = tmp_path / "run" / "model"
    make_task(str(model_dir))()
    assert (model_dir / "model.ckpt-30.index").exists()
    assert not (model_dir / "export").exists()  # that is the evaluator's
    weight = tf.train.load_variable(str(model_dir), "weight")
    assert weight.item() == pytest.approx(3.0, abs=0.1)


def test_a_task_that_trains_elsewhere_is_an_error(make_task):
    with pytest.raises(TaskFailedError) as error:
        make_task("/elsewhere/model")()
    failure = error.value.error()
    assert isinstance(failure, ValueError)
    assert "All tasks of a cluster need the same model_dir" in str(failure)
    assert "/elsewhere/model in the process of the Trainer" in str(failure)
    assert "in _run" in error.value.text


def test_a_new_process_imports_it_in_no_time():
    heavy = "bool({'tensorflow', 'tfx.types'} & {*sys.modules})"
    program = f"import sys, components.trainer.cluster_task; sys.exit({heavy})"
    subprocess.run([sys.executable, "-c", program], check=True)
