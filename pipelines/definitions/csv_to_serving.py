"""CSV -> gated, versioned model: the DAG."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import components
from components.tfx.compat import BEAM_PLUGIN_ARG
from pipelines.data.staging import StagedData
from pipelines.definitions.model_code import ModelCode

# Beam would otherwise download and start a runner of its own.
IN_PROCESS_RUNNER = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"

# TFX would pack itself for workers elsewhere, for each component anew: seconds, and 45 MB that stay in the
# temporary folder. It does not where an image is named, which of Beam's runners only Dataflow's looks at.
NO_TFX_PACKAGE = "--sdk_container_image=unused"


@dataclass(frozen=True)
class PipelinePlaces:
    """Where a pipeline keeps what it makes.

    Attributes:
      artifacts: Outputs of the components.
      metadata: How ML Metadata is reached.
      serving: The versions that are served.
      withdrawn: Those that were taken out of service.
    """

    artifacts: Path
    metadata: components.ConnectionConfig
    serving: Path
    withdrawn: Path


@dataclass(frozen=True)
class SchemaFile:
    """A schema, and the content that it is meant to have.

    Attributes:
      file: A `Schema` proto as text.
      fingerprint: SHA-256 of the file, in hexadecimal digits; empty takes it as it is.
    """

    file: Path
    fingerprint: str = ""


@dataclass(frozen=True, eq=False)
class CsvToServing:
    """The pipeline, and its components by what they do in it."""

    pipeline: components.Pipeline
    example_gen: components.CsvExampleGen
    statistics_gen: components.StatisticsGen
    schema_gen: components.SchemaGen | components.ImportSchemaGen
    served_statistics: components.Resolver
    example_validator: components.ExampleValidator
    transform: components.Transform
    served_model: components.Resolver
    trainer: components.Trainer
    evaluator: components.Evaluator
    pusher: components.Pusher
    root_schema: components.ImportSchemaGen | None = None


def csv_to_serving(
    name: str,
    data: StagedData,
    code: ModelCode,
    eval_config: Any,
    places: PipelinePlaces,
    enable_cache: bool = True,
    keep: int | None = None,
    newer_than: int = 0,
    taken_over: tuple[str, ...] = (),
    model_fingerprint: str = "",
    baseline_then: tuple[str, float, float] | None = None,
    beam_args: tuple[str, ...] = (),
    curated_schema: SchemaFile | None = None,
    infer_feature_shape: bool = False,
    cluster: components.LocalCluster | None = None,
    group_column: str | None = None,
    text_columns: tuple[str, ...] = (),
    label_column: str | None = None,
    drift_limits: components.DriftLimits | None = None,
    moving_columns: tuple[str, ...] = (),
    float_columns: tuple[str, ...] = (),
    root_schema: SchemaFile | None = None,
    accepted_run: str = "",
    warm_start: bool = False,
) -> CsvToServing:
    """Returns the pipeline.

    Args:
      name: Of the pipeline.
      data: What CsvExampleGen reads.
      code: The functions of Transform and Trainer.
      eval_config: Metrics, slices and thresholds.
      places: Where everything goes.
      enable_cache: Whether a component is skipped when nothing it depends on has changed.
      keep: Number of served versions to keep; None keeps all.
      newer_than: The highest version so far, which may be out of service.
      taken_over: Runs that were killed after their push: the same model is not pushed again.
      model_fingerprint: Of all that the model is made of: one that is served is not pushed again.
      baseline_then: What the model that serves reached when it was pushed, see `DefaultChecks`.
      beam_args: Further Beam options; they go before the in-process runner.
      curated_schema: The user's own; None infers it.
      infer_feature_shape: Whether an inferred schema fixes the shape of columns without gaps. By
        default it does not: a feature that a client leaves out is a missing value.
      cluster: Processes that train together; None trains in one.
      group_column: Rows with one value in it fall into one split; None draws rows.
      text_columns: Columns that stay text though they look like numbers.
      label_column: Raw column of the label, in which every anomaly is severe.
      drift_limits: From where on a column has drifted.
      moving_columns: Columns that are meant to be others each time.
      float_columns: Columns that are float32 though all their cells are integers.
      root_schema: The schema that the data are held against; None takes that of the model.
      accepted_run: Run whose data they are compared with; empty for those of the model that serves.
      warm_start: Whether the Trainer is given the model that serves to start from.
    """
    example_gen = components.CsvExampleGen(
        input_base=str(data.folder),
        input_config=components.Input(
            splits=[
                components.Input.Split(name=split, pattern=pattern)
                for split, pattern in data.splits or (("single_split", data.pattern),)
            ]
        ),
        output_config=_divided_by(group_column),
        text_columns=text_columns,
        float_columns=float_columns,
        files=data.files,
    )
    statistics_gen = components.StatisticsGen(
        examples=example_gen.outputs["examples"], stats_options=_stats_options()
    )
    schema_gen: components.SchemaGen | components.ImportSchemaGen
    if curated_schema is None:
        schema_gen = components.SchemaGen(
            statistics=statistics_gen.outputs["statistics"], infer_feature_shape=infer_feature_shape
        )
    else:
        importer = components.ImportSchemaGen(str(curated_schema.file), curated_schema.fingerprint)
        schema_gen = importer.with_id("SchemaGen")
    served_statistics = components.Resolver(
        strategy_class=components.ServedStatisticsStrategy,
        config={"base_directory": str(places.serving), "accepted_run": accepted_run},
        statistics=components.Channel(type=components.ExampleStatistics),
    ).with_id("ServedStatistics")
    imported_schema = None
    if root_schema is not None:
        importer = components.ImportSchemaGen(str(root_schema.file), root_schema.fingerprint)
        imported_schema = importer.with_id("RootSchema")
    example_validator = components.ExampleValidator(
        statistics=statistics_gen.outputs["statistics"],
        schema=(imported_schema or schema_gen).outputs["schema"],
        baseline_statistics=served_statistics.outputs["statistics"],
        label=label_column,
        limits=drift_limits,
        moving=moving_columns,
        fixed_schema=bool(curated_schema or root_schema),
    )
    transform = components.Transform(
        examples=example_gen.outputs["examples"],
        schema=schema_gen.outputs["schema"],
        preprocessing_fn=code.preprocessing_fn,
        custom_config=code.transform_config,
        disable_statistics=True,
    )
    transform.add_upstream_node(example_validator)  # data that do not fit are not learned from
    served_model = components.Resolver(
        strategy_class=components.ServedModelStrategy,
        config={
            "base_directory": str(places.serving),
            "required": warm_start
            or code.default_checks is not None
            or any(bound.max_regression is not None for bound in code.thresholds),
        },
        model=components.Channel(type=components.Model),
    ).with_id("ServedModel")
    trainer = components.Trainer(
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=schema_gen.outputs["schema"],
        base_model=served_model.outputs["model"] if warm_start else None,
        module_file=code.module_file,
        **{code.trainer: code.trainer_path or code.trainer},
        train_args=components.TrainArgs(num_steps=code.train_steps),
        eval_args=components.EvalArgs(num_steps=code.eval_steps or 0),
        custom_config=code.custom_config,
        cluster=cluster,
    )
    evaluator = components.Evaluator(
        examples=example_gen.outputs["examples"],
        model=trainer.outputs["model"],
        baseline_model=served_model.outputs["model"],
        eval_config=eval_config,
        schema=schema_gen.outputs["schema"],
        default_checks=code.default_checks
        and replace(code.default_checks, baseline_then=baseline_then),
    )
    pusher = components.Pusher(
        model=trainer.outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        push_destination=components.PushDestination(
            filesystem=components.PushDestination.Filesystem(base_directory=str(places.serving))
        ),
        custom_config={
            "keep": keep,
            "newer_than": newer_than,
            "taken_over": list(taken_over),
            "skip_unchanged": True,
            "model_fingerprint": model_fingerprint,
            "withdrawn": str(places.withdrawn),
        },
    )
    roles: dict[str, Any] = {
        "example_gen": example_gen,
        "statistics_gen": statistics_gen,
        "schema_gen": schema_gen,
        "served_statistics": served_statistics,
        "example_validator": example_validator,
        "transform": transform,
        "served_model": served_model,
        "trainer": trainer,
        "evaluator": evaluator,
        "pusher": pusher,
    }
    if imported_schema:
        roles["root_schema"] = imported_schema
    pipeline = components.Pipeline(
        pipeline_name=name,
        pipeline_root=str(places.artifacts),
        metadata_connection_config=places.metadata,
        components=list(roles.values()),
        enable_cache=enable_cache,
        beam_pipeline_args=[IN_PROCESS_RUNNER, NO_TFX_PACKAGE, *beam_args, BEAM_PLUGIN_ARG],
    )
    return CsvToServing(pipeline=pipeline, **roles)


def _stats_options() -> Any:
    """Returns the options of the statistics: drift is found in quantiles, of which ten are too few."""
    import tensorflow_data_validation as tfdv

    return tfdv.StatsOptions(num_quantiles_histogram_buckets=100)


def _divided_by(column: str | None) -> Any:
    """Returns how CsvExampleGen draws a third of a column's values; None lets it draw rows."""
    if column is None:
        return None
    config = components.Output()
    for name, buckets in (("train", 2), ("eval", 1)):
        config.split_config.splits.add(name=name, hash_buckets=buckets)
    config.split_config.partition_feature_name = column
    return config
