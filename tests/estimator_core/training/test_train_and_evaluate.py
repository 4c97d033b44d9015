import os

import pytest
import tensorflow as tf

import estimator_core as est

_RECEIVER = est.export.build_parsing_serving_input_receiver_fn(
    {"x": tf.io.FixedLenFeature([], tf.float32)}
)


class _Recorder(est.Exporter):
    """Notes each call: (global step of the checkpoint, loss, whether it was the final one)."""

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
    assert recorder.calls == [
        (2, pytest.approx(1.5**2), False),
        (4, pytest.approx(1.875**2), True),
    ]
    assert metrics["global_step"] == 4
    assert metrics["loss"] == pytest.approx(1.875**2)
    assert exports == [b"exported"]


def test_throttling_leaves_the_end_to_be_evaluated(make_estimator, input_fn):
    recorder = _Recorder()
    est.train_and_evaluate(
        make_estimator(save_checkpoints_steps=2),
        est.TrainSpec(input_fn, 6),
        _eval_spec(recorder, throttle_secs=3600),
    )
    assert [(step, final) for step, _, final in recorder.calls] == [(6, True)]


def test_training_that_ends_with_its_input_has_a_final_export(make_estimator, eval_input_fn):
    recorder = _Recorder()
    est.train_and_evaluate(
        make_estimator(), est.TrainSpec(eval_input_fn, max_steps=100), _eval_spec(recorder)
    )
    assert (recorder.calls[-1][0], recorder.calls[-1][2]) == (2, True)


def test_a_finished_run_is_evaluated_and_exported_again(make_estimator, input_fn):
    make_estimator().train(input_fn, max_steps=3)
    recorder = _Recorder()
    metrics, _ = est.train_and_evaluate(
        make_estimator(), est.TrainSpec(input_fn, 3), _eval_spec(recorder)
    )
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
    estimator = make_estimator(save_checkpoints_steps=1)
    latest = est.LatestExporter("latest", _RECEIVER, exports_to_keep=1)
    final = est.FinalExporter("final", _RECEIVER)
    _, exports = est.train_and_evaluate(
        estimator, est.TrainSpec(input_fn, 2), _eval_spec([latest, final])
    )
    for name, path in zip(("latest", "final"), exports, strict=True):
        directory = os.path.join(estimator.model_dir, "export", name)
        assert [os.path.join(directory, version).encode() for version in os.listdir(directory)] == [
            path
        ]
        serve = tf.saved_model.load(path.decode()).signatures["serving_default"]
        example = tf.train.Example()
        example.features.feature["x"].float_list.value.append(1.0)
        answer = serve(examples=tf.constant([example.SerializeToString()]))
        assert answer["y"].numpy() == 1.5


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: est.TrainSpec(None), TypeError, "input_fn must be callable"),
        (lambda: est.TrainSpec(_eval_input_fn, 0), ValueError, "max_steps > 0"),
        (lambda: est.TrainSpec(_eval_input_fn, hooks=[1]), TypeError, "hooks"),
        (
            lambda: est.TrainSpec(_eval_input_fn, saving_listeners=[1]),
            TypeError,
            "saving_listeners",
        ),
        (lambda: est.EvalSpec(_eval_input_fn, steps=0), ValueError, "steps > 0"),
        (lambda: est.EvalSpec(_eval_input_fn, throttle_secs=-1), ValueError, "throttle_secs=-1"),
        (lambda: est.EvalSpec(_eval_input_fn, exporters=[1]), TypeError, "exporters"),
        (
            lambda: est.EvalSpec(_eval_input_fn, exporters=[_Recorder(), _Recorder()]),
            ValueError,
            "different names",
        ),
        (
            lambda: est.LatestExporter("a", _RECEIVER, exports_to_keep=0),
            ValueError,
            "exports_to_keep=0",
        ),
        (lambda: est.FinalExporter("", _RECEIVER), ValueError, "needs a name"),
        (lambda: est.train_and_evaluate(1, 2, 3), TypeError, "`estimator` must be a Estimator"),
    ],
)
def test_bad_specs_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
