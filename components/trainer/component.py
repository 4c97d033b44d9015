"""The Trainer component."""

from typing import Any

from tfx.components.util import udf_utils
from tfx.dsl.components.base import base_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto.trainer_pb2 import EvalArgs, TrainArgs
from tfx.types import standard_artifacts, standard_component_specs
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ExecutionParameter
from tfx.utils import json_utils

from components.tfx.cloud import check_executor
from components.tfx.kubeflow_runner import ModuleFileInWheel
from components.trainer import executor
from components.trainer.local_cluster import LocalCluster
from components.trainer.user_function import NO_SCHEMA, TRAINER_FN_KEY, USER_CODE_KEY
from components.user import source as user_source


class TrainerSpec(standard_component_specs.TrainerSpec):
    """TFX's TrainerSpec with `trainer_fn`, which TFX dropped, the user code's fingerprint and `cluster`."""

    PARAMETERS = {
        **standard_component_specs.TrainerSpec.PARAMETERS,
        TRAINER_FN_KEY: ExecutionParameter(type=str, optional=True),
        USER_CODE_KEY: ExecutionParameter(type=str, optional=True),
        executor.CLUSTER_KEY: ExecutionParameter(type=str, optional=True),
    }


class Trainer(base_component.BaseComponent):
    """Trains with the user's `trainer_fn` or `run_fn` and writes the model.

    `trainer_fn(trainer_fn_args, schema)` is TFX's classic contract: it returns a dict with
    `estimator`, `train_spec`, `eval_spec` and `eval_input_receiver_fn`. The Trainer runs
    `train_and_evaluate`, takes the export of the eval_spec's first exporter as the serving model,
    and writes the evaluation model from `eval_input_receiver_fn`. `run_fn(fn_args)` is TFX's
    generic contract: it writes the model to `fn_args.serving_model_dir` itself.

    Outputs:
        model: `Model`, with `Format-Serving/` (the SavedModel to serve) and, from a trainer_fn,
            `Format-TFMA/` (the SavedModel with the signature `eval`).
        model_run: `ModelRun`, with checkpoints and event files.

    Training that is killed continues from its last checkpoint when the component runs again under
    the same pipeline run id.

    With a `cluster`, the trainer_fn is called in each process of the cluster as well as in the component's
    own, and trains with parameter servers. The exports of the evaluator's process are served; without an
    evaluator, the last checkpoint is evaluated and exported after the training, in the component's process.
    The first error in any process ends all of them and becomes the component's error. The tasks' logs are
    in `logs/` of the model_run.

    Example:
        trainer = Trainer(
            examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            schema=schema_gen.outputs["schema"],
            trainer_fn="my_project.taxi.trainer_fn",
            train_args=TrainArgs(num_steps=1000),
            eval_args=EvalArgs(num_steps=150),
        )

    Source: TFX's Trainer, with the classic executor of TFX before 1.16. Unlike TFX's, it keeps
    unfinished training across executions, loads a module file without building a wheel (except for a
    pipeline that TFX compiles for Kubeflow), and runs again instead of using the cache when the user's code
    has changed.
    """

    SPEC_CLASS = TrainerSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.GenericExecutor)

    def __init__(
        self,
        examples: BaseChannel | None = None,
        transformed_examples: BaseChannel | None = None,
        transform_graph: BaseChannel | None = None,
        schema: BaseChannel | None = None,
        base_model: BaseChannel | None = None,
        hyperparameters: BaseChannel | None = None,
        module_file: str | RuntimeParameter | None = None,
        run_fn: str | RuntimeParameter | None = None,
        trainer_fn: str | RuntimeParameter | None = None,
        train_args: TrainArgs | RuntimeParameter | None = None,
        eval_args: EvalArgs | RuntimeParameter | None = None,
        custom_config: dict[str, Any] | RuntimeParameter | None = None,
        custom_executor_spec: executor_spec.ExecutorSpec | None = None,
        statistics: BaseChannel | None = None,
        cluster: LocalCluster | None = None,
    ) -> None:
        """Declares the component.

        Args:
            examples: Channel of `Examples`, transformed or raw. Required, unless `transformed_examples` is
                given.
            transformed_examples: Old name of `examples`, for those of Transform.
            transform_graph: Channel of `TransformGraph`, from Transform.
            schema: Channel of `Schema`, the second argument of a trainer_fn. Default: the schema
                in the transform_graph.
            base_model: Channel of `Model` to start from; reaches the user as `base_model`, the
                path of its serving model.
            hyperparameters: Channel of `HyperParameters`, from a Tuner.
            module_file: Path of a Python file that defines `run_fn` or `trainer_fn`. If it defines both,
                run_fn is called, unless `custom_executor_spec` says otherwise.
            run_fn: Import path of the function or, with `module_file`, its name in that file.
            trainer_fn: Import path or name of a trainer_fn, in the same way.
            train_args: `num_steps` and `splits` for training. Default: the split `train`, without a
                limit on the steps.
            eval_args: `num_steps` and `splits` for evaluation. Default: the split `eval`, all of it.
            custom_config: Values that JSON can hold; the user's function receives them as `custom_config`.
            custom_executor_spec: `ExecutorClassSpec` of another executor. `Executor` of
                `components.trainer.executor` calls the module's trainer_fn, `GenericExecutor` its run_fn.
            statistics: Channel of `ExampleStatistics`; the user's function receives the number of examples
                by split as `num_examples`.
            cluster: Processes on this machine that train together. Default: this process alone. Not
                possible with a run_fn: each process would write the model.

        Raises:
            ValueError: Neither or both of trainer_fn and run_fn are given, a trainer_fn has no schema,
                a run_fn has a cluster, there are no examples, or the executor trains in a cloud.
            TypeError: custom_config is not a dict, or holds values that JSON cannot.
        """
        check_user_function(
            "Trainer", trainer_fn, run_fn, module_file, schema or transform_graph, custom_config
        )
        if (examples is None) == (transformed_examples is None):
            raise ValueError(
                "Trainer takes one of examples and transformed_examples, the older name. "
                f"Received: examples={examples}, transformed_examples={transformed_examples}"
            )
        if run_fn and cluster is not None:
            raise ValueError(
                f"{executor.NO_RUN_FN_IN_A_CLUSTER} Received: run_fn={run_fn!r}, cluster={cluster}"
            )
        check_executor("Trainer", custom_executor_spec)
        is_at_run_time = any(isinstance(code, RuntimeParameter) for code in (module_file, trainer_fn, run_fn))
        spec = TrainerSpec(
            statistics=statistics,
            examples=examples or transformed_examples,
            transform_graph=transform_graph,
            schema=schema,
            base_model=base_model,
            hyperparameters=hyperparameters,
            train_args=train_args or TrainArgs(),
            eval_args=eval_args or EvalArgs(),
            module_file=module_file,
            run_fn=run_fn,
            trainer_fn=trainer_fn,
            user_code=None
            if is_at_run_time  # the code is not known before run time
            else user_source.fingerprint(
                import_path=None if module_file else trainer_fn or run_fn, module_file=module_file
            ),
            custom_config=custom_config
            if isinstance(custom_config, RuntimeParameter)
            else json_utils.dumps(custom_config),
            cluster=cluster.to_json() if cluster else None,
            model=Channel(type=standard_artifacts.Model),
            model_run=Channel(type=standard_artifacts.ModelRun),
        )
        super().__init__(spec=spec, custom_executor_spec=custom_executor_spec)
        if module_file and udf_utils.should_package_user_modules():
            self._add_pip_dependency(
                ModuleFileInWheel(
                    self, standard_component_specs.MODULE_FILE_KEY, standard_component_specs.MODULE_PATH_KEY
                )
            )


def check_user_function(
    component: str,
    trainer_fn: str | RuntimeParameter | None,
    run_fn: str | RuntimeParameter | None,
    module_file: str | RuntimeParameter | None,
    schema: BaseChannel | None,
    custom_config: dict[str, Any] | RuntimeParameter | None,
) -> None:
    """Checks the arguments of a component that name the user's training function."""
    if trainer_fn and run_fn:
        raise ValueError(
            f"{component} takes one of trainer_fn and run_fn. "
            f"Received: trainer_fn={trainer_fn!r}, run_fn={run_fn!r}"
        )
    if not (trainer_fn or run_fn or module_file):
        raise ValueError(f"{component} needs a trainer_fn, a run_fn or a module_file.")
    if trainer_fn and schema is None:
        raise ValueError(NO_SCHEMA)
    if not isinstance(custom_config, dict | RuntimeParameter | None):
        raise TypeError(f"custom_config must be a dict. Received: {custom_config!r}")
