"""Protects a root from a pipeline whose model it does not serve.

A pipeline is recognized by its label, and by its name if that was given: a name that comes from the data
file changes with the file.
"""

from pipelines.config.load import is_of_tfx_pipeline
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.records import RunRecord


def serving_run(root: Root) -> RunRecord | None:
    """Returns the record of the run that pushed the served version; None if unknown."""
    origin = root.versions.origin()
    return root.records.read(origin.pipeline_run_id) if origin else None


def weighs_alike(record: RunRecord, config: PipelineConfig) -> bool:
    """Returns True if a run weighed its rows as the configuration does, so that metrics are comparable."""
    then, now = (
        (settings.data.weight, settings.trainer.class_weights)
        for settings in (record.validated_config(), config)
    )
    return then == now


def named_as_in_root(root: Root, config: PipelineConfig) -> PipelineConfig:
    """Returns the configuration, with the name of the root's pipeline."""
    newest = root.records.newest()
    if newest and is_of_tfx_pipeline(newest.config):
        raise BadInputError(
            f"--root {root} has runs of the TFX pipeline {newest.name!r}: use another --root for one "
            "from a CSV."
        )
    record = serving_run(root)
    if record is None:
        return config
    served_config = record.validated_config()
    served = f"{root} serves version {root.versions.serving()} of the pipeline {served_config.name!r}"
    label, known_label = config.evaluator.label, served_config.evaluator.label
    for key, before, now in (
        ("data.label", served_config.data.label, config.data.label),
        ("evaluator.label", known_label, label if known_label and label else known_label),
        ("name", served_config.name, served_config.name if config.has_default_name else config.name),
    ):
        if now != before:
            raise BadInputError(
                f"{served}, which has {key} = {before!r}; received {now!r}. Correct it; or, "
                "because a root serves one model, give the other pipeline another root, with --root"
                + (", or leave the name out." if key == "name" else ".")
            )
    return config.model_copy(update={"name": served_config.name})
