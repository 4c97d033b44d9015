import ast
import json
import pickle
from pathlib import Path

import pytest
import tensorflow as tf
from tfx.proto.trainer_pb2 import TrainArgs
from tfx.types import standard_artifacts
from tfx.utils import io_utils, proto_utils

from components.errors import SettingError
from components.interruption import RunInterruptedError, interruption
from components.tfx.model_paths import serving_model_path
from components.trainer import local_cluster, task_logs
from components.trainer.executor import GenericExecutor
from components.trainer.local_cluster import LocalCluster
from tests.components.conftest import example

MODULE_FILE = str(Path(__file__).with_name("estimator_module.py"))


TRAINER_FN = {"module_file": MODULE_FILE, "trainer_fn": "trainer_fn"}


def killed_training(train, folder):
    """Returns the custom_config of a training that died; its `record` gets the steps of the next one."""
    record, die = folder / "steps", folder / "die"
    config = {"record": str(record)}
    die.touch()
    with pytest.raises(KeyboardInterrupt):
        train(TRAINER_FN, custom_config=config)
    die.unlink()
    record.unlink()
    return config


def serve(model, x):
    signature = tf.saved_model.load(str(model / "Format-Serving")).signatures["serving_default"]
    return signature(tf.constant([example({"x": x})]))["predictions"].numpy().item()


def test_a_trainer_fn_leaves_a_serving_model_an_eval_model_and_its_run(train):
    model, model_run = train(TRAINER_FN)
    assert serve(model, 2.0) == pytest.approx(6.0, abs=0.1)
    eval_model = tf.saved_model.load(str(model / "Format-TFMA"), tags=["eval"])
    assert {"labels", "predictions/predictions"} <= set(eval_model.signatures["eval"].structured_outputs)
    checkpoint = tf.train.latest_checkpoint(str(model_run / "Format-Serving"))
    assert checkpoint.endswith("model.ckpt-100")
    assert not (model_run / "Format-Serving" / "eval_export").exists()
    assert sorted(path.name for path in model_run.parent.iterdir()) == ["1"]


@pytest.mark.more
def test_a_killed_training_continues_under_the_same_run_id(train, tmp_path):
    config = killed_training(train, tmp_path)
    model, model_run = train(TRAINER_FN, custom_config=config)
    # It died at step 60; checkpoints are written each 25 steps.
    assert int(Path(config["record"]).read_text().split()[0]) in (50, 51)
    assert (model_run / "Format-Serving" / "model.ckpt-100.index").exists()
    assert serve(model, 1.0) == pytest.approx(3.0, abs=0.1)
    assert not (model_run.parent / "unfinished").exists()


@pytest.mark.more
def test_a_signal_ends_the_training_behind_a_checkpoint(train, tmp_path, monkeypatch):
    record, signal = tmp_path / "steps", tmp_path / "signal"
    config = {"record": str(record)}
    signal.touch()
    monkeypatch.setattr(interruption, "reason", None)
    with pytest.raises(RunInterruptedError):
        train(TRAINER_FN, custom_config=config)
    assert not interruption.is_held
    steps = [int(step) for step in record.read_text().split()]
    assert steps[-1] < 70
    signal.unlink()
    record.unlink()
    monkeypatch.setattr(interruption, "reason", None)  # as in another process
    model, _ = train(TRAINER_FN, custom_config=config)
    # Checkpoints are written each 25 steps, and where the signal came.
    assert steps[-1] <= int(record.read_text().split()[0]) <= steps[-1] + 1
    assert serve(model, 1.0) == pytest.approx(3.0, abs=0.1)


@pytest.mark.more
@pytest.mark.parametrize("change", [{"run_id": "run-2"}, {"steps": 90}])
def test_another_run_or_other_settings_start_anew(train, tmp_path, change):
    config = killed_training(train, tmp_path)
    train(TRAINER_FN, custom_config=config, **change)
    assert int(Path(config["record"]).read_text().split()[0]) <= 1


@pytest.mark.more
def test_a_trainer_fn_starts_from_a_base_model(train, make_artifact):
    first, _ = train(TRAINER_FN)
    base = make_artifact(standard_artifacts.Model, "model/1")
    assert base.uri == str(first)
    # One step from zero gets to 0.44 at most: 2 * 0.1 * mean(x * 3 x) = 0.6 * 0.3984 = 0.239.
    cold, _ = train(TRAINER_FN, steps=1)
    warm, _ = train(TRAINER_FN, steps=1, base_model=base)
    assert serve(cold, 1.0) == pytest.approx(0.239, abs=0.001)
    assert serve(warm, 1.0) == pytest.approx(3.0, abs=0.1)


def test_a_run_fn_writes_its_own_model_and_is_told_everything(train, make_artifact):
    hyperparameters = make_artifact(standard_artifacts.HyperParameters)
    io_utils.write_string_file(f"{hyperparameters.uri}/best.txt", '{"learning_rate": 0.5}')
    base = make_artifact(standard_artifacts.Model, "base")
    model, model_run = train(
        {"module_file": MODULE_FILE, "run_fn": "run_fn"},
        steps=7,
        custom_config={"layers": [8, 4]},
        base_model=base,
        hyperparameters=hyperparameters,
    )
    loaded = tf.saved_model.load(str(model / "Format-Serving"))
    assert loaded.double(tf.constant([4.0])).numpy().tolist() == [8.0]
    assert not (model / "Format-TFMA").exists()
    assert ast.literal_eval((model_run / "told.txt").read_text()) == {
        "train_steps": 7,
        "eval_steps": 2,
        "base_model": f"{base.uri}/Format-Serving",
        "hyperparameters": {"learning_rate": 0.5},
        "custom_config": {"layers": [8, 4]},
    }


class ExecutorWithQuantiles(GenericExecutor):
    """As teams wrote it to hand more to their run_fn."""

    def _GetFnArgs(self, *arguments):
        args = super()._GetFnArgs(*arguments)
        args.custom_config["hidden"] = 3
        args.quantiles = [0.1, 0.9]
        return args


RUN_FN_WITH_QUANTILES = """
import os

def run_fn(fn_args):
    os.makedirs(fn_args.serving_model_dir)
    open(os.path.join(fn_args.serving_model_dir, "saved_model.pb"), "w").close()
    with open(os.path.join(fn_args.model_run_dir, "told.txt"), "w") as file:
        print(fn_args.quantiles, fn_args.custom_config, file=file)
"""


def run_module(folder, text):
    """Returns the properties of a run_fn in a module of this text."""
    (folder / "module.py").write_text(text)
    return {"module_file": str(folder / "module.py")}


def test_an_executor_may_add_arguments_of_its_own(train, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "executor", ExecutorWithQuantiles)
    model, model_run = train({**run_module(tmp_path, RUN_FN_WITH_QUANTILES), "run_fn": "run_fn"})
    assert (model / "Format-Serving" / "saved_model.pb").is_file()
    assert (model_run / "told.txt").read_text() == "[0.1, 0.9] {'hidden': 3}\n"


def test_an_executor_with_a_do_of_its_own_gets_the_directories_of_the_outputs(make_artifact, make_examples):
    model, run = map(make_artifact, (standard_artifacts.Model, standard_artifacts.ModelRun))
    arguments = proto_utils.proto_to_json(TrainArgs())
    args = GenericExecutor()._GetFnArgs(
        {"examples": [make_examples([], train=[])]},
        {"model": [model], "model_run": [run]},
        {"train_args": arguments, "eval_args": arguments},
    )
    assert args.serving_model_dir == f"{model.uri}/Format-Serving"
    assert args.eval_model_dir == f"{model.uri}/Format-TFMA"
    assert args.model_run_dir == run.uri


def test_a_run_fn_that_writes_no_model_is_an_error(train, tmp_path):
    with pytest.raises(RuntimeError, match=r"run_fn wrote no model: .*Format-Serving"):
        train(run_module(tmp_path, "def run_fn(fn_args): pass\n"))


def fails_first(train, properties, fails):
    """Returns the outputs of a second training, after one that has failed because of a file."""
    fails.touch()
    with pytest.raises(ArithmeticError):
        train(properties)
    fails.unlink()
    return train(properties)


def test_a_run_fn_that_fails_keeps_what_it_has_trained_but_no_model(train, tmp_path):
    fails = tmp_path / "fails"
    properties = run_module(
        tmp_path,
        "import os, pathlib, tensorflow as tf\n"
        "def run_fn(fn_args):\n"
        "    trained = pathlib.Path(fn_args.model_run_dir, 'checkpoints.txt')\n"
        "    trained.write_text(trained.read_text() + '2' if trained.exists() else '1')\n"
        f"    if os.path.exists({str(fails)!r}):\n"
        "        tf.saved_model.save(tf.Module(), fn_args.serving_model_dir)\n"
        "        raise ArithmeticError('after the training')\n"
        "    assert not os.path.exists(fn_args.serving_model_dir)\n"
        "    tf.saved_model.save(tf.Module(), os.path.join(fn_args.serving_model_dir, '16'))\n",
    )
    model, model_run = fails_first(train, properties, fails)
    assert (model_run / "checkpoints.txt").read_text() == "12"
    assert sorted(path.name for path in model_run.iterdir()) == ["checkpoints.txt"]
    assert (model / "Format-Serving" / "16" / "saved_model.pb").is_file()


def test_a_run_fn_that_trains_where_its_model_goes_finds_its_checkpoints(train, tmp_path):
    fails = tmp_path / "fails"
    properties = run_module(
        tmp_path,
        "import os, pathlib, tensorflow as tf\n"
        "def run_fn(fn_args):\n"
        "    state = pathlib.Path(fn_args.serving_model_dir, 'checkpoint')\n"
        "    state.parent.mkdir(parents=True, exist_ok=True)\n"
        "    state.write_text(state.read_text() + '2' if state.exists() else '1')\n"
        f"    if os.path.exists({str(fails)!r}):\n"
        "        raise ArithmeticError('after the training')\n"
        "    tf.saved_model.save(tf.Module(), str(state.parent / 'export' / 'best' / '16'))\n",
    )
    model, _ = fails_first(train, properties, fails)
    assert (model / "Format-Serving" / "checkpoint").read_text() == "12"
    assert (model / "Format-Serving" / "export" / "best" / "16" / "saved_model.pb").is_file()


def test_a_run_fn_may_leave_its_model_as_export_saved_model_does(train, tmp_path):
    save = "tf.saved_model.save(tf.Module(), f'{fn_args.serving_model_dir}/1600000000')"
    model, _ = train(run_module(tmp_path, f"import tensorflow as tf\ndef run_fn(fn_args):\n    {save}\n"))
    path = model / "Format-Serving" / "1600000000"
    artifact = standard_artifacts.Model()
    artifact.uri = str(model)
    assert serving_model_path(artifact) == str(path)


@pytest.fixture
def launched(monkeypatch):
    """Runs the chief of a cluster, and then its evaluator, in this process; notes the sizes."""
    sizes = []

    def run_as(fn, **tf_config):
        with monkeypatch.context() as context:
            context.setenv("TF_CONFIG", json.dumps(tf_config))
            fn()

    def launch(fn, **given):
        sizes.append(given)
        fn = pickle.loads(pickle.dumps(fn))
        cluster = {"chief": ["127.0.0.1:1"]}
        run_as(fn, cluster=cluster, task={"type": "chief", "index": 0})
        if given["evaluator"]:
            run_as(fn, task={"type": "evaluator", "index": 0})

    monkeypatch.setattr(task_logs, "write_to_stderr", lambda: None)
    monkeypatch.setattr(local_cluster, "launch_local_cluster", launch)
    return sizes


@pytest.mark.sampled(1)
@pytest.mark.parametrize("evaluator", [False, True])
def test_a_cluster_leaves_the_same_with_and_without_an_evaluator(train, launched, evaluator):
    cluster = LocalCluster(workers=2, ps=1, evaluator=evaluator)
    custom_config = {"no_delay": True}
    model, model_run = train({**TRAINER_FN, "cluster": cluster.to_json()}, 100, custom_config)
    ((given),) = launched
    assert (given["num_workers"], given["num_ps"], given["evaluator"]) == (3, 1, evaluator)
    # Beside the checkpoints, where a failed training has them, too, until it is finished.
    log_dir = Path(given["log_dir"])
    assert (log_dir.name, log_dir.parents[1]) == ("logs", model_run.parent / "unfinished")
    assert serve(model, 2.0) == pytest.approx(6.0, abs=0.1)
    assert tf.saved_model.load(str(model / "Format-TFMA"), tags=["eval"]).signatures["eval"]
    trained = model_run / "Format-Serving"
    assert len(list((trained / "export" / "serving").iterdir())) == 1
    # Of one evaluation, of the last checkpoint.
    (events,) = (trained / "eval").iterdir()
    steps = {event.step for event in tf.compat.v1.train.summary_iterator(str(events))}
    assert steps == {0, 100}  # 0 is the file's version


def test_a_run_fn_is_refused_in_a_cluster_before_anything_is_trained(train, launched, tmp_path):
    properties = run_module(tmp_path, "def run_fn(fn_args): raise KeyError\n")
    with pytest.raises(SettingError, match="A cluster of the Trainer needs a trainer_fn"):
        train({**properties, "cluster": LocalCluster(workers=1).to_json()})
    assert not launched
