import os

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.training.in_turns import train_and_evaluate_in_turns

_RECEIVER = est.export.build_parsing_serving_input_receiver_fn({"x": tf.io.FixedLenFeature([], tf.float32)})


class _Recorder(est.Exporter):
    """Notes each call: (global step of the checkpoint, loss, True for the final one)."""

    name = "recorder"

    def __init__(self):
        self.calls = []

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        assert export_path == os.path.join(estimator.model_dir, "export", "recorder")
        step = int(checkpoint_path.rsplit("-", 1)[1])
        self.calls.append((step, float(eval_result["loss"]), is_the_final_export))
        return b"exported"


def _eval_input_fn():
    """x = 1, label 0: the loss is the square of the weight."""
    return tf.data.Dataset.from_tensors(({"x": [1.0]}, [0.0]))


def _eval_spec(exporters, **settings):
    return est.EvalSpec(_eval_input_fn, exporters=exporters, **{"throttle_secs": 0, **settings})


def test_every_checkpoint_is_evaluated_and_exported_once(make_estimator, input_fn):
    recorder = _Recorder()
    metrics, exports = est.train_and_evaluate(
        make_estimator(save_checkpoints_steps=2), est.TrainSpec(input_fn, 4), _eval_spec(recorder)
    )
    # After 2 steps w = 2 - 2/4 = 1.5, after 4 steps 2 - 2/16 = 1.875.
    assert recorder.calls == [(2, pytest.approx(1.5**2), False), (4, pytest.approx(1.875**2), True)]
    assert metrics["global_step"] == 4
    assert metrics["loss"] == pytest.approx(1.875**2)
    assert exports == [b"exported"]


def test_throttling_leaves_the_first_checkpoint_and_the_end_to_be_evaluated(make_estimator, input_fn):
    recorder = _Recorder()
    est.train_and_evaluate(
        make_estimator(save_checkpoints_steps=2),
        est.TrainSpec(input_fn, 6),
        _eval_spec(recorder, throttle_secs=3600),
    )
    assert [(step, final) for step, _, final in recorder.calls] == [(2, False), (6, True)]


def test_evaluation_every_n_steps_says_when_the_next_one_comes(make_estimator, input_fn, caplog):
    recorder = _Recorder()
    with caplog.at_level("INFO", logger="tensorflow"):
        est.train_and_evaluate(
            make_estimator(save_checkpoints_steps=2),
            est.TrainSpec(input_fn, 10),
            _eval_spec(recorder, throttle_secs=3600, every_n_steps=4),
        )
    assert [(step, final) for step, _, final in recorder.calls] == [(4, False), (8, False), (10, True)]
    lines = [record.getMessage() for record in caplog.records]
    following = [line for line in lines if line.startswith("Next evaluation")]
    assert following == [
        *["Next evaluation: at step 4."] * 2,
        *["Next evaluation: at step 8."] * 2,
        "Next evaluation: at the end of training.",
    ]


def test_evaluation_every_n_steps_goes_on_from_any_step(make_estimator, input_fn):
    estimator = make_estimator(save_checkpoints_steps=2)
    estimator.train(input_fn, steps=3)
    recorder = _Recorder()
    spec = _eval_spec(recorder, every_n_steps=4)
    est.train_and_evaluate(estimator, est.TrainSpec(input_fn, 12), spec)
    # Checkpoints are at 3, 5, 7, 9, 11 and 12; those past 4 and 8 are evaluated, and the last one.
    assert [step for step, _, _ in recorder.calls] == [5, 9, 12]


@pytest.mark.parametrize(
    "config", [{"save_checkpoints_steps": 3}, {"save_checkpoints_secs": 60}, {}], ids=str
)
def test_evaluations_between_checkpoints_are_refused(make_estimator, input_fn, config):
    spec = _eval_spec([], every_n_steps=4)
    with pytest.raises(ValueError, match="set save_checkpoints_steps=4"):
        est.train_and_evaluate(make_estimator(**config), est.TrainSpec(input_fn, 10), spec)


def test_the_evaluator_task_of_a_cluster_only_evaluates(make_estimator, input_fn, as_task):
    make_estimator().train(input_fn, steps=2)
    as_task("evaluator", tasks={"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]})
    metrics, _ = est.train_and_evaluate(
        make_estimator(), est.TrainSpec(input_fn, 2), _eval_spec([], start_delay_secs=0)
    )
    assert metrics["global_step"] == 2


def test_training_that_ends_with_its_input_has_a_final_export(make_estimator, eval_input_fn):
    recorder = _Recorder()
    est.train_and_evaluate(
        make_estimator(), est.TrainSpec(eval_input_fn, max_steps=100), _eval_spec(recorder)
    )
    assert (recorder.calls[-1][0], recorder.calls[-1][2]) == (2, True)


def test_a_finished_run_is_evaluated_and_exported_again(make_estimator, input_fn):
    make_estimator().train(input_fn, max_steps=3)
    recorder = _Recorder()
    metrics, _ = est.train_and_evaluate(make_estimator(), est.TrainSpec(input_fn, 3), _eval_spec(recorder))
    assert metrics["global_step"] == 3
    assert [(step, final) for step, _, final in recorder.calls] == [(3, True)]


def test_an_interrupted_run_goes_on_from_its_checkpoint(make_estimator, input_fn):
    class Interrupt(tf.compat.v1.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            if run_context.session.run(tf.compat.v1.train.get_global_step()) == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        est.train_and_evaluate(
            make_estimator(save_checkpoints_steps=2),
            est.TrainSpec(input_fn, 6, hooks=[Interrupt()]),
            _eval_spec([]),
        )
    assert make_estimator().get_variable_value("global_step") == 2
    metrics, _ = est.train_and_evaluate(
        make_estimator(save_checkpoints_steps=2), est.TrainSpec(input_fn, 6), _eval_spec([])
    )
    assert metrics["global_step"] == 6
    assert metrics["loss"] == pytest.approx((2 - 2 / 2**6) ** 2)


def test_exporters_write_where_they_should(make_estimator, input_fn):
    estimator = make_estimator(save_checkpoints_steps=2)
    latest = est.LatestExporter("latest", _RECEIVER, exports_to_keep=1)
    final = est.FinalExporter("final", _RECEIVER)
    _, exports = est.train_and_evaluate(estimator, est.TrainSpec(input_fn, 4), _eval_spec([latest, final]))
    for name, path in zip(("latest", "final"), exports, strict=True):
        directory = os.path.join(estimator.model_dir, "export", name)
        assert [os.path.join(directory, version).encode() for version in os.listdir(directory)] == [path]
        serve = tf.saved_model.load(path.decode()).signatures["serving_default"]
        example = tf.train.Example()
        example.features.feature["x"].float_list.value.append(1.0)
        answer = serve(examples=tf.constant([example.SerializeToString()]))
        assert answer["y"].numpy() == 1.875


@pytest.mark.parametrize("wrong", ["estimator", "train_spec", "eval_spec"])
def test_wrong_types_are_refused(make_estimator, input_fn, wrong):
    arguments = {
        "estimator": make_estimator(),
        "train_spec": est.TrainSpec(input_fn, 2),
        "eval_spec": _eval_spec([]),
    }
    with pytest.raises(TypeError, match=f"`{wrong}` must be a.*{wrong}=3"):
        est.train_and_evaluate(**{**arguments, wrong: 3})


def test_a_saver_hook_of_the_caller_s_evaluates_in_its_own_training_alone(make_estimator, input_fn, tmp_path):
    def evaluated_steps():
        return sorted(est.summaries.read_evaluations(estimator.eval_dir()))

    estimator = make_estimator()
    saver = est.CheckpointSaverHook(os.path.join(tmp_path, "model"), save_steps=3)
    train_and_evaluate_in_turns(
        estimator, est.TrainSpec(input_fn, max_steps=4, hooks=[saver]), _eval_spec([], steps=1)
    )
    assert evaluated_steps() == [3, 4]
    estimator.train(input_fn, hooks=[saver], steps=7)
    assert evaluated_steps() == [3, 4]
