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


def with_words(params):
    return models.vectors(params).map(lambda x, y: ({**x, "word": tf.fill([params["batch_size"]], "a")}, y))


def with_a_smaller_batch(params):
    return models.vectors({"batch_size": 60}).unbatch().batch(params["batch_size"])


@pytest.mark.parametrize(
    ("input_fn", "words"),
    [
        (with_words, "Received: features['word'] of type string"),
        (with_a_smaller_batch, "drop_remainder=True"),
    ],
)
def test_strings_and_dynamic_shapes_are_refused_before_anything_is_compiled(input_fn, words):
    report = check_for_tpu(models.regressor(), input_fn, modes=["train"])
    assert words in report.modes["train"].error
    assert not report.compiles


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


@pytest.mark.parametrize(
    ("make", "settings", "error", "message"),
    [
        pytest.param(
            models.regressor,
            {"topology": "v5e:16x16", "modes": ["train"]},
            ValueError,
            r"train_batch_size 64 must be divisible by .* shards 256",
            id="a batch that does not go around the cores",
        ),
        pytest.param(
            lambda: est.Estimator(models.cnn_model_fn),
            {},
            TypeError,
            "to_tpu_estimator makes one",
            id="an Estimator for one device",
        ),
        pytest.param(
            lambda: models.regressor(eval_on_tpu=False),
            {"modes": iter(["eval", "eval"])},
            ValueError,
            r"Those are \['train', 'infer'\]. Received: modes=\['eval'\]",
            id="a mode that does not run on a TPU",
        ),
        pytest.param(
            lambda: models.regressor(config=est.tpu.RunConfig(est.tpu.TPUConfig(num_cores_per_replica=2))),
            {},
            RuntimeError,
            "leave num_cores_per_replica out",
            id="a model on several cores",
        ),
    ],
)
def test_what_is_not_checked(make, settings, error, message):
    with pytest.raises(error, match=message):
        check_for_tpu(make(), models.vectors, **settings)


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
