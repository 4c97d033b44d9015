"""The baseline of a new model and its data: the live model, and the statistics and metrics of its data."""

from collections.abc import Mapping
from pathlib import Path

from components.evaluator.gate.default_checks import ValueThen
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.served_run import serving_run
from pipelines.root.versions import Versions


def find_baseline_model(root: Root, run_id: str, required: bool, serving: Path | None = None) -> Path | None:
    """Returns the folder of the model that served before a run; None if nothing was served."""
    versions = Versions(serving, root.withdrawn) if serving else root.versions
    served = versions.served_before(run_id)
    if served is None:
        return None
    origin = versions.version_origin(served)
    model = Path(origin.model_uri) if origin else None
    if model is not None and model.is_relative_to(root) and model.is_dir():
        return model
    if not required:
        return None
    raise BadInputError(
        f"Version {served} in {serving or root.serving} is live, but a new model cannot be compared with it: "
        f"its model is not in {root} ({model or 'it was not pushed by this program'}). Take the version out "
        "of that folder; or set evaluator.default_checks = false and give thresholds without max_regression."
    )


def find_baseline_statistics(
    root: Root, run_id: str, accepted_run: str = "", serving: Path | None = None
) -> Path | None:
    """Returns the folder of the statistics of the data that the live model was trained on before a run.

    None if they are not in the root, as after a push by a run on another machine.
    """
    versions = Versions(serving, root.withdrawn) if serving else root.versions
    served = versions.served_before(run_id)
    origin = versions.version_origin(served) if served else None
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


Interval = tuple[float | None, float | None]


def baseline_when_pushed(root: Root) -> tuple[ValueThen, ...] | None:
    """Returns the metrics of the served version, and of the trivial model, from that version's run.

    None if they are not known. A run that is resumed after its push finds its own: the data are the same
    then.
    """
    record = serving_run(root)
    values_then = []
    for check in record.checks if record else ():
        metric, value, reference = check["metric"], check["value"], check["reference"]
        if check["against"] == "trivial" and value is not None and reference is not None:
            interval = record.intervals.get(metric, (None, None)) if record else (None, None)
            values_then.append(ValueThen(metric, value, reference, interval))
    return tuple(values_then) or None


def changed_data_note(
    version: str | None,
    metrics_then: Mapping[str, float | None],
    intervals_then: Mapping[str, Interval],
    metrics_now: Mapping[str, float | None],
    intervals_now: Mapping[str, Interval],
) -> str | None:
    """Returns a sentence if a metric of the baseline has changed by more than chance; otherwise None."""
    changes = [
        f"{name} was {metrics_then[name]:.5g} and is {metrics_now[name]:.5g}"
        for name, now in intervals_now.items()
        if name in intervals_then
        and metrics_then.get(name) is not None
        and metrics_now.get(name) is not None
        and _are_apart(intervals_then[name], now)
    ]
    if not changes:
        return None
    return (
        f"the data or their meaning have changed: version {version}'s {' and its '.join(changes)}, which is "
        "more than chance. Look at the labels before you trust either model"
    )


def _are_apart(first: Interval, second: Interval) -> bool:
    (low, high), (other_low, other_high) = first, second
    return (high is not None and other_low is not None and high < other_low) or (
        low is not None and other_high is not None and low > other_high
    )
