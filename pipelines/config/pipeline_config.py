"""Model of the configuration of a pipeline, which is validated once."""

import os
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from components.serving_check.settings import ServingCheckSettings
from pipelines.config.beam import BeamConfig
from pipelines.config.data import ColumnUse, DataConfig, ProblemType, Section, SplitConfig
from pipelines.config.data_url import check_url
from pipelines.config.evaluator import EvaluatorConfig, ExampleValidatorConfig, GateConfig
from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.lineage import LineageConfig
from pipelines.config.notify import NotifyConfig
from pipelines.config.retention import RetentionConfig
from pipelines.config.span_pattern import before_placeholder
from pipelines.config.trainer import TrainerConfig
from pipelines.config.tuner import TunerConfig

__all__ = ["DataConfig", "PipelineConfig", "ProblemType"]


class SchemaConfig(Section):
    """`[schema]`: the types and shapes of the columns.

    Attributes:
        path: Curated schema: a `Schema` proto as text (`schema.pbtxt`), as SchemaGen writes it. Default:
            inferred from the data.
        infer_feature_shape: Makes a column that has a value in every row a dense tensor, which requests to
            the served model must then contain. Default: no; every column is sparse.
    """

    path: str | None = None
    infer_feature_shape: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> "SchemaConfig":
        if self.path is not None and self.infer_feature_shape:
            raise ValueError(
                "infer_feature_shape = true has no effect with a path, because the schema there gives the "
                "shapes; remove one of the two"
            )
        return self


class ModuleConfig(Section):
    """`[module]`: the user's code, with TFX's classic contract. Exactly one of the two keys is given.

    Attributes:
        path: Import path of a module with `preprocessing_fn` and `trainer_fn` or `run_fn`.
        file: Python file with these functions; it can import modules next to it.
    """

    path: str | None = None
    file: str | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> "ModuleConfig":
        if (self.path is None) == (self.file is None):
            raise ValueError('give exactly one of path = "my_project.module" and file = "module.py"')
        return self


class ExtensionConfig(Section):
    """`[pipeline]` of a pipeline from a CSV: components of your own.

    Attributes:
        extend: `FILE.py:FUNCTION`. The function receives the components by role, such as `trainer`, and
            returns a list of further ones.
    """

    extend: str = Field(pattern=r"\.py:[A-Za-z_]\w*$")


class PusherConfig(Section):
    """`[pusher]`: the number of served models to keep, and a registry for them.

    Attributes:
        keep: Number of newest versions to keep. Default: all.
        mlflow: URI of an MLflow tracking server, such as `http://mlflow.example:5000`: each version is also
            registered there, under the name of the pipeline.
    """

    keep: int | None = Field(default=None, ge=1)
    mlflow: str | None = None

    @field_validator("mlflow")
    @classmethod
    def _has_no_secret(cls, mlflow: str | None) -> str | None:
        return None if mlflow is None else check_url(mlflow)


WITHOUT_EFFECT_ON_RESULT = (
    "beam",
    "kubeflow",
    "lineage",
    "retention",
)  # sections, which a resumed run may change


class PipelineConfig(Section):
    """Configuration of a whole pipeline.

    Attributes:
        name: Name of the pipeline. Default: the name of the data file or folder.
        pipeline: Components of your own. Default: none.
        columns: Kind of each column, by its name. Default: inferred.
        tuner: Search before the training; None without the section.
        notify: Receivers of notifications about scheduled runs; it is in no record, as an address may be a
            secret.
    """

    name: str = Field(default="", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    data: DataConfig
    pipeline: ExtensionConfig | None = None
    columns: dict[str, ColumnUse] = Field(default_factory=dict)
    split: SplitConfig = SplitConfig()
    schema_: SchemaConfig = Field(default=SchemaConfig(), alias="schema")  # pydantic has a `schema`
    module: ModuleConfig | None = None
    tuner: TunerConfig | None = None
    trainer: TrainerConfig = TrainerConfig()
    evaluator: EvaluatorConfig = EvaluatorConfig()
    example_validator: ExampleValidatorConfig = ExampleValidatorConfig()
    gate: GateConfig = GateConfig()
    serving_check: ServingCheckSettings = ServingCheckSettings()
    pusher: PusherConfig = PusherConfig()
    retention: RetentionConfig = RetentionConfig()
    lineage: LineageConfig = LineageConfig()
    beam: BeamConfig = BeamConfig()
    kubeflow: KubeflowConfig = KubeflowConfig()
    notify: NotifyConfig = Field(default=NotifyConfig(), exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _has_no_metadata_store(cls, values: Any) -> Any:
        if isinstance(values, dict) and "metadata" in values:
            raise ValueError("[metadata]: runs no longer use a metadata store. Remove this section")
        return values

    @model_validator(mode="after")
    def _starts_from_a_model_that_fits(self) -> "PipelineConfig":
        if self.trainer.warm_start and self.module is None:
            raise ValueError(
                "trainer.warm_start = true needs a [module]: the generic models learn vocabularies and "
                "scales from the data of each run, which the weights of another run don't fit; leave it "
                "out, or name a module that passes fn_args.base_model to its Estimator as warm_start_from"
            )
        return self

    @model_validator(mode="after")
    def _has_no_settings_of_the_generic_models(self) -> "PipelineConfig":
        for key, value in (
            ("trainer.decide", self.trainer.decide),
            ("data.positive", self.data.positive),
            ("trainer.interval", self.trainer.interval),
            ("trainer.folds", self.trainer.folds if self.trainer.folds != 1 else None),
            ("trainer.time_limit", self.trainer.time_limit),
        ):
            if value is not None and self.module is not None:
                raise ValueError(
                    f"{key} is for the generic models, and there is a [module], whose Estimator it does not "
                    "affect. Leave it out"
                )
        for key, value in (
            ("data.weight", self.data.weight),
            ("trainer.class_weights", self.trainer.class_weights),
        ):
            if value is not None and self.module is not None:
                raise ValueError(
                    f"{key} = {value!r} is for the generic models, and there is a [module]. Leave it out; in "
                    "the module, return the weight from preprocessing_fn, and give its name to the Estimator "
                    "as weight_column"
                )
        return self

    @property
    def has_default_name(self) -> bool:
        """True if the name is derived from the data."""
        return self.name == _default_name(self.data.path)


def _default_name(path: str) -> str:
    start = before_placeholder(path).split("*")[0].replace("\0", "") or "."
    stem = Path(os.path.realpath(start)).stem  # unlike Path.resolve, accepts links that form a loop
    name = "".join(char if char.isascii() and (char.isalnum() or char in "_.-") else "-" for char in stem)
    return name.strip("-_.") or "pipeline"
