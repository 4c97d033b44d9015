"""The configuration of a pipeline: TOML file < --data/--label < --set, validated once."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    Field,
    ValidationError,
    model_validator,
)

from components.nearest import nearest_first
from pipelines.beam.config import BeamConfig
from pipelines.data.cells import shown
from pipelines.data.span_pattern import before_placeholder
from pipelines.data_config import ColumnUse, DataConfig, ProblemType, Section, SplitConfig
from pipelines.errors import BadInputError
from pipelines.kubeflow_config import KubeflowConfig
from pipelines.metadata_config import MetadataConfig
from pipelines.notify_config import NotifyConfig
from pipelines.retention.config import RetentionConfig
from pipelines.toml_text import read_toml, toml_value
from pipelines.trainer_config import TrainerConfig

__all__ = ["DataConfig", "PipelineConfig", "ProblemType", "load_config"]


class SchemaConfig(Section):
    """`[schema]`: the types and shapes of the columns.

    Attributes:
      path: A curated schema: a `Schema` proto as text (`schema.pbtxt`), as SchemaGen writes it.
        Default: inferred from the data.
      infer_feature_shape: Whether a column that has a value in every row gets a fixed shape. Then
        `preprocessing_fn` gets it as a dense tensor, and a request to the served model must
        contain it. Default: no; every column is sparse.
    """

    path: str | None = None
    infer_feature_shape: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> "SchemaConfig":
        if self.path is not None and self.infer_feature_shape:
            raise ValueError(
                "infer_feature_shape = true has no meaning with a path, whose schema gives the "
                "shapes; remove one of the two"
            )
        return self


class ModuleConfig(Section):
    """`[module]`: the user's code, TFX's classic contract. Exactly one of the two is given.

    Attributes:
      path: Import path of a module with `preprocessing_fn` and `trainer_fn` or `run_fn`.
      file: The same as a Python file; modules next to it can be imported by it.
    """

    path: str | None = None
    file: str | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> "ModuleConfig":
        if (self.path is None) == (self.file is None):
            raise ValueError(
                'give exactly one of path = "my_project.module" and file = "module.py"'
            )
        return self


class ThresholdConfig(Section):
    """`[[evaluator.thresholds]]`: what a model has to reach to be blessed.

    Several entries may name one metric; then all their bounds hold.

    Attributes:
      metric: Name of a metric, such as `auc` or `root_mean_squared_error`.
      lower: Smallest value that is blessed.
      upper: Largest value that is blessed.
      max_regression: How much worse than the model in production the new one may be, in units of
        the metric. Default: the two are not compared by this threshold.
    """

    metric: str
    lower: float | None = Field(default=None, allow_inf_nan=False)
    upper: float | None = Field(default=None, allow_inf_nan=False)
    max_regression: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _some_bound(self) -> "ThresholdConfig":
        if self.lower is None and self.upper is None and self.max_regression is None:
            raise ValueError("give at least one of lower, upper and max_regression")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(f"lower = {self.lower} is above upper = {self.upper}")
        return self


class EvaluatorConfig(Section):
    """`[evaluator]`: metrics, slices and thresholds.

    Attributes:
      label: The transformed label, if `preprocessing_fn` computes it. Default: found automatically.
      metrics: Names of metrics. Default: chosen for the kind of problem.
      slices: Lists of columns; `[]` is the whole data set. Default: columns with few values.
      thresholds: Bounds in addition to the default checks. Default: none.
      default_checks: Whether the model must be better than the trivial one, and not worse than the
        one in production, in its metric and its loss.
      confidence: Confidence level of the intervals of the default checks.
      tolerance: How much worse than the model in production a new one may be, in addition to the
        interval; a share of the advantage of the former over the trivial model.
      min_skill_kept: Share of its skill that the model in production must have kept since it was
        pushed. If it has lost more, the labels may be damaged, and nothing is pushed. The skill is
        the share of the way from the trivial model to a perfect one, in the metric. 0 turns the
        check off.
    """

    label: str | None = None
    metrics: tuple[str, ...] | None = None
    slices: tuple[tuple[str, ...], ...] | None = None
    thresholds: tuple[ThresholdConfig, ...] | None = None
    default_checks: bool = True
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    tolerance: float = Field(default=0.05, ge=0, lt=1)
    min_skill_kept: float = Field(default=0.7, ge=0, lt=1)


class ExampleValidatorConfig(Section):
    """`[example_validator]`: what happens when the data do not fit the schema, or have drifted.

    They are compared with the data of the model that serves, column by column.

    Attributes:
      on_anomalies: `warn` shows anomalies and continues, `fail` stops the run. Default: the run stops only
        at anomalies that make training meaningless, such as a column that is missing, empty or in
        another unit.
      l_infinity: Limit for text and missing values: the largest difference of a share.
      jensen_shannon: Limit for numbers: the Jensen-Shannon divergence of the distributions, in bits.
      breaking: Limit for both of them, beyond which training is meaningless.
      moving: Columns that always change, such as times and counters. Columns that are recognized as
        dates or ids need not be listed.
    """

    on_anomalies: Literal["warn", "fail", "fail_if_broken"] = "fail_if_broken"
    l_infinity: float = Field(default=0.1, ge=0, le=1)
    jensen_shannon: float = Field(default=0.02, ge=0, le=1)
    breaking: float = Field(default=0.3, ge=0, le=1)
    moving: tuple[str, ...] = ()


class PusherConfig(Section):
    """`[pusher]`: what is kept of the served models.

    Attributes:
      keep: Number of newest versions to keep. None keeps all.
    """

    keep: int | None = Field(default=None, ge=1)


class PipelineConfig(Section):
    """The configuration of a whole pipeline.

    Attributes:
      name: Name of the pipeline. Default: the name of the data file or folder.
      columns: The kind of each column, by its name. Default: inferred.
      notify: Who is told of scheduled runs; it is in no record, as an address may be a secret.
    """

    name: str = Field(default="", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    data: DataConfig
    columns: dict[str, ColumnUse] = Field(default_factory=dict)
    split: SplitConfig = SplitConfig()
    schema_: SchemaConfig = Field(default=SchemaConfig(), alias="schema")  # pydantic has a `schema`
    module: ModuleConfig | None = None
    trainer: TrainerConfig = TrainerConfig()
    evaluator: EvaluatorConfig = EvaluatorConfig()
    example_validator: ExampleValidatorConfig = ExampleValidatorConfig()
    pusher: PusherConfig = PusherConfig()
    retention: RetentionConfig = RetentionConfig()
    metadata: MetadataConfig = MetadataConfig()
    beam: BeamConfig = BeamConfig()
    kubeflow: KubeflowConfig = KubeflowConfig()
    notify: NotifyConfig = Field(default=NotifyConfig(), exclude=True)

    @model_validator(mode="after")
    def _starts_from_a_model_that_fits(self) -> "PipelineConfig":
        if self.trainer.warm_start and self.module is None:
            raise ValueError(
                "trainer.warm_start = true needs a [module]: the generic models learn vocabularies and "
                "scales from the data of each run, which the weights of another run don't fit; leave it "
                "out, or name a module that passes fn_args.base_model to its Estimator as warm_start_from"
            )
        return self

    @property
    def has_default_name(self) -> bool:
        """Whether the name is the one that the data give it."""
        return self.name == _default_name(self.data.path)


def load_config(
    config_file: Path | None = None,
    data: str | None = None,
    label: str | None = None,
    settings: Sequence[str] = (),
) -> PipelineConfig:
    """Returns the validated configuration.

    Relative `data.path`, `module.file` and `schema.path` of a configuration file are relative to that file;
    those of the command line to the working directory.

    Args:
      config_file: TOML file, or None.
      data: `--data`, goes before the file's `data.path`.
      label: `--label`, goes before the file's `data.label`.
      settings: `section.key=value` each, goes before everything else. Values are TOML; what
        is no TOML is taken as a string.

    Raises:
      BadInputError: What is wrong, the value received, and how to mend it.
    """
    tree: dict[str, Any] = {}
    if config_file is not None:
        tree = read_toml(config_file)
        _anchor_paths(tree, config_file.parent)
    if data is not None:
        _assign(tree, ["data", "path"], data, f"--data {data}")
    if label is not None:
        _assign(tree, ["data", "label"], label, f"--label {label}")
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not all(key.split(".")):
            raise BadInputError(f"--set takes section.key=value, received {setting!r}.")
        _assign(tree, key.split("."), toml_value(value, key), f"--set {setting}")
    for key in ("path", "label"):
        section = tree.get("data", {})
        if isinstance(section, dict) and key not in section:
            option = "--data CSV_OR_DIR" if key == "path" else "--label COLUMN"
            raise BadInputError(
                f"data.{key} is missing: give {option} or a --config file that sets it."
            )
    if not tree.get("name") and isinstance(tree["data"], dict):
        tree["name"] = _default_name(str(tree["data"].get("path", "")))
    try:
        return PipelineConfig.model_validate(tree)
    except ValidationError as error:
        raise BadInputError(explain(error, config_file)) from error


def _anchor_paths(tree: dict[str, Any], folder: Path) -> None:
    for section, key in (("data", "path"), ("module", "file"), ("schema", "path")):
        values = tree.get(section)
        if isinstance(values, dict) and isinstance(values.get(key), str):
            values[key] = str(folder / values[key])


def _assign(tree: dict[str, Any], keys: list[str], value: Any, origin: str) -> None:
    for depth, key in enumerate(keys[:-1]):
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise BadInputError(f"{origin}: {'.'.join(keys[: depth + 1])} is not a section.")
    tree[keys[-1]] = value


def _default_name(path: str) -> str:
    start = before_placeholder(path).split("*")[0].replace("\0", "") or "."
    stem = Path(os.path.realpath(start)).stem  # unlike Path.resolve, takes links that form a loop
    name = "".join(
        char if char.isascii() and (char.isalnum() or char in "_.-") else "-" for char in stem
    )
    return name.strip("-_.") or "pipeline"


def explain(error: ValidationError, config_file: Path | None) -> str:
    """Returns what is wrong with a configuration, and how to mend it."""
    lines = []
    for problem in error.errors():
        location = [str(part) for part in problem["loc"]]
        key = ".".join(location)
        if problem["type"] == "extra_forbidden":
            nearest = nearest_first(location[-1], _valid_keys(problem["loc"][:-1]))
            lines.append(
                f"{key} = {shown(_text(problem['input']))}: there is no such key. "
                f"Did you mean {nearest[0]}? Valid here: {', '.join(nearest)}."
            )
        elif problem["type"] == "missing":
            lines.append(f"{key} is missing.")
        else:
            reason = problem["msg"].removeprefix("Value error, ")
            value = f" = {shown(_text(problem['input']))}" if location else ""
            lines.append(f"{key}{value}: {reason[:1].lower() + reason[1:]}.")
    source = f"{config_file}: " if config_file else ""
    return "\n".join(source + line for line in lines)


def _text(value: Any) -> str:
    """Returns how a value is written, as far as that can be."""
    try:
        return repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or an integer of too many digits
        return f"({type(value).__name__})"


def _valid_keys(location: tuple[Any, ...]) -> list[str]:
    model: Any = PipelineConfig
    for part in location:
        if isinstance(part, int):
            continue
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        if part not in fields:  # a name that the user gives, such as that of a component
            continue
        annotation = fields[part].annotation
        candidates = [annotation, *_arguments(annotation)]
        model = next(
            kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BaseModel)
        )
    return [field.alias or name for name, field in model.model_fields.items()]


def _arguments(annotation: Any) -> list[Any]:
    found: list[Any] = []
    for argument in getattr(annotation, "__args__", ()):
        found += [argument, *_arguments(argument)]
    return found
