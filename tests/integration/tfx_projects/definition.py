"""Definitions as of TFX 1.0 to 1.15: `python definition.py NAME [ACCURACY]` runs one."""

import os
import sys

import tensorflow_model_analysis as tfma
from tfx import v1 as tfx
from tfx.components import (
    CsvExampleGen,
    Evaluator,
    ExampleValidator,
    Pusher,
    SchemaGen,
    StatisticsGen,
    Trainer,
    Transform,
)
from tfx.components.pusher import executor as pusher_executor
from tfx.components.trainer import executor as trainer_executor
from tfx.dsl.compiler.compiler import Compiler
from tfx.dsl.components.base import executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.portable import runtime_parameter_utils
from tfx.types import artifact_utils

HERE = os.path.abspath(os.getcwd())
MODULE = "taxi_module.py"


class ArchivingPusher(pusher_executor.Executor):
    """Pushes to an archive of the team's own."""

    def Do(self, input_dict, output_dict, exec_properties):
        self._log_startup(input_dict, output_dict, exec_properties)
        pushed = artifact_utils.get_single_instance(output_dict["pushed_model"])
        if not self.CheckBlessing(input_dict):
            self._MarkNotPushed(pushed)
            return
        archive = os.path.join(HERE, "archive", "7")
        tfx.dsl.io.fileio.makedirs(os.path.dirname(archive))
        tfx.dsl.io.fileio.rename(self.GetModelPath(input_dict), archive)
        self._MarkPushed(pushed, pushed_destination=archive, pushed_version="7")


def eval_config(accuracy):
    threshold = tfma.MetricThreshold(
        value_threshold=tfma.GenericValueThreshold(lower_bound={"value": accuracy}),
        change_threshold=tfma.GenericChangeThreshold(
            direction=tfma.MetricDirection.HIGHER_IS_BETTER, absolute={"value": -0.5}
        ),
    )
    return tfma.EvalConfig(
        model_specs=[tfma.ModelSpec(signature_name="eval")],
        slicing_specs=[tfma.SlicingSpec(), tfma.SlicingSpec(feature_keys=["trip_start_hour"])],
        metrics_specs=[tfma.MetricsSpec(thresholds={"accuracy": threshold})],
    )


def create_pipeline(name, accuracy):
    example_gen = CsvExampleGen(input_base=os.path.join(HERE, "data"))
    statistics_gen = StatisticsGen(examples=example_gen.outputs["examples"])
    schema_gen = SchemaGen(statistics=statistics_gen.outputs["statistics"], infer_feature_shape=False)
    validator = ExampleValidator(
        statistics=statistics_gen.outputs["statistics"], schema=schema_gen.outputs["schema"]
    )
    module, function, serving = MODULE, None, os.path.join(HERE, "serving")
    config = {"hidden_units": [8]}
    destination = tfx.proto.PushDestination(
        filesystem=tfx.proto.PushDestination.Filesystem(base_directory=serving)
    )
    if name == "runtime_parameters":
        # Defaults with which the run would fail.
        module, function, config, serving = (
            RuntimeParameter(name=name, default=f"no_{name}", ptype=str)
            for name in ("module", "function", "config", "serving")
        )
        destination = {"filesystem": {"base_directory": serving}}
    elif name == "custom_pusher":
        destination = None
    transform = Transform(
        examples=example_gen.outputs["examples"], schema=schema_gen.outputs["schema"], module_file=MODULE
    )
    warm_start = (
        tfx.dsl.Resolver(
            strategy_class=tfx.dsl.experimental.LatestArtifactStrategy,
            latest_model=tfx.dsl.Channel(type=tfx.types.standard_artifacts.Model),
        ).with_id("latest_model_resolver")
        if name == "warm_start"
        else None
    )
    is_generic = name in ("run_fn", "runtime_parameters")
    executor = trainer_executor.GenericExecutor if is_generic else trainer_executor.Executor
    trainer = Trainer(
        module_file=module,
        run_fn=function,
        custom_executor_spec=executor_spec.ExecutorClassSpec(executor),
        transformed_examples=transform.outputs["transformed_examples"],
        schema=schema_gen.outputs["schema"],
        base_model=warm_start.outputs["latest_model"] if warm_start else None,
        transform_graph=transform.outputs["transform_graph"],
        train_args=tfx.proto.TrainArgs(num_steps=2000),
        eval_args=tfx.proto.EvalArgs(num_steps=4),
        custom_config=config,
    )
    model_resolver = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
        model=tfx.dsl.Channel(type=tfx.types.standard_artifacts.Model),
        model_blessing=tfx.dsl.Channel(type=tfx.types.standard_artifacts.ModelBlessing),
    ).with_id("latest_blessed_model_resolver")
    evaluator = Evaluator(
        examples=example_gen.outputs["examples"],
        model=trainer.outputs["model"],
        baseline_model=model_resolver.outputs["model"],
        eval_config=eval_config(accuracy),
    )
    pusher = Pusher(
        model=trainer.outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        push_destination=destination,
        custom_executor_spec=executor_spec.ExecutorClassSpec(ArchivingPusher)
        if name == "custom_pusher"
        else None,
    )
    steps = [example_gen, statistics_gen, schema_gen, validator, transform, warm_start, trainer]
    steps += [model_resolver, evaluator, pusher]
    return tfx.dsl.Pipeline(
        pipeline_name=name,
        pipeline_root=os.path.join(HERE, "root"),
        components=[step for step in steps if step],
        enable_cache=name != "warm_start",
        metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config(
            os.path.join(HERE, "metadata.db")
        ),
        beam_pipeline_args=["--direct_running_mode=in_memory", "--direct_num_workers=1"],
    )


if __name__ == "__main__":
    pipeline = create_pipeline(sys.argv[1], float((*sys.argv[2:], 0.6)[0]))
    runner = tfx.orchestration.LocalDagRunner()
    if sys.argv[1] == "runtime_parameters":
        compiled = Compiler().compile(pipeline)
        values = {
            "module": MODULE,
            "function": "run_fn",
            "config": '{"hidden_units": [5]}',
            "serving": os.path.join(HERE, "serving"),
        }
        runtime_parameter_utils.substitute_runtime_parameter(compiled, values)
        runner.run_with_ir(compiled)
    else:
        runner.run(pipeline)
