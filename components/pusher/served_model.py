"""Resolves the served model, which is the baseline of the next one."""

import ml_metadata
from tfx.dsl.components.common import resolver
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_artifacts
from tfx.types.artifact import Artifact

from components.pusher.listing import list_versions
from components.pusher.provenance import read_provenance


class ServedModelStrategy(resolver.ResolverStrategy):
    """Resolves the `Model` of the newest version in a Pusher's base directory, if there is one.

    Unlike TFX's LatestBlessedModelStrategy it follows the served version: after a rollback the earlier
    model is the baseline again, and a pipeline with another name in the same place has the same
    baseline.

    Args:
        base_directory: Base directory of the Pusher.
        required: True if a served version with an unknown model is an error; otherwise there is no
            baseline then.

    Example:
        served_model = Resolver(
            strategy_class=ServedModelStrategy,
            config={"base_directory": "serving"},
            model=Channel(type=Model),
        ).with_id("ServedModel")
        evaluator = Evaluator(baseline_model=served_model.outputs["model"], ...)
    """

    def __init__(self, base_directory: str, required: bool = True) -> None:
        self._base_directory = base_directory
        self._required = required

    def resolve_artifacts(
        self, store: ml_metadata.MetadataStore, input_dict: dict[str, list[Artifact]]
    ) -> dict[str, list[Artifact]]:
        """Returns the served model under the key of the only channel; empty if none is served.

        Raises:
            LookupError: The model of the served version is not known, or no longer exists.
        """
        (key,) = input_dict
        served = list_versions(self._base_directory)
        if not served:
            return {key: []}
        provenance = read_provenance(self._base_directory, served[-1])
        if provenance is not None:
            model = _find_model(store, provenance.model_uri)
            if model is not None:
                return {key: [model]}
        if not self._required:
            return {key: []}
        why = (
            "it was not pushed by this Pusher"
            if provenance is None
            else f"its model is no longer in {provenance.model_uri}"
        )
        raise LookupError(
            f"Version {served[-1]} in {self._base_directory} is live, but a new model cannot be compared "
            f"with it: {why}. Take the version out of that directory; or set evaluator.default_checks = "
            "false and give thresholds without max_regression."
        )


def _find_model(store: ml_metadata.MetadataStore, uri: str) -> Artifact | None:
    type_name = standard_artifacts.Model.TYPE_NAME
    models = [a for a in store.get_artifacts_by_uri(uri) if a.type == type_name]
    if not models or not fileio.isdir(uri):
        return None
    newest = max(models, key=lambda artifact: artifact.id)
    return artifact_utils.deserialize_artifact(store.get_artifact_type(type_name), newest)
