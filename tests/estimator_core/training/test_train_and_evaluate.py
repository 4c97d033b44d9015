import os

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.training.in_turns import train_and_evaluate_in_turns
from tests.estimator_core.programs import AfterEachRun, Recorder, batch_of, example

_RECEIVER = est.export.build_parsing_serving_input_receiver_fn({"x": tf.io.FixedLenFeature([], tf.float32)})


_eval_input_fn = batch_of({"x": [1.0]}, [0.0])  # the loss is the square of the weight


def _eval_spec(exporters, **settings):
    return est.EvalSpec(_eval_input_fn, exporters=exporters, **{"throttle_secs": 0, **settings})


@pytest.fixture
def run(make_estimator, input_fn):
    """Trains and evaluates; returns the metrics, what the exporter returned, and the exporter."""

    def train_and_evaluate(max_steps, saves_every=2, hooks=(), train_input_fn=input_fn, **settings):
        recorder = Recorder()
        train_spec = est.TrainSpec(train_input_fn, max_steps, hooks=hooks)
        estimator = make_estimator(save_checkpoints_steps=saves_every)
        metrics, exports = est.train_and_evaluate(estimator, train_spec, _eval_spec(recorder, **settings))
        return metrics, exports, recorder

    return train_and_evaluate


def test_every_checkpoint_is_evaluated_and_exported_once(run, tmp_path):
    metrics, exports, recorder = run(4)
    assert recorder.calls == [(2, False), (4, True)]
    # After 2 steps w = 2 - 2/4 = 1.5, after 4 steps 2 - 2/16 = 1.875.
    assert recorder.losses == pytest.approx([1.5**2, 1.875**2])
    model_dir = str(tmp_path / "model")
    assert recorder.paths == [
        (os.path.join(model_dir, "export", "recorder"), os.path.join(model_dir, f"model.ckpt-{step}"))
        for step in (2, 4)
    ]
    assert (metrics["global_step"], metrics["loss"]) == (4, pytest.approx(1.875**2))
    assert exports == [b"recorder-4"]


def test_throttling_leaves_the_first_checkpoint_and_the_end_to_be_evaluated(run):
    assert run(6, throttle_secs=3600)[2].calls == [(2, False), (6, True)]


def test_evaluation_every_n_steps_says_when_the_next_one_comes(run, caplog):
    with caplog.at_level("INFO", logger="tensorflow"):
        _, _, recorder = run(10, throttle_secs=3600, every_n_steps=4)
    assert recorder.calls == [(4, False), (8, False), (10, True)]
    assert [line for line in caplog.messages if line.startswith("Next evaluation")] == [
        *["Next evaluation: at step 4."] * 2,
        *["Next evaluation: at step 8."] * 2,
        "Next evaluation: at the end of training.",
    ]


@pytest.mark.more
def test_evaluation_every_n_steps_goes_on_from_any_step(run, make_estimator, input_fn):
    make_estimator().train(input_fn, steps=3)
    # Checkpoints are at 3, 5, 7, 9, 11 and 12; those past 4 and 8 are evaluated, and the last one.
    assert run(12, every_n_steps=4)[2].calls == [(5, False), (9, False), (12, True)]


@pytest.mark.parametrize(
    "config", [{"save_checkpoints_steps": 3}, {"save_checkpoints_secs": 60}, {}], ids=str
)
def test_evaluations_between_checkpoints_are_refused(make_estimator, input_fn, config):
    spec = _eval_spec([], every_n_steps=4)
    with pytest.raises(ValueError, match="set save_checkpoints_steps=4"):
        est.train_and_evaluate(make_estimator(**config), est.TrainSpec(input_fn, 10), spec)


def test_the_evaluator_task_of_a_cluster_only_evaluates(run, make_estimator, input_fn, as_task):
    make_estimator().train(input_fn, steps=2)
    as_task("evaluator", tasks={"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]})
    assert run(2, start_delay_secs=0)[0]["global_step"] == 2


def test_training_that_ends_with_its_input_has_a_final_export(run, eval_input_fn):
    assert run(100, train_input_fn=eval_input_fn)[2].calls[-1] == (2, True)


def test_a_finished_run_is_evaluated_and_exported_again(run, make_estimator, input_fn):
    make_estimator().train(input_fn, max_steps=3)
    metrics, _, recorder = run(3)
    assert (metrics["global_step"], recorder.calls) == (3, [(3, True)])


def test_an_interrupted_run_goes_on_from_its_checkpoint(run, make_estimator):
    def interrupt(session):
        if session.run(tf.compat.v1.train.get_global_step()) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(6, hooks=[AfterEachRun(interrupt)])
    assert make_estimator().get_variable_value("global_step") == 2
    metrics, _, _ = run(6)
    assert metrics["global_step"] == 6
    assert metrics["loss"] == pytest.approx((2 - 2 / 2**6) ** 2)


@pytest.mark.more
def test_exporters_write_where_they_should(make_estimator, input_fn):
    estimator = make_estimator(save_checkpoints_steps=2)
    latest = est.LatestExporter("latest", _RECEIVER, exports_to_keep=1)
    final = est.FinalExporter("final", _RECEIVER)
    _, exports = est.train_and_evaluate(estimator, est.TrainSpec(input_fn, 4), _eval_spec([latest, final]))
    for name, path in zip(("latest", "final"), exports, strict=True):
        directory = os.path.join(estimator.model_dir, "export", name)
        assert [os.path.join(directory, version).encode() for version in os.listdir(directory)] == [path]
        serve = tf.saved_model.load(path.decode()).signatures["serving_default"]
        assert serve(examples=tf.constant([example(x=1.0)]))["y"].numpy() == 1.875


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
