"""Stock TFX's nine components from a CSV to a pushed model, on its LocalDagRunner.

`pipeline_speed.py` runs this as the peer of `python -m pipelines run`. A module has its
`preprocessing_fn` and `run_fn`.
"""

import argparse
import logging
import pathlib

from components.tfx import compat as tfx_compat


def main() -> None:
    """Runs the pipeline of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder of the CSV")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--module", default="benchmarks.stock_keras_module")
    parser.add_argument("--label", default="tips_xf", help="transformed label")
    parser.add_argument("--slice", default="trip_start_hour", help="column to slice by; may be empty")
    args = parser.parse_args()

    tfx_compat.install()  # stock TFX 1.21 does not start without it
    import tensorflow_model_analysis as tfma
    from tfx import v1 as tfx

    logging.getLogger().setLevel(logging.WARNING)
    example_gen = tfx.components.CsvExampleGen(input_base=str(args.data))
    statistics_gen = tfx.components.StatisticsGen(examples=example_gen.outputs["examples"])
    schema_gen = tfx.components.SchemaGen(
        statistics=statistics_gen.outputs["statistics"], infer_feature_shape=False
    )
    example_validator = tfx.components.ExampleValidator(
        statistics=statistics_gen.outputs["statistics"], schema=schema_gen.outputs["schema"]
    )
    transform = tfx.components.Transform(
        examples=example_gen.outputs["examples"],
        schema=schema_gen.outputs["schema"],
        preprocessing_fn=f"{args.module}.preprocessing_fn",
        disable_statistics=True,  # as in ours
    )
    trainer = tfx.components.Trainer(
        run_fn=f"{args.module}.run_fn",
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=schema_gen.outputs["schema"],
        train_args=tfx.proto.TrainArgs(num_steps=args.steps),
        eval_args=tfx.proto.EvalArgs(num_steps=150),
    )
    latest_blessed = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
        model=tfx.dsl.Channel(type=tfx.types.standard_artifacts.Model),
        model_blessing=tfx.dsl.Channel(type=tfx.types.standard_artifacts.ModelBlessing),
    ).with_id("LatestBlessedModel")
    evaluator = tfx.components.Evaluator(
        examples=example_gen.outputs["examples"],
        model=trainer.outputs["model"],
        baseline_model=latest_blessed.outputs["model"],
        eval_config=_eval_config(tfma.proto.config_pb2, args.label, args.slice),
    )
    pusher = tfx.components.Pusher(
        model=trainer.outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        push_destination=tfx.proto.PushDestination(
            filesystem=tfx.proto.PushDestination.Filesystem(base_directory=str(args.root / "serving"))
        ),
    )
    tfx.orchestration.LocalDagRunner().run(
        tfx.dsl.Pipeline(
            pipeline_name="stock",
            pipeline_root=str(args.root / "artifacts"),
            metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config(
                str(args.root / "metadata.sqlite")
            ),
            components=[
                example_gen, statistics_gen, schema_gen, example_validator, transform,
                trainer, latest_blessed, evaluator, pusher,
            ],
            enable_cache=False,
            beam_pipeline_args=[
                "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner",
                tfx_compat.BEAM_PLUGIN_ARG,
            ],
        )
    )  # fmt: skip


def _eval_config(config_pb2, label, column):
    """Returns our default metrics of a binary label, the threshold of `taxi.toml`, and slices by a column."""
    bound = config_pb2.MetricThreshold()
    bound.value_threshold.lower_bound.value = 0.6
    names = (
        "AUCPrecisionRecall", "BinaryAccuracy", "Precision", "Recall",
        "MeanLabel", "MeanPrediction", "ExampleCount",
    )  # fmt: skip
    metrics = [config_pb2.MetricConfig(class_name=name) for name in names]
    metrics.append(config_pb2.MetricConfig(class_name="AUC", threshold=bound))
    return config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(
                signature_name="serving_default",
                label_key=label,
                preprocessing_function_names=["transform_features"],
            )
        ],
        slicing_specs=[
            config_pb2.SlicingSpec(),
            *([config_pb2.SlicingSpec(feature_keys=[column])] if column else []),
        ],
        metrics_specs=[config_pb2.MetricsSpec(metrics=metrics)],
    )


if __name__ == "__main__":
    main()
