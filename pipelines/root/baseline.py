"""The baseline of a new model and its data: the model that serves, and the statistics of its data."""

from pathlib import Path

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.versions import Versions


def find_baseline_model(
    root: Root, run_id: str, required: bool, serving: Path | None = None
) -> Path | None:
    """Returns the folder of the model that served before a run; None if nothing was served.

    `serving`: folder of the versions. Default: the root's.
    """
    versions = Versions(serving, root.withdrawn) if serving else root.versions
    served = versions.served_before(run_id)
    if served is None:
        return None
    origin = versions.origin_of(served)
    model = Path(origin.model_uri) if origin else None
    if model is not None and model.is_relative_to(root) and model.is_dir():
        return model
    if not required:
        return None
    raise BadInputError(
        f"Version {served} in {serving or root.serving} is served, but a new model cannot be compared with "
        f"it: its model is not in {root} ({model or 'it was not pushed by this program'}). Take the "
        "version out of that folder; or set evaluator.default_checks = false and give thresholds without "
        "max_regression."
    )


def find_baseline_statistics(
    root: Root, run_id: str, accepted_run: str = "", serving: Path | None = None
) -> Path | None:
    """Returns the folder of the statistics of the data of the model that served before a run.

    None if they are not in the root, as after a push by a run on another machine.

    `accepted_run`: id of a run whose data were accepted in their place; empty for none.
    `serving`: folder of the versions. Default: the root's.
    """
    versions = Versions(serving, root.withdrawn) if serving else root.versions
    served = versions.served_before(run_id)
    origin = versions.origin_of(served) if served else None
    compared = accepted_run or (origin.pipeline_run_id if origin else "")
    folder = statistics_folder(root, compared) if compared else None
    return folder if folder and folder.is_dir() else None


def statistics_folder(root: Root, run_id: str) -> Path:
    """Returns the folder with the statistics of a run, `Split-NAME/FeatureStats.pb`; it may be gone."""
    record = root.records.read(run_id)
    step = record.step("StatisticsGen") if record else ""
    if step:
        return root.artifacts / "StatisticsGen" / step / "statistics"
    return root.kept_artifact(run_id, "statistics")  # of a run on Kubeflow
