"""Model code of a run: the user's module, or the generic model for tables."""

import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.evaluator.gate.default_checks import DefaultChecks
from components.tuner.search_space import SearchSpace
from components.tuner.settings import DEFAULT_METRIC, TunerSettings
from components.user import code as user_code
from components.user import source as user_source
from pipelines.config.data import SplitConfig
from pipelines.config.evaluator import ThresholdConfig
from pipelines.config.pipeline_config import ModuleConfig, PipelineConfig
from pipelines.config.tuner import TunerConfig
from pipelines.data.kinds import ColumnKind
from pipelines.data.profile import CsvProfile
from pipelines.errors import BadInputError
from pipelines.runs.definitions import evaluation
from pipelines.tabular import tuning
from pipelines.tabular.infer import infer_plan
from pipelines.tabular.label import plan_label
from pipelines.tabular.plan import GROUP_KEY, LABEL_KEY, TabularPlan
from pipelines.terminal.signals import signal_has_come

_ROWS_FOR_ONE_FOLD, _FOLDS = 2_000, 3  # the best value on a few dozen held-out rows is chance

_PYTHON_OPERATIONS = {"py_function", "numpy_function", "py_func", "apply_pyfunc"}
_TRAINERS = ("trainer_fn", "run_fn")

_GROUPS = {"column": "the column {column!r}", "time": "the day or the week of {column!r}"}


@dataclass(frozen=True)
class ModelCode:
    """Functions that a pipeline calls, and the criteria for their model."""

    preprocessing_fn: str  # Import path of the function
    trainer: str  # Name of the training function, `trainer_fn` or `run_fn`
    trainer_path: str | None  # Import path of that function; None for a module file
    module_file: str | None  # User's file; None for an import path
    transform_config: dict[str, Any]  # `custom_config` of `preprocessing_fn`
    custom_config: dict[str, Any]
    train_steps: int
    eval_steps: int | None  # Batches of an evaluation; None means all
    label: str | None  # Name of the transformed label; None means the label that the model reports
    metrics: tuple[str, ...]
    thresholds: tuple[ThresholdConfig, ...]  # Bounds on the metrics, in addition to the default checks
    slices: tuple[tuple[str, ...], ...]
    required_label: str | None = None  # Column without which a row is dropped; None keeps all rows
    plan: TabularPlan | None = field(default=None)  # Plan of the generic model; None for the user's module
    default_checks: DefaultChecks | None = None  # Settings of the default checks; None turns them off
    tuning: TunerSettings | None = None  # Settings of the search before the training
    fingerprint: str = ""  # Fingerprint of the module's source as it was imported; empty if it is not known

    @property
    def needs_baseline(self) -> bool:
        """True if a new model must be compared with the live model."""
        bounds = (bound.max_regression for bound in self.thresholds)
        return self.default_checks is not None or any(bound is not None for bound in bounds)


def choose_model_code(
    config: PipelineConfig, profile: CsvProfile, kinds: Mapping[str, ColumnKind] | None = None
) -> ModelCode:
    """Returns the user's code if there is a `[module]`, otherwise the generic model."""
    if config.module is not None:
        return _user_code(config.module, config, profile)
    plan = infer_plan(profile, config, kinds)
    settings = config.evaluator
    problem_type = plan.label.problem_type
    metrics, thresholds = evaluation.resolve_metrics(config, problem_type, plan.label.classes)
    interval_metrics = ("interval_coverage", "interval_width") if plan.training.interval else ()
    return ModelCode(
        preprocessing_fn="pipelines.tabular.preprocessing.preprocessing_fn",
        trainer="trainer_fn",
        trainer_path="pipelines.tabular.training.trainer_fn",
        module_file=None,
        transform_config=plan.feature_config(),
        custom_config={**config.trainer.custom_config, **plan.training_config()},
        train_steps=plan.training.train_steps
        if plan.training.model == "auto"
        else plan.training.max_steps(plan.training.model),
        eval_steps=plan.training.eval_steps,
        label=settings.label or LABEL_KEY,
        metrics=metrics or evaluation.default_metrics(problem_type) + interval_metrics,
        thresholds=evaluation.resolve_slices(thresholds, plan, profile),
        slices=_or(settings.slices, tuple((column,) for column in plan.slices)),
        required_label=plan.label.column,
        plan=plan,
        tuning=_tuning_of_plan(plan, config, profile.columns[config.data.label].num_values),
        default_checks=evaluation.default_checks(settings, problem_type),
    )


def _user_code(module_config: ModuleConfig, config: PipelineConfig, profile: CsvProfile) -> ModelCode:
    module, fingerprint = _load(module_config)
    where = module_config.path or module_config.file
    functions = user_code.function_names(module)
    trainers = [name for name in _TRAINERS if name in functions]
    for name, present in (
        ("preprocessing_fn", "preprocessing_fn" in functions),
        ("trainer_fn or run_fn", bool(trainers)),
    ):
        if not present:
            raise BadInputError(
                f"The module {where} defines no {name}. Its functions: {', '.join(functions) or 'none'}."
            )
    _refuse_python_operations(f"{module.__name__}.preprocessing_fn")
    settings, trainer = config.evaluator, config.trainer
    if trainer.workers and trainers[0] == "run_fn":
        raise BadInputError(
            f"trainer.workers = {trainer.workers}: the module {where} has a run_fn, which writes the "
            "model itself, and every process would write it. Workers need a trainer_fn; or leave "
            "trainer.workers out."
        )
    problem_type = evaluation.known_problem_type(config)
    metrics, thresholds = evaluation.resolve_metrics(config, problem_type)
    fallback = problem_type
    evaluation.check_problem_is_known(config)
    if metrics is None and problem_type is None:
        # Without settings for the evaluation, assume that the model's label is the raw column.
        raw_label = plan_label(profile, profile.columns[config.data.label], config.data)
        fallback = raw_label.problem_type
    return ModelCode(
        preprocessing_fn=f"{module.__name__}.preprocessing_fn",
        trainer=trainers[0],
        trainer_path=None if module_config.file else f"{module.__name__}.{trainers[0]}",
        module_file=str(Path(module_config.file).resolve()) if module_config.file else None,
        transform_config=trainer.custom_config,
        custom_config=trainer.custom_config,
        train_steps=trainer.train_steps or 1_000,
        eval_steps=trainer.eval_steps or 150,
        label=settings.label,
        metrics=_or(metrics, evaluation.default_metrics(fallback)),
        thresholds=evaluation.resolve_slices(thresholds, None, profile),
        slices=settings.slices or (),
        tuning=_tuning_of_module(config, profile.num_rows),
        default_checks=evaluation.default_checks(settings, problem_type, fallback),
        fingerprint=fingerprint,
    )


def _refuse_python_operations(preprocessing_fn: str) -> None:
    """Refuses functions of `preprocessing_fn` whose graph calls back into the Python that built it."""
    for key, names in user_source.reached_names(preprocessing_fn).items():
        file, _, function = key.partition(":")
        used = sorted(names & _PYTHON_OPERATIONS)
        # The module level may import them for other functions.
        if used and function != user_source.MODULE_LEVEL:
            through = "" if function == "preprocessing_fn" else ", which preprocessing_fn calls,"
            raise BadInputError(
                f"{file}: {function}{through} uses {used[0]}. Its Python code is not in the exported model, "
                "which could not be served. Use TensorFlow operations instead."
            )


def _tuning_of_plan(plan: TabularPlan, config: PipelineConfig, num_rows: int) -> TunerSettings | None:
    if config.tuner is None:
        return None
    if config.tuner.group is not None:
        raise BadInputError(
            f"tuner.group = {config.tuner.group!r} is for modules; the generic models hold out whole groups "
            "of split.column. Leave it out."
        )
    tuning.check_metric(config.tuner, plan.label.problem_type)
    space = tuning.search_space(plan, config.tuner)
    return _tuner_settings(
        config,
        num_rows,
        space,
        first_trials=tuning.first_trials(plan, space),
        own_validation=plan.training.early_stopping,
        group=GROUP_KEY if plan.group else None,
    )


def _tuning_of_module(config: PipelineConfig, num_rows: int) -> TunerSettings | None:
    if config.tuner is None:
        return None
    parameters = list(config.tuner.parameters())
    if not parameters:
        raise BadInputError(
            "tuner.space is missing. Name the settings that the module's training function reads with "
            "components.hyperparameters, such as [tuner.space] with learning_rate = {low = 1e-4, high = "
            "1e-1, log = true}."
        )
    for group, _ in parameters:
        if group is not None:
            raise BadInputError(
                f"tuner.space.{group}: groups of settings are for the generic models. Write the module's "
                "settings directly into [tuner.space]."
            )
    _check_group(config.tuner.group, config.split)
    space = SearchSpace(tuple(parameter for _, parameter in parameters))
    return _tuner_settings(config, num_rows, space, group=config.tuner.group)


def _check_group(group: str | None, split: SplitConfig) -> None:
    if group is not None or split.by not in _GROUPS:
        return
    raise BadInputError(
        f"tuner.group is missing: with split.by = {split.by!r}, the Tuner must not hold out single rows "
        "either, because related rows would be trained on. Let preprocessing_fn return "
        f"{_GROUPS[split.by].format(column=split.column)}, and name that output in tuner.group: rows with "
        "the same value are held out together."
    )


def _tuner_settings(
    config: PipelineConfig, num_rows: int, space: SearchSpace, **others: Any
) -> TunerSettings:
    tuner = config.tuner or TunerConfig()
    return TunerSettings(
        space=space,
        trials=tuner.trials,
        folds=tuner.folds or (_FOLDS if num_rows < _ROWS_FOR_ONE_FOLD else 1),
        parallel=tuner.parallel,
        metric=tuner.metric or DEFAULT_METRIC,
        direction=tuning.search_direction(tuner),
        pruner=tuner.pruner,
        timeout_secs=tuner.timeout_secs,
        seed=config.trainer.seed,
        **others,
    )


def _or(given: Any, default: Any) -> Any:
    return default if given is None else given


def _load(module_config: ModuleConfig) -> tuple[types.ModuleType, str]:
    """Returns the user's module, imported by the same name as in Transform, and its fingerprint."""
    if module_config.file is None:
        name = str(module_config.path)
    else:
        try:
            name = user_code.importable_name(module_config.file)
        except (FileNotFoundError, ValueError) as error:
            raise BadInputError(f"module.file = {module_config.file!r} is not a Python file.") from error
        except ImportError as error:
            raise BadInputError(f"module.file = {module_config.file!r}: {error}") from error
    path = f"{name}.preprocessing_fn"
    try:
        fingerprint_before = user_source.fingerprint(import_path=path)
        module = user_code.load_module(name)
        after = user_source.fingerprint(import_path=path)
    except BaseException as error:  # anything that the user's code raises while it is imported
        if signal_has_come():
            raise
        raise BadInputError(
            f"The module {module_config.path or module_config.file} cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error
    if fingerprint_before != after:
        raise BadInputError(
            f"The module {module_config.path or module_config.file} was changed while it was imported. "
            "Run again."
        )
    return module, after
