"""SessionRunHooks and CheckpointSaverListeners: their calls, in order, with the arguments."""

import tensorflow as tf

from tests.oracle import observe
from tests.oracle.programs import small
from tests.oracle.programs.program import Scenario

tf1 = tf.compat.v1


def recording_hook(e, name, log, stop_after=None):
    """Returns a hook that writes its calls to `log`; it stops after `stop_after` runs."""

    class RecordingHook(e.SessionRunHook):
        runs = 0

        def begin(self):
            log.append(f"{name}: begin, graph finalized: {tf1.get_default_graph().finalized}")
            self.step = tf1.train.get_global_step()

        def after_create_session(self, session, coord):
            finalized = session.graph.finalized
            log.append(f"{name}: session at {session.run(self.step)}, finalized: {finalized}")

        def before_run(self, run_context):
            log.append(f"{name}: before")
            return e.SessionRunArgs({"step": self.step})

        def after_run(self, run_context, run_values):
            step = run_context.session.run(self.step)
            log.append(f"{name}: after, {sorted(run_values.results)} read, step now {step}")
            self.runs += 1
            if self.runs == stop_after:
                run_context.request_stop()

        def end(self, session):
            log.append(f"{name}: end at {session.run(self.step)}")

    return RecordingHook()


def recording_listener(e, name, log):
    """Returns a listener that writes its calls to `log`."""

    class RecordingListener(e.CheckpointSaverListener):
        def begin(self):
            log.append(f"{name}: begin")

        def before_save(self, session, global_step_value):
            log.append(f"{name}: before saving {global_step_value}")

        def after_save(self, session, global_step_value):
            log.append(f"{name}: after saving {global_step_value}")

        def end(self, session, global_step_value):
            log.append(f"{name}: end at {global_step_value}")

    return RecordingListener()


def _by_name(log):
    """Returns the calls of each hook and listener."""
    calls = {}
    for entry in log:
        name, call = entry.split(": ", 1)
        calls.setdefault(name, []).append(call)
    return calls


def calls(e, model_dir):
    """The arguments that each hook sees; evaluation and prediction as one sequence."""
    training, rest = _all_calls(e, model_dir)
    return {"training": _by_name(training), "rest": rest}


def order(e, model_dir):
    """The order in which hooks and listeners of one training are called."""
    return _all_calls(e, model_dir)[0]


def _all_calls(e, model_dir):
    log = []

    def spec_arguments(loss):
        if loss is None:
            return {"prediction_hooks": [recording_hook(e, "prediction of model_fn", log)]}
        return {
            "training_hooks": [recording_hook(e, "training of model_fn", log)],
            "training_chief_hooks": [recording_hook(e, "chief of model_fn", log)],
            "evaluation_hooks": [recording_hook(e, "evaluation of model_fn", log)],
        }

    config = small.run_config(e, model_dir, save_checkpoints_steps=2)
    estimator = e.Estimator(small.line_model_fn(e, spec_arguments), config=config)
    estimator.train(
        small.train_input_fn,
        hooks=[recording_hook(e, "training", log)],
        steps=3,
        saving_listeners=[recording_listener(e, f"listener {i}", log) for i in range(2)],
    )
    training = list(log)
    log.clear()
    estimator.evaluate(small.eval_input_fn, steps=2, hooks=[recording_hook(e, "evaluation", log)])
    rows = estimator.predict(small.eval_input_fn, hooks=[recording_hook(e, "prediction", log)])
    next(rows)
    log.append("one row was read")
    log.append(f"{len(list(rows))} more rows were read")
    return training, log


def stopping(e, model_dir):
    log = []
    estimator = small.regressor(e, model_dir, save_checkpoints_steps=50)
    estimator.train(small.train_input_fn, hooks=[recording_hook(e, "first", log, stop_after=3)], steps=10)
    estimator.train(small.train_input_fn, hooks=[e.StopAtStepHook(last_step=7)], steps=10)
    estimator.train(small.train_input_fn, hooks=[e.StopAtStepHook(num_steps=2)], max_steps=20)
    estimator.train(small.train_input_fn, hooks=[recording_hook(e, "done", log)], max_steps=9)
    metrics = estimator.evaluate(
        small.eval_input_fn, hooks=[recording_hook(e, "evaluation", log, stop_after=2)]
    )
    return {
        "calls": log,
        "metrics": small.plain(metrics),
        "checkpoints": small.files_in(model_dir, ".index"),
        "losses": observe.losses_of(model_dir),
    }


def ready_made(e, model_dir):
    """The log lines, files and errors of the hooks that come with the API."""
    formatted = []

    def format_values(values):
        formatted.append({name: small.plain(value) for name, value in values.items()})
        return "formatted"

    def spec_arguments(loss):
        if loss is None:
            return {}
        named_loss = tf.identity(loss, name="named_loss")
        summary = tf1.summary.scalar("twice_the_loss", 2.0 * loss, collections=["of_the_hook"])
        return {
            "training_hooks": [
                e.LoggingTensorHook(
                    {"the_loss": loss, "half_of_it": loss / 2.0}, every_n_iter=4, formatter=format_values
                ),
                e.LoggingTensorHook([named_loss.name], at_end=True, formatter=format_values),
                e.SummarySaverHook(save_steps=8, output_dir=f"{model_dir}/of_the_hook", summary_op=summary),
                e.CheckpointSaverHook(f"{model_dir}/copies", save_steps=6),
                e.StepCounterHook(every_n_steps=4, output_dir=f"{model_dir}/rates"),
                e.GlobalStepWaiterHook(0),
                e.NanTensorHook(loss),
            ],
            "training_chief_hooks": [],
        }

    config = small.run_config(e, model_dir, save_checkpoints_steps=100)
    estimator = e.Estimator(small.line_model_fn(e, spec_arguments), config=config)
    estimator.train(small.train_input_fn, steps=10)
    # Not their steps: a step sees the global step of before or after its own update.
    events = [
        value.tag
        for directory in ("of_the_hook", "rates")
        for event in observe.events_of(f"{model_dir}/{directory}")
        for value in event.summary.value
    ]
    return {
        "formatted": formatted,
        "events": events,
        "copies": small.files_in(f"{model_dir}/copies", ".index"),
        "checkpoints": small.files_in(model_dir, ".index"),
    }


def not_a_number(e, model_dir):
    def nan_input_fn():
        sizes = tf.constant([1.0, 2.0, float("nan"), 3.0])
        dataset = tf.data.Dataset.from_tensor_slices(({"size": sizes}, tf.ones([4])))
        return dataset.batch(1, drop_remainder=True)

    log = []
    config = small.run_config(e, model_dir, save_checkpoints_steps=1)
    estimator = e.Estimator(small.line_model_fn(e), config=config)
    try:
        estimator.train(nan_input_fn, hooks=[recording_hook(e, "training", log)])
        error = None
    except e.NanLossDuringTrainingError:
        error = "NanLossDuringTrainingError"
    return {
        "error": error,
        "calls": log,
        "wrong_hook": small.error_of(estimator.train, small.train_input_fn, hooks=[7], steps=1),
        "wrong_listener": small.error_of(
            estimator.train, small.train_input_fn, steps=1, saving_listeners=[7]
        ),
    }


SCENARIOS = {
    "hooks_calls": Scenario(calls),
    "hooks_order": Scenario(order),
    "hooks_stopping": Scenario(stopping),
    "hooks_ready_made": Scenario(ready_made),
    "hooks_not_a_number": Scenario(not_a_number),
}
