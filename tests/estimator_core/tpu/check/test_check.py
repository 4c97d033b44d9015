"""check_for_tpu: the messages of the TPU's own compiler, without a TPU."""

import subprocess
import sys

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.tpu.check import check
from tests.estimator_core.tpu.check import models

check_for_tpu = est.tpu.check_for_tpu


@pytest.mark.more
def test_each_core_sums_up_each_gradient_once_and_only_in_training(compiler):
    report = check_for_tpu(models.regressor(), models.vectors, "v5e:2x2")
    assert report.compiles
    assert list(report.modes) == ["train", "eval", "infer"]
    train = report.modes["train"]
    assert {kind for kind, _ in train.collectives} == {"all-reduce"}
    weights = 32 * 64 + 64
    assert sum(size for _, size in train.collectives) == 4 * weights
    assert report.modes["eval"].collectives == report.modes["infer"].collectives == ()
    # 16 examples a core. Forward and for the gradient of the weights, a multiplication and an addition for
    # each weight; for the gradient of the hidden units, for each weight behind them.
    assert train.flops >= 16 * 2 * (2 * weights + 64)
    # The weights and their two slots, and the batch of a core, at the least.
    assert train.memory["arguments"] >= 4 * (3 * weights + 16 * 33)
    assert train.memory_bytes < train.topology.chip.memory_bytes
    assert f"collectives: {len(train.collectives)} all-reduce, 8.25 KiB per step" in str(report)


@pytest.mark.more
def test_an_operation_that_a_tpu_has_not_is_named_with_its_line(compiler):
    report = check_for_tpu(models.regressor(own_python=True), models.vectors, modes=["train"])
    assert not report.compiles
    (operation,) = report.modes["train"].operations
    assert operation.type == "PyFunc"
    assert "models.py:" in operation.made_at
    assert "numpy_function" in operation.made_at
    assert "Let input_fn do this" in report.modes["train"].error


def test_strings_are_refused_before_anything_is_compiled():
    def words(params):
        dataset = models.vectors(params)
        return dataset.map(lambda x, y: ({**x, "word": tf.fill([params["batch_size"]], "a")}, y))

    report = check_for_tpu(models.regressor(), words, modes=["train"])
    assert "Received: features['word'] of type string" in report.modes["train"].error


def test_dynamic_shapes_are_refused_before_anything_is_compiled():
    def last_is_smaller(params):
        return models.vectors({"batch_size": 60}).unbatch().batch(params["batch_size"])

    report = check_for_tpu(models.regressor(), last_is_smaller, modes=["train"])
    assert "drop_remainder=True" in report.modes["train"].error
    assert not report.compiles


def test_a_batch_must_go_around_the_cores():
    with pytest.raises(ValueError, match=r"train_batch_size 64 must be divisible by .* shards 256"):
        check_for_tpu(models.regressor(), models.vectors, "v5e:16x16", modes=["train"])


@pytest.mark.slow
def test_a_chip_that_is_one_core(compiler):
    report = check_for_tpu(models.regressor(), models.vectors, "v5p:2x2x1", modes=["train"])
    assert report.compiles, report


def test_an_error_of_model_fn_is_the_users(monkeypatch):
    def model_fn(features, labels, mode, params):
        raise ValueError("units must be even")

    monkeypatch.setattr(models, "regression_model_fn", model_fn)
    with pytest.raises(ValueError, match="units must be even"):
        check_for_tpu(models.regressor(), models.vectors, modes=["train"])


@pytest.mark.slow
@pytest.mark.parametrize("name", models.CONVERTED)
@pytest.mark.parametrize("topology", ["v5e:2x2", "v4:2x2x2"])
def test_estimators_that_were_not_written_for_a_tpu(compiler, name, topology, capsys):
    make, input_fn = models.CONVERTED[name]
    estimator = est.tpu.to_tpu_estimator(
        make(), train_batch_size=32, eval_batch_size=32, predict_batch_size=32
    )
    report = check_for_tpu(estimator, input_fn, topology)
    with capsys.disabled():
        print(f"\n{name}, {topology}\n{report}")
    assert report.compiles, report
    assert {kind for kind, _ in report.modes["train"].collectives} == {"all-reduce"}


def test_an_estimator_for_one_device_says_how_to_convert_it():
    with pytest.raises(TypeError, match="to_tpu_estimator makes one"):
        check_for_tpu(est.Estimator(models.cnn_model_fn), models.images)


def test_what_does_not_run_on_a_tpu_is_not_checked():
    estimator = models.regressor(eval_on_tpu=False)
    with pytest.raises(ValueError, match=r"Those are \['train', 'infer'\]. Received: modes=\['eval'\]"):
        check_for_tpu(estimator, models.vectors, modes=iter(["eval", "eval"]))


def test_a_model_on_several_cores_is_refused():
    config = est.tpu.RunConfig(est.tpu.TPUConfig(num_cores_per_replica=2))
    with pytest.raises(RuntimeError, match="leave num_cores_per_replica out"):
        check_for_tpu(models.regressor(config=config), models.vectors)


@pytest.mark.slow
def test_a_compiler_that_crashes_spoils_one_mode_alone(compiler, monkeypatch):
    write = check.write_program

    def write_nothing_of_eval(folder, *arguments):
        write(folder, *arguments)
        if folder.name == "eval":
            (folder / "graph.pb").unlink()

    monkeypatch.setattr(check, "write_program", write_nothing_of_eval)
    report = check_for_tpu(models.regressor(), models.vectors)
    assert [mode.compiles for mode in report.modes.values()] == [True, False, True]
    assert "graph.pb" in report.modes["eval"].error
    assert not report.compiles


@pytest.mark.slow
def test_checks_at_the_same_time(compiler):
    """The compiler's library lets one process alone use a TPU, unless it is told otherwise."""
    command = [sys.executable, "-m", "estimator_core.tpu.check", "--mode", "train"]
    where = "tests.estimator_core.tpu.check.models:regressor_and_vectors"
    checks = [subprocess.Popen([*command, where], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = [check.communicate()[0] for check in checks]
    assert all("train: compiles for v5e:2x2" in text for text in printed), printed
