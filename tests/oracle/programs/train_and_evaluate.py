"""train_and_evaluate: checkpoints, evaluations, exports and early stopping."""

import os

import tensorflow as tf

from tests.oracle import observe
from tests.oracle.programs import small
from tests.oracle.programs.program import Scenario

# Evaluate at each checkpoint, however fast they come.
AT_ONCE = {"start_delay_secs": 0, "throttle_secs": 0}


def _recorded(exporter, base, log):
    """Returns the exporter, made to write its arguments to `log`, and the files it leaves."""

    class Recorded(base):
        name = exporter.name

        def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
            result = exporter.export(
                estimator=estimator,
                export_path=export_path,
                checkpoint_path=checkpoint_path,
                eval_result=eval_result,
                is_the_final_export=is_the_final_export,
            )
            names = [name for name in small.files_in(export_path) if name.isdigit()]
            log.append(
                {
                    "exporter": self.name,
                    "path": os.path.relpath(export_path, estimator.model_dir),
                    "checkpoint": os.path.basename(checkpoint_path),
                    "metrics": sorted(eval_result),
                    "is_final": bool(is_the_final_export),
                    "exported": result is not None,
                    "exports": len(names),
                    "steps": [_step_of(os.path.join(export_path, name)) for name in names],
                }
            )
            return result

    return Recorded()


def _step_of(export_dir):
    reader = tf.train.load_checkpoint(os.path.join(export_dir, "variables", "variables"))
    return int(reader.get_tensor("global_step"))


def _evaluations(eval_dir):
    """Returns the metrics in the event files of an evaluation, by step."""
    metrics = {}
    for event in observe.events_of(eval_dir):
        for value in event.summary.value:
            if value.WhichOneof("value") == "simple_value":
                metrics.setdefault(str(event.step), {})[value.tag] = float(value.simple_value)
    return metrics


def exporters(e, model_dir):
    log = []
    estimator = small.regressor(e, model_dir, save_checkpoints_steps=10, keep_checkpoint_max=2)
    receiver_fn = small.receiver_fn(e)

    def steps_apart(best_eval_result, current_eval_result):
        return current_eval_result["global_step"] >= best_eval_result["global_step"] + 20

    ready_made = [
        e.LatestExporter("latest", receiver_fn, exports_to_keep=2),
        e.FinalExporter("final", receiver_fn),
        e.BestExporter("best", receiver_fn, exports_to_keep=1),
        e.BestExporter("apart", receiver_fn, compare_fn=steps_apart),
    ]
    metrics, results = e.train_and_evaluate(
        estimator,
        e.TrainSpec(small.train_input_fn, max_steps=35),
        e.EvalSpec(
            small.eval_input_fn,
            steps=None,
            exporters=[_recorded(exporter, e.Exporter, log) for exporter in ready_made],
            **AT_ONCE,
        ),
    )
    return {
        "exports": log,
        "metrics": small.plain(metrics),
        "results": [result is not None for result in results],
        "checkpoints": small.files_in(model_dir, ".index"),
        "evaluations": _evaluations(os.path.join(model_dir, "eval")),
        "directories": [name for name in small.files_in(model_dir) if os.path.isdir(f"{model_dir}/{name}")],
        "losses": observe.losses_of(model_dir),
    }


def throttled(e, model_dir):
    """Only the end is evaluated, under a name; then the same again, and further."""
    returned = []

    def to(max_steps):
        estimator = small.regressor(e, model_dir, save_checkpoints_steps=4)
        metrics, results = e.train_and_evaluate(
            estimator,
            e.TrainSpec(small.train_input_fn, max_steps=max_steps),
            e.EvalSpec(
                small.eval_input_fn,
                steps=3,
                name="test",
                exporters=e.FinalExporter("final", small.receiver_fn(e)),
                throttle_secs=600,
            ),
        )
        returned.append([small.plain(metrics), [result is not None for result in results or []]])

    to(10)
    to(14)
    return {
        "returned": returned,
        "checkpoints": small.files_in(model_dir, ".index"),
        "evaluations": _evaluations(os.path.join(model_dir, "eval_test")),
        "exports": len(small.files_in(os.path.join(model_dir, "export", "final"))),
    }


def _stops(e, model_dir, make_hook):
    """Returns the checkpoints of a training that a hook ends, with an evaluation every 5 steps."""
    estimator = small.regressor(e, model_dir, save_checkpoints_steps=5, keep_checkpoint_max=100)
    os.makedirs(estimator.eval_dir(), exist_ok=True)
    e.train_and_evaluate(
        estimator,
        e.TrainSpec(small.train_input_fn, max_steps=60, hooks=[make_hook(estimator)]),
        e.EvalSpec(small.eval_input_fn, steps=None, **AT_ONCE),
    )
    return {
        "global_step": int(estimator.get_variable_value("global_step")),
        "checkpoints": small.files_in(model_dir, ".index"),
        "evaluations": sorted(_evaluations(estimator.eval_dir()), key=int),
        "variables": estimator.get_variable_names(),
    }


def early_stopping(e, model_dir):
    every_step = {"run_every_secs": None, "run_every_steps": 1}
    asked = []

    def after_seven():
        asked.append(True)
        return len(asked) > 7

    hooks = {
        "lower": lambda estimator: e.experimental.stop_if_lower_hook(estimator, "loss", 2.72, **every_step),
        "lower_after_min_steps": lambda estimator: e.experimental.stop_if_lower_hook(
            estimator, "loss", 100.0, min_steps=23, **every_step
        ),
        "higher": lambda estimator: e.experimental.stop_if_higher_hook(
            estimator, "prediction/mean", 0.33, run_every_secs=None, run_every_steps=7
        ),
        "no_decrease": lambda estimator: e.experimental.stop_if_no_decrease_hook(
            estimator, "label/mean", max_steps_without_decrease=15, **every_step
        ),
        "no_increase": lambda estimator: e.experimental.stop_if_no_increase_hook(
            estimator, "average_loss", max_steps_without_increase=10, min_steps=12, **every_step
        ),
        "own_function": lambda estimator: e.experimental.make_early_stopping_hook(
            estimator, after_seven, run_every_secs=None, run_every_steps=3
        ),
        "never": lambda estimator: e.experimental.stop_if_lower_hook(estimator, "loss", -1.0, **every_step),
    }
    return {name: _stops(e, os.path.join(model_dir, name), make_hook) for name, make_hook in hooks.items()}


def in_memory_evaluator(e, model_dir):
    """Evaluations within training, on the variables of the session."""
    estimator = small.regressor(e, model_dir)
    hook = e.experimental.InMemoryEvaluatorHook(estimator, small.eval_input_fn, every_n_iter=4)
    named = e.experimental.InMemoryEvaluatorHook(
        estimator, small.eval_input_fn, steps=2, name="two", every_n_iter=10
    )
    estimator.train(small.train_input_fn, hooks=[hook, named], steps=10)
    return {
        "all": _evaluations(estimator.eval_dir()),
        "two": _evaluations(estimator.eval_dir("two")),
        "checkpoints": small.files_in(model_dir, ".index"),
    }


SCENARIOS = {
    f"train_and_evaluate_{function.__name__}": Scenario(function)
    for function in (exporters, throttled, early_stopping, in_memory_evaluator)
}
