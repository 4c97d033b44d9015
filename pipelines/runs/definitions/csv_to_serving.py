"""DAG of the pipeline from a CSV to a gated, versioned model."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import components
from components.beam.beam_executor import IN_PROCESS_RUNNER
from components.example_gen.file_names import is_parquet
from components.tfx.compat import BEAM_PLUGIN_ARG
from components.user import code as user_code
from pipelines.data.formats.cell_format import find_parsed_columns
from pipelines.data.missing import MISSING_TOKENS
from pipelines.data.staging import StagedData
from pipelines.errors import BadInputError
from pipelines.root.history import newest_version_ever, unconfirmed_pushes
from pipelines.root.served_run import serving_run
from pipelines.runs.definitions.evaluation import build_eval_config, same_values
from pipelines.runs.definitions.gate_settings import gate_settings
from pipelines.runs.definitions.run_plan import RunPlan
from pipelines.tabular.plan import WEIGHT_KEY

if TYPE_CHECKING:
    from tfx.dsl.components.base.base_node import BaseNode

# For each component, TFX would pack itself for remote workers, which takes seconds and leaves 45 MB in the
# temporary folder. It does not if an image is named, an option that only Beam's runner for Dataflow uses.
NO_TFX_PACKAGE = "--sdk_container_image=unused"


@dataclass(frozen=True, eq=False)
class CsvToServing:
    """A pipeline, and its components by role."""

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
    serving_check: components.ServingCheck
    pusher: components.Pusher
    root_schema: components.ImportSchemaGen | None = None
    tuner: components.Tuner | None = None
    test_evaluator: components.Evaluator | None = None


def csv_to_serving(plan: RunPlan, data: StagedData, beam_args: tuple[str, ...] = ()) -> CsvToServing:
    code = plan.code
    example_gen = _example_gen(plan, data)
    examples = example_gen.outputs["examples"]
    has_test = plan.config.split.test is not None
    parsed_columns = _parsed_columns(plan)
    statistics_gen = components.StatisticsGen(
        examples=examples,
        stats_options=_stats_options(),
        exclude_splits=["test"] if has_test else None,
        parsed_columns=parsed_columns,
    )
    statistics = statistics_gen.outputs["statistics"]
    schema_gen = _schema_gen(plan, statistics)
    schema = schema_gen.outputs["schema"]
    root_schema = _root_schema(plan)
    served_statistics = _served_statistics(plan)
    limits = plan.config.example_validator
    example_validator = components.ExampleValidator(
        statistics=statistics,
        schema=root_schema.outputs["schema"] if root_schema else schema,
        baseline_statistics=served_statistics.outputs["statistics"],
        label=plan.config.data.label,
        limits=components.DriftLimits(limits.l_infinity, limits.jensen_shannon, limits.breaking),
        # Dates that are parsed are compared as dates.
        moving=tuple(
            name
            for name in plan.moving_columns
            if name not in parsed_columns.formats or name in plan.config.example_validator.moving
        ),
        fixed_schema=bool(plan.schema or plan.root_schema),
    )
    transform = components.Transform(
        examples=examples,
        schema=schema,
        preprocessing_fn=code.preprocessing_fn,
        splits_config=_without_test() if has_test else None,
        custom_config=code.transform_config,
        disable_statistics=True,
        disable_analyzer_cache=True,  # for which there is no reader in this pipeline
    )
    transform.add_upstream_node(example_validator)  # so that no model learns from bad data
    served_model = _served_model(plan)
    gate = gate_settings(plan)
    weight = WEIGHT_KEY if code.plan and code.plan.weight else ""
    training: dict[str, Any] = {
        "examples": transform.outputs["transformed_examples"],
        "transform_graph": transform.outputs["transform_graph"],
        "schema": schema,
        "base_model": served_model.outputs["model"] if plan.config.trainer.warm_start else None,
        "module_file": code.module_file,
        code.trainer: code.trainer_path or code.trainer,
        "train_args": components.TrainArgs(num_steps=code.train_steps),
        "eval_args": components.EvalArgs(num_steps=code.eval_steps or 0),
        "custom_config": code.custom_config,
    }
    tuner = components.Tuner(settings=code.tuning, **training) if code.tuning else None
    trainer = components.Trainer(
        **training,
        hyperparameters=tuner.outputs["best_hyperparameters"] if tuner else None,
        cluster=plan.cluster,
    )
    slice_columns = [*sum(code.slices, ()), *(name for bound in code.thresholds for name in bound.slice_)]
    slice_columns += gate.categories if gate else ()
    evaluator = components.Evaluator(
        examples=examples,
        model=trainer.outputs["model"],
        baseline_model=served_model.outputs["model"],
        eval_config=build_eval_config(code.label, code.metrics, code.thresholds, code.slices, weight),
        schema=schema,
        default_checks=gate,
        same_values=same_values(code.plan, plan.profile, slice_columns),
    )
    serving_check = components.ServingCheck(
        model=trainer.outputs["model"],
        examples=examples,
        model_blessing=evaluator.outputs["blessing"],
        label=plan.config.data.label,
        settings=plan.config.serving_check,
    )
    test_evaluator = None
    if has_test:
        test_evaluator = components.Evaluator(
            examples=examples,
            model=trainer.outputs["model"],
            example_splits=["test"],
            eval_config=build_eval_config(code.label, (*code.metrics, "example_count"), (), (), weight),
            schema=schema,
        ).with_id("TestEvaluator")
        test_evaluator.add_upstream_node(serving_check)  # as all that take time wait for each other
    pusher = _pusher(plan, trainer, evaluator, serving_check)
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
        "serving_check": serving_check,
        "pusher": pusher,
    }
    optional = {"root_schema": root_schema, "tuner": tuner, "test_evaluator": test_evaluator}
    roles |= {role: component for role, component in optional.items() if component}
    extension = plan.config.pipeline
    added = added_components(extension.extend, roles) if extension else []
    pipeline = components.Pipeline(
        pipeline_name=plan.config.name,
        pipeline_root=str(plan.root.artifacts),
        components=[*roles.values(), *added],
        enable_cache=plan.enable_cache,
        beam_pipeline_args=[IN_PROCESS_RUNNER, NO_TFX_PACKAGE, *beam_args, BEAM_PLUGIN_ARG],
    )
    return CsvToServing(pipeline=pipeline, **roles)


def _example_gen(plan: RunPlan, data: StagedData) -> components.CsvExampleGen:
    splits = data.splits or (("single_split", data.pattern),)
    known_types = plan.profile.known_types
    text = dict.fromkeys((*plan.text_columns, *plan.type_overrides.text))
    text |= dict.fromkeys(name for name, kind in known_types.items() if kind == "string")
    floats = dict.fromkeys(plan.type_overrides.floats)
    floats |= dict.fromkeys(name for name, kind in known_types.items() if kind == "float")
    return components.CsvExampleGen(
        input_base=str(data.folder),
        input_config=components.Input(
            splits=[components.Input.Split(name=name, pattern=pattern) for name, pattern in splits]
        ),
        output_config=None if data.splits else _output_config(plan),
        text_columns=tuple(text),
        float_columns=tuple(floats),
        files=data.files,
        column_types=None if data.reasons else _types_by_cells(plan),
        no_groups=MISSING_TOKENS if plan.splits.by == "column" else (),
    )


def _types_by_cells(plan: RunPlan) -> dict[str, str] | None:
    """Returns the type of each column of the user's own files; None where they say it themselves."""
    if any(map(is_parquet, plan.profile.files)):
        return None
    names = {"string": "text"}
    columns = plan.profile.columns.items()
    return {name: names.get(column.stored_as, column.stored_as) for name, column in columns}


def _output_config(plan: RunPlan) -> Any:
    """Returns the output config that draws rows, or values of a column; None for CsvExampleGen's default."""
    column, split = plan.splits.column, plan.config.split
    if column is None and split.test is None:
        return None
    config = components.Output()
    num_buckets = math.lcm(*(share.denominator for share in split.shares))
    for name, share in zip(split.names, split.shares, strict=True):
        config.split_config.splits.add(name=name, hash_buckets=int(share * num_buckets))
    if column is not None:
        config.split_config.partition_feature_name = column  # all rows of a value are in one split
    return config


def _without_test() -> Any:
    from tfx.proto import transform_pb2

    return transform_pb2.SplitsConfig(analyze=["train"], transform=["train", "eval"])


def _stats_options() -> Any:
    """Returns the options of the statistics: ten quantiles, the default, are too few to find drift."""
    import tensorflow_data_validation as tfdv

    return tfdv.StatsOptions(num_quantiles_histogram_buckets=100)


def _parsed_columns(plan: RunPlan) -> components.ParsedColumns:
    """Returns the columns to parse, as the plan reads them and as that of the data to compare with did."""
    accepted_run = plan.root.schema.accepted_run(plan.root_schema)
    record = plan.root.records.read(accepted_run) if accepted_run else serving_run(plan.root)
    return find_parsed_columns(map(asdict, plan.columns), record.columns if record else ())


def _schema_gen(plan: RunPlan, statistics: Any) -> components.SchemaGen | components.ImportSchemaGen:
    """Returns the component that infers the schema, or imports the curated one.

    By default, an inferred schema fixes no shapes: a feature that a client leaves out counts as missing.
    """
    if plan.schema:
        importer = components.ImportSchemaGen(str(plan.schema.file), plan.schema.fingerprint)
        return importer.with_id("SchemaGen")
    return components.SchemaGen(
        statistics=statistics, infer_feature_shape=plan.config.schema_.infer_feature_shape
    )


def _root_schema(plan: RunPlan) -> components.ImportSchemaGen | None:
    if not plan.root_schema:
        return None
    origin = plan.root_schema.origin
    if origin and plan.unfinished and origin.run_id == plan.unfinished.run_id:
        return None  # it is the resumed run's own, which was stopped after its push
    file, fingerprint = str(plan.root.schema.file), plan.root_schema.fingerprint
    return components.ImportSchemaGen(file, fingerprint).with_id("RootSchema")


def _served_statistics(plan: RunPlan) -> components.Resolver:
    accepted_run = plan.root.schema.accepted_run(plan.root_schema)
    return components.Resolver(
        strategy_class=components.ServedStatisticsStrategy,
        config={"base_directory": str(plan.root.serving), "accepted_run": accepted_run},
        statistics=components.Channel(type=components.ExampleStatistics),
    ).with_id("ServedStatistics")


def _served_model(plan: RunPlan) -> components.Resolver:
    is_required = plan.config.trainer.warm_start or plan.code.needs_baseline
    return components.Resolver(
        strategy_class=components.ServedModelStrategy,
        config={"base_directory": str(plan.root.serving), "required": is_required},
        model=components.Channel(type=components.Model),
    ).with_id("ServedModel")


def _pusher(
    plan: RunPlan,
    trainer: components.Trainer,
    evaluator: components.Evaluator,
    serving_check: components.ServingCheck,
) -> components.Pusher:
    """Returns the Pusher.

    The new version is above all previous versions, including withdrawn ones. The Pusher pushes neither a
    model that serves already nor one that the same run pushed before it was killed.
    """
    serving = components.PushDestination.Filesystem(base_directory=str(plan.root.serving))
    return components.Pusher(
        model=trainer.outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        infra_blessing=serving_check.outputs["blessing"],
        push_destination=components.PushDestination(filesystem=serving),
        custom_config={
            "keep": plan.config.pusher.keep,
            "newer_than": newest_version_ever(plan.root),
            "taken_over": list(unconfirmed_pushes(plan.root)),
            "skip_unchanged": True,
            "model_fingerprint": plan.model_fingerprint,
            "withdrawn": str(plan.root.withdrawn),
        },
    )


def added_components(extend: str, roles: Mapping[str, "BaseNode"]) -> list["BaseNode"]:
    """Returns the components that the user's function adds."""
    from tfx.dsl.components.base.base_node import BaseNode

    file, _, name = extend.rpartition(":")
    where = f"pipeline.extend = {extend!r}"
    try:
        module = user_code.load_module(user_code.importable_name(file))
        added = getattr(module, name)(dict(roles))
    except (Exception, SystemExit) as error:
        raise BadInputError(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(added, list | tuple) or not all(isinstance(node, BaseNode) for node in added):
        raise BadInputError(f"{where}: it must return a list of components. Received: {added!r:.200}")
    taken = {component.id for component in roles.values()}
    for component in added:
        if component.id in taken:
            raise BadInputError(
                f"{where}: there are two components with the id {component.id!r}. Call with_id() on yours"
            )
        taken.add(component.id)
    return list(added)
