"""check_for_tpu: what the TPU's own compiler says, without a TPU."""

import runpy
import sys

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.tpu.check import compile_program
from estimator_core.tpu.check.report import ModeReport
from estimator_core.tpu.check.topologies import topology_named
from tests.estimator_core.tpu.check import models

check_for_tpu = est.tpu.check_for_tpu


@pytest.fixture(scope="module")
def compiler():
    pytest.importorskip("jax", reason="the extra tpu-check is not installed")
    pytest.importorskip("libtpu", reason="the extra tpu-check is not installed")


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
    assert "collectives: 2 all-reduce" in str(report) or "collectives: 1 all-reduce" in str(report)


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


def run_command(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["check", *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("estimator_core.tpu.check", run_name="__main__")
    return ended.value.code


def test_the_command(compiler, monkeypatch, capsys):
    module = "tests.estimator_core.tpu.check.models"
    assert run_command(monkeypatch, f"{module}:regressor_and_vectors", "--mode", "eval") == 0
    assert capsys.readouterr().out.startswith("eval: compiles for v5e:2x2 (4 cores)\n")


def test_a_command_that_names_nothing(monkeypatch, capsys):
    assert run_command(monkeypatch, "tests.estimator_core.tpu.check.models:nothing") == 2
    assert "has no attribute 'nothing'" in capsys.readouterr().err


def test_an_estimator_for_one_device_says_how_to_convert_it():
    with pytest.raises(TypeError, match="to_tpu_estimator makes one"):
        check_for_tpu(est.Estimator(models.cnn_model_fn), models.images)


def test_topologies():
    assert topology_named("v5e:2x4").num_cores == 8
    assert topology_named("v4:2x2x1").num_cores == 8  # two cores a chip
    assert topology_named("v3:2x2").chip.memory_bytes == 16 * 2**30
    for name in ("v5e", "v5e:2", "v1:2x2", "2x2"):
        with pytest.raises(ValueError, match="topology must be a chip and its grid"):
            topology_named(name)


def test_collectives_of_a_compiled_program():
    hlo = """
      %all-reduce.1 = (f32[32,64]{1,0:T(8,128)}, bf16[3]{0}) all-reduce(%a, %b), replica_groups={{0,1}}
      %all-reduce-start = f32[2]{0} all-reduce-start(%c), replica_groups={}
      %x = f32[2]{0} all-reduce-done(%all-reduce-start)
      %all-gather.2 = pred[5]{0} all-gather(%d), dimensions={0}
      %add.3 = f32[4]{0} add(%all-reduce.1, %e)
    """
    assert list(compile_program.collectives(hlo)) == [
        ("all-reduce", 4 * 32 * 64 + 2 * 3),
        ("all-reduce", 8),
        ("all-gather", 5),
    ]


def test_what_does_not_fit_is_said_and_no_success():
    topology = topology_named("v5e:2x2")
    memory = {
        "arguments": 12 << 30,
        "outputs": 10 << 30,
        "aliases": 9 << 30,
        "temporaries": 4 << 30,
    }
    mode = ModeReport("train", topology, memory=memory, flops=197e9, bytes_accessed=819e6)
    assert mode.memory_bytes == (12 + 10 - 9 + 4) << 30
    assert not mode.fits
    assert "TOO MUCH" in str(mode)
    assert mode.step_secs == pytest.approx(1e-3)  # both are, of 197 teraflops and 819 GB/s
