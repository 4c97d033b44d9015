"""The table of public symbols: tf.estimator 2.15's, ours, and the test that exercises each.

python -m tests.estimator_core.api_table     writes docs/api.md
"""

import ast
import importlib
import json
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
PATH = ROOT / "docs" / "api.md"
SYMBOLS = json.loads((pathlib.Path(__file__).parent / "public_symbols.json").read_text())

OURS = {
    "tf.estimator": "estimator_core",
    "tf.compat.v1.estimator": "estimator_core.v1",
    "tf.keras.estimator": "estimator_core",
}

_CORE = "tests/estimator_core/"
_KERAS = f"{_CORE}keras_in_graph/"
_HOOKS = "tests/estimator_core/hooks/test_session_run_hooks.py::"
_STOPPING = "tests/estimator_core/hooks/test_early_stopping.py::"
_EXPORT = "tests/estimator_core/export/"
_EXPERIMENTAL = "tests/estimator_core/experimental/"


def _oracle(program):
    return f"tests/oracle/test_oracle.py::test_losses_step_by_step[{program}]"


TESTS = {
    "BaselineClassifier": _oracle("baseline_classifier"),
    "BaselineEstimator": _oracle("baseline_estimator"),
    "BaselineRegressor": _oracle("baseline_regressor"),
    "BestExporter": f"{_EXPORT}test_best_exporter.py::test_only_a_smaller_loss_is_exported",
    "BinaryClassHead": f"{_CORE}heads/test_binary_class.py::test_loss_is_the_mean_over_the_batch",
    "CheckpointSaverHook": f"{_HOOKS}test_checkpoint_saver_hook_and_listener",
    "CheckpointSaverListener": f"{_HOOKS}test_checkpoint_saver_hook_and_listener",
    "DNNClassifier": _oracle("dnn_classifier"),
    "DNNEstimator": _oracle("dnn_multi_label"),
    "DNNLinearCombinedClassifier": _oracle("combined_classifier"),
    "DNNLinearCombinedEstimator": _oracle("estimator_with_head"),
    "DNNLinearCombinedRegressor": _oracle("combined_regressor"),
    "DNNRegressor": _oracle("dnn_regressor_adam"),
    "Estimator": f"{_CORE}graphs/test_loops.py::test_train_calls_hooks_and_saving_listeners",
    "EstimatorSpec": f"{_CORE}spec/test_estimator_spec.py::test_each_mode_needs_its_arguments",
    "EvalSpec": f"{_CORE}training/test_train_and_evaluate.py"
    "::test_every_checkpoint_is_evaluated_and_exported_once",
    "Exporter": f"{_CORE}training/test_train_and_evaluate.py::test_exporters_write_where_they_should",
    "FeedFnHook": f"{_HOOKS}test_feed_fn_hook",
    "FinalExporter": f"{_CORE}training/test_train_and_evaluate.py::test_exporters_write_where_they_should",
    "FinalOpsHook": f"{_HOOKS}test_final_ops_hook",
    "GlobalStepWaiterHook": f"{_HOOKS}test_global_step_waiter_hook",
    "Head": f"{_CORE}heads/test_base.py::test_abstract_methods_are_named",
    "LatestExporter": f"{_CORE}training/test_train_and_evaluate.py::test_exporters_write_where_they_should",
    "LinearClassifier": _oracle("linear_classifier"),
    "LinearEstimator": _oracle("linear_logistic_regression"),
    "LinearRegressor": _oracle("linear_regressor_weighted"),
    "LoggingTensorHook": f"{_HOOKS}test_logging_tensor_hook",
    "LogisticRegressionHead": _oracle("linear_logistic_regression"),
    "ModeKeys": f"{_KERAS}test_calling.py::test_keras_metrics_are_evaluated_over_all_batches",
    "MultiClassHead": f"{_CORE}heads/test_multi_class.py::test_loss_is_the_mean_over_the_batch",
    "MultiHead": _oracle("linear_multi_head"),
    "MultiLabelHead": _oracle("dnn_multi_label"),
    "NanLossDuringTrainingError": f"{_HOOKS}test_nan_tensor_hook",
    "NanTensorHook": f"{_HOOKS}test_nan_tensor_hook",
    "PoissonRegressionHead": _oracle("linear_poisson_regression"),
    "ProfilerHook": f"{_HOOKS}test_summary_saver_step_counter_and_profiler_hooks",
    "RegressionHead": f"{_CORE}heads/test_regression.py::test_loss_is_the_mean_over_all_numbers",
    "RunConfig": f"{_CORE}test_run_config.py::test_defaults_are_those_of_tf_estimator",
    "SecondOrStepTimer": f"{_HOOKS}test_second_or_step_timer",
    "SessionRunArgs": f"{_HOOKS}test_session_run_args_context_and_values",
    "SessionRunContext": f"{_HOOKS}test_session_run_args_context_and_values",
    "SessionRunHook": f"{_HOOKS}test_session_run_args_context_and_values",
    "SessionRunValues": f"{_HOOKS}test_session_run_args_context_and_values",
    "StepCounterHook": f"{_HOOKS}test_summary_saver_step_counter_and_profiler_hooks",
    "StopAtStepHook": f"{_HOOKS}test_stop_at_step_hook",
    "SummarySaverHook": f"{_HOOKS}test_summary_saver_step_counter_and_profiler_hooks",
    "TrainSpec": f"{_CORE}training/test_train_and_evaluate.py"
    "::test_every_checkpoint_is_evaluated_and_exported_once",
    "VocabInfo": f"{_CORE}checkpoints/test_warm_start_report.py::test_each_way_of_starting_shows",
    "WarmStartSettings": f"{_CORE}checkpoints/test_warm_start_report.py::test_each_way_of_starting_shows",
    "add_metrics": f"{_CORE}training/test_add_metrics.py::test_metrics_are_added_and_replaced",
    "classifier_parse_example_spec": f"{_CORE}canned/test_parse_example_spec.py"
    "::test_a_classifier_spec_adds_the_label_and_the_weight",
    "experimental.InMemoryEvaluatorHook": f"{_EXPERIMENTAL}test_in_memory_evaluator_hook.py"
    "::test_evaluates_at_the_start_every_n_iterations_and_at_the_end",
    "experimental.KMeans": f"{_CORE}canned/test_kmeans.py"
    "::test_whole_batches_end_in_the_centers_of_scikit_learn",
    "experimental.LinearSDCA": f"{_CORE}sdca/test_linear_sdca.py"
    "::test_a_classifier_ends_in_the_weights_of_scikit_learn",
    "experimental.RNNClassifier": _oracle("rnn_simple"),
    "experimental.RNNEstimator": f"{_CORE}canned/test_rnn.py"
    "::test_learning_rate_and_names_of_a_named_optimizer",
    "experimental.build_raw_supervised_input_receiver_fn": f"{_EXPERIMENTAL}"
    "test_supervised_input_receiver.py::test_export_for_evaluation",
    "experimental.call_logit_fn": f"{_EXPERIMENTAL}test_logit_fn_builders.py"
    "::test_call_logit_fn_passes_what_is_asked_for",
    "experimental.dnn_logit_fn_builder": f"{_EXPERIMENTAL}test_logit_fn_builders.py"
    "::test_dnn_variables_are_in_the_current_scope",
    "experimental.linear_logit_fn_builder": f"{_EXPERIMENTAL}test_logit_fn_builders.py"
    "::test_a_model_fn_of_a_head_and_a_logit_fn",
    "experimental.make_early_stopping_hook": f"{_STOPPING}test_training_ends_when_the_function_says_so",
    "experimental.make_stop_at_checkpoint_step_hook": f"{_CORE}hooks/"
    "test_stop_at_checkpoint_step.py::test_the_chief_stops_at_the_step",
    "experimental.stop_if_higher_hook": f"{_STOPPING}test_another_directory_can_hold_the_evaluations",
    "experimental.stop_if_lower_hook": f"{_STOPPING}test_hooks_read_the_evaluations",
    "experimental.stop_if_no_decrease_hook": f"{_STOPPING}test_hooks_read_the_evaluations",
    "experimental.stop_if_no_increase_hook": f"{_STOPPING}test_hooks_read_the_evaluations",
    "export.ClassificationOutput": f"{_CORE}spec/test_export_outputs.py::test_all_are_export_outputs",
    "export.EvalOutput": f"{_CORE}spec/test_export_outputs.py::test_what_an_eval_output_holds",
    "export.ExportOutput": f"{_CORE}spec/test_export_outputs.py::test_all_are_export_outputs",
    "export.PredictOutput": f"{_CORE}heads/test_binary_class.py"
    "::test_export_outputs_are_classification_regression_and_predict",
    "export.RegressionOutput": f"{_CORE}heads/test_binary_class.py"
    "::test_export_outputs_are_classification_regression_and_predict",
    "export.ServingInputReceiver": f"{_EXPORT}test_saved_model.py"
    "::test_wrong_outputs_and_receivers_are_refused",
    "export.TensorServingInputReceiver": f"{_EXPORT}test_saved_model.py"
    "::test_a_bare_tensor_receiver_gives_model_fn_the_tensor",
    "export.build_parsing_serving_input_receiver_fn": f"{_CORE}canned/test_canned.py"
    "::test_the_exported_model_answers_as_predict_does",
    "export.build_raw_serving_input_receiver_fn": f"{_EXPORT}test_saved_model.py"
    "::test_the_exported_model_answers_raw_tensors",
    "inputs.numpy_input_fn": f"{_CORE}inputs/test_in_memory.py::test_batches_run_across_epochs",
    "inputs.pandas_input_fn": f"{_CORE}inputs/test_in_memory.py::test_data_frames_become_features_by_column",
    "model_to_estimator": f"{_CORE}keras_models/test_keras3_model.py"
    "::test_training_and_evaluation_are_those_of_keras",
    "regressor_parse_example_spec": f"{_CORE}canned/test_parse_example_spec.py"
    "::test_a_regressor_spec_adds_a_label_of_its_dimension",
    "train_and_evaluate": f"{_CORE}training/test_train_and_evaluate.py"
    "::test_every_checkpoint_is_evaluated_and_exported_once",
}
# Those that are others than the ones of the same name in tf.estimator.
TESTS_V1 = {
    "BaselineClassifier": _oracle("v1_baseline_classifier"),
    "BaselineEstimator": _oracle("v1_baseline_estimator"),
    "BaselineRegressor": _oracle("v1_baseline_regressor"),
    "DNNClassifier": _oracle("v1_dnn_classifier"),
    "DNNEstimator": f"{_CORE}v1/test_v1.py::test_heads_of_ones_own_train_and_continue",
    "DNNLinearCombinedClassifier": _oracle("v1_combined_classifier"),
    "DNNLinearCombinedEstimator": _oracle("v1_combined_estimator"),
    "DNNLinearCombinedRegressor": _oracle("v1_combined_regressor_partitioned"),
    "DNNRegressor": _oracle("v1_dnn_regressor"),
    "Estimator": f"{_CORE}v1/test_v1.py::test_export_savedmodel_writes_a_model_that_answers",
    "LinearClassifier": _oracle("v1_linear_classifier"),
    "LinearEstimator": f"{_CORE}v1/test_v1.py::test_heads_of_ones_own_train_and_continue",
    "LinearRegressor": _oracle("v1_linear_regressor"),
    **{name: f"{_CORE}tpu" for name in SYMBOLS["tf.compat.v1.estimator"] if name.startswith("tpu.")},
}


def ours(module, name):
    """Returns our object of that name; None when there is none."""
    value = importlib.import_module(OURS[module])
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def may_be_absent(name):
    """Returns whether a symbol need not be here yet: those for TPUs."""
    return name.startswith("tpu.")


def node_of(module, name):
    """Returns the node id of the test that exercises the symbol: a function's, or a directory's."""
    if module == "tf.compat.v1.estimator" and name in TESTS_V1:
        return TESTS_V1[name]
    return TESTS[name]


def source_of(node):
    """Returns the text in which a test names the symbols it exercises; None when there is no such test."""
    path, _, function = node.partition("::")
    function, _, parameter = function.rstrip("]").partition("[")
    if (ROOT / path).is_dir():
        return "".join(file.read_text() for file in sorted((ROOT / path).glob("**/test_*.py")))
    if not (ROOT / path).is_file():
        return None
    text = (ROOT / path).read_text()
    functions = {item.name for item in ast.parse(text).body if isinstance(item, ast.FunctionDef)}
    if function and function not in functions:
        return None
    if not parameter:
        return text
    for program in sorted((ROOT / "tests" / "oracle" / "programs").glob("*.py")):
        if f'"{parameter}": ' in program.read_text():
            return program.read_text()
    return None


def render():
    """Returns docs/api.md."""
    lines = [
        "# Public names",
        "",
        "This page lists every public name of `tf.estimator` 2.15 (the last release), of",
        "`tf.compat.v1.estimator` and of `tf.keras.estimator`, with the test that uses it. Our names",
        "are the same, in the package above each table. `tests/estimator_core/test_public_api.py` checks",
        "that each takes the arguments of 2.15, with the same defaults in the same positions, and that",
        "this page is current; `python -m tests.estimator_core.api_table` writes it.",
    ]
    for module, names in SYMBOLS.items():
        present = [name for name in names if ours(module, name) is not None]
        lines += [
            "",
            f"## {module}",
            "",
            f"{len(present)} of {len(names)} are in `{OURS[module]}`.",
            "",
            "| name | test |",
            "|---|---|",
        ]
        for name in sorted(names):
            if name not in present:
                lines.append(f"| `{name}` | absent |")
                continue
            node = node_of(module, name).removeprefix("tests/")
            lines.append(f"| `{name}` | `{node}` |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PATH.write_text(render())
