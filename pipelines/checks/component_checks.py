"""Checks after components: they report their findings, and end a run that must not continue.

A check is a dataclass of plain values. It can therefore be written to a file and recreated in another
process: on Kubeflow each step runs its own check.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pipelines.artifacts.anomalies import NOTE_PREFIX, read_anomalies, read_drift
from pipelines.artifacts.curves import read_curves
from pipelines.artifacts.search import search_in_words
from pipelines.artifacts.signatures import describe_model
from pipelines.artifacts.split_sizes import count_examples
from pipelines.artifacts.statistics import describe_statistics
from pipelines.checks.label_comparison import compare_labels, read_labels
from pipelines.config.evaluator import ThresholdConfig
from pipelines.data.formats.number_format import NumberFormat
from pipelines.definitions.evaluation import merge_thresholds
from pipelines.errors import RunFailedError, counted
from pipelines.root import Root
from pipelines.root.changed_data import Interval, changed_data_note
from pipelines.root.check_records import CheckRecord, check_records
from pipelines.root.details import Details
from pipelines.root.history import run_of_version
from pipelines.root.records import Metrics

if TYPE_CHECKING:
    from tfx.dsl.components.base.base_node import BaseNode

    from pipelines.definitions.csv_to_serving import CsvToServing
    from pipelines.definitions.run_plan import RunPlan

_LOGGER = logging.getLogger(__name__)

Outputs = Mapping[str, list[Any]]
"""Output artifacts of a component, by key."""


class Findings(Protocol):
    """Receiver of the checks' findings, such as a run's `RunRecorder`."""

    def note(self, text: str) -> None:
        """Receives a note."""

    def add_label_comparison(self, comparison: dict[str, Any]) -> None:
        """Receives the distribution of the label in the splits."""

    def add_models(self, models: tuple[dict[str, Any], ...]) -> None:
        """Receives the models that were trained, with the best one marked."""

    def add_details(self, section: str, values: Details) -> None:
        """Receives details of a component for the report."""

    def add_verdict(
        self,
        metrics: Metrics,
        baseline_metrics: Metrics,
        slices: dict[str, Metrics],
        checks: tuple[CheckRecord, ...] = (),
        not_checked: tuple[str, ...] = (),
        intervals: dict[str, Interval] | None = None,
        doubts: tuple[str, ...] = (),
    ) -> None:
        """Receives the results of the evaluation."""


class ComponentCheck(Protocol):
    """Checks the outputs of one component."""

    def __call__(self, outputs: Outputs, findings: Findings, root: Root) -> None:
        """Reports its findings.

        Args:
          outputs: Output artifacts of the component.
          findings: Receiver of the findings.
          root: Root of the runs.

        Raises:
          RunFailedError: The run must not continue.
        """


@dataclass(frozen=True)
class LabelCheck:
    """Compares the label in the splits.

    Attributes:
      component: Id of the component that made the splits.
      label: Name of the label's column.
      number_format: Fields of the format of its numbers; None reads them as Python does.
      split_by: Value of `split.by`.
      stops: True if a difference ends the run.
    """

    component: str
    label: str
    number_format: Mapping[str, Any] | None
    split_by: str
    stops: bool

    def __call__(self, outputs: Outputs, findings: Findings, root: Root) -> None:
        """Reports the comparison."""
        given = None if self.number_format is None else NumberFormat(**self.number_format)
        found = compare_labels(read_labels(outputs["examples"][0], self.label, given))
        if found is None:
            return
        findings.add_label_comparison(found.as_record(self.label))
        if not found.is_significant:
            return
        difference = f"the splits differ in the label: {found.describe(self.label)}"
        if not self.stops:
            findings.note(difference)
            return
        raise RunFailedError(
            self.component,
            f"{difference}. A model would be judged on other data than it is made for. Correct the "
            f'split (split.by = "{self.split_by}"), or go on with split.on_label_difference = "warn"',
            is_bad_input=True,
        )


@dataclass(frozen=True)
class SplitCheck:
    """Checks that there are rows to train and to evaluate on.

    Attributes:
      component: Id of the component that divides the rows.
      stops: True if an empty split ends the run.
    """

    component: str
    stops: bool = True

    def __call__(self, outputs: Outputs, findings: Findings, root: Root) -> None:
        """Reports the statistics."""
        _add_details(findings, "statistics", lambda: describe_statistics(outputs["statistics"][0]))
        if not self.stops:
            return
        for split, num_examples in count_examples(outputs["statistics"][0]).items():
            if not num_examples:
                raise RunFailedError(
                    self.component,
                    f"no row fell into the split {split!r}: the data have too few. More rows are "
                    "needed to train and to evaluate",
                    is_bad_input=True,
                )


@dataclass(frozen=True)
class AnomalyCheck:
    """Reports the anomalies of the ExampleValidator; ends the run if so configured.

    Attributes:
      component: Id of the ExampleValidator.
      on_anomalies: Value of `example_validator.on_anomalies`.
      has_own_schema: True if the schema is the user's.
    """

    component: str
    on_anomalies: str
    has_own_schema: bool

    def __call__(self, outputs: Outputs, findings: Findings, root: Root) -> None:
        """Reports each anomaly."""
        found = read_anomalies(outputs["anomalies"][0])
        _add_details(
            findings,
            "anomalies",
            lambda: {
                "found": [asdict(anomaly) for anomaly in found],
                "drift": read_drift(outputs["anomalies"][0]),
            },
        )
        for anomaly in found:
            findings.note(f"{NOTE_PREFIX}{anomaly.text}")
        breaking = [anomaly for anomaly in found if anomaly.is_breaking]
        failing = {"warn": [], "fail": found, "fail_if_broken": breaking}[self.on_anomalies]
        if failing:
            accepting = (
                "go on with --set example_validator.on_anomalies=warn"
                if self.has_own_schema
                else "take them as the new state with `estimator-pipelines schema accept`"
            )
            if any(anomaly.is_drift for anomaly in failing):
                accepting += (
                    ", or name a column that is meant to change in example_validator.moving"
                )
            raise RunFailedError(
                self.component,
                "the data are not what the model needs "
                f"({counted(len(failing), 'anomaly', 'anomalies')}; the first: {failing[0].text}) "
                f"and example_validator.on_anomalies = {self.on_anomalies!r}. Correct the data; if they "
                f"are right, {accepting}",
                is_bad_input=True,
            )


@dataclass(frozen=True)
class ModelCheck:
    """Reports the training and the signatures of the model.

    Attributes:
      compares_models: True if it is the best of several.
    """

    compares_models: bool = True

    def __call__(self, outputs: Outputs, findings: Findings, root: Root) -> None:
        """Reports the curves and the signatures; for several models, the choice among them."""
        _add_details(findings, "training", lambda: read_curves(outputs["model_run"][0].uri))
        _add_details(findings, "signatures", lambda: describe_model(outputs["model"][0]))
        if not self.compares_models:
            return
        from pipelines.tabular.model_selection import read_candidates

        found = read_candidates(outputs["model_run"][0].uri)
        findings.add_models(tuple(candidate.as_record() for candidate in found))
        (chosen,) = (candidate for candidate in found if candidate.is_chosen)
        others = "; ".join(one.describe() for one in found if one is not chosen)
        if others:  # with a Tuner, the model was chosen before
            findings.note(f"model: {chosen.describe()} is better than {others}")


@dataclass(frozen=True)
class SearchCheck:
    """Reports the trials of the Tuner."""

    def __call__(self, outputs: Outputs, findings: Findings, root: Root) -> None:
        """Reports all trials, and the best one in a note."""
        import components

        found = components.load_search(outputs["tuner_results"][0].uri)
        _add_details(findings, "search", lambda: found)
        findings.note(f"tuner: {search_in_words(found)}")


@dataclass(frozen=True)
class VerdictCheck:
    """Reports the metrics as soon as they are known, so that a run that is killed later has them, too.

    Attributes:
      metrics: Names of the metrics, in configured order.
      thresholds: User's thresholds: the fields of `ThresholdConfig`.
      baseline_version: Version that is served; None without one.
    """

    metrics: tuple[str, ...]
    thresholds: tuple[dict[str, Any], ...]
    baseline_version: str | None

    def __call__(self, outputs: Outputs, findings: Findings, root: Root) -> None:
        """Reports the verdict, and compares the baseline's metrics with those at its push."""
        import components

        verdict = components.load_verdict(outputs["evaluation"][0].uri)
        metrics = _in_order(verdict.metrics, self.metrics)
        baseline = _in_order(verdict.baseline_metrics, self.metrics)
        thresholds = merge_thresholds(tuple(ThresholdConfig(**one) for one in self.thresholds))
        findings.add_verdict(
            metrics,
            baseline,
            {name: _in_order(values, self.metrics) for name, values in verdict.slices.items()},
            check_records(verdict.checks, thresholds, metrics, baseline, verdict.intervals),
            verdict.not_checked,
            dict(verdict.intervals),
            verdict.doubts,
        )
        for doubt in () if verdict.held else verdict.doubts:  # a held model has them as its reason
            findings.note(f"doubt: {doubt}")
        uri = outputs["evaluation"][0].uri
        excesses = [asdict(one) for one in verdict.excesses]
        _add_details(
            findings,
            "evaluation",
            lambda: {**components.load_details(uri), "excesses": excesses},
        )
        former = run_of_version(root, self.baseline_version)
        if former is not None and baseline:
            note = changed_data_note(
                former.version,
                former.metrics,
                former.intervals,
                baseline,
                verdict.baseline_intervals,
            )
            if note and not verdict.doubts:
                findings.note(note)


@dataclass(frozen=True)
class ServedModelCheck:
    """Reports what the ServingCheck compared and measured."""

    def __call__(self, outputs: Outputs, findings: Findings, root: Root) -> None:
        """Reports the result; what could not be compared is a note."""
        import components

        found = components.load_serving_check(outputs["blessing"][0].uri)
        _add_details(findings, "serving_check", lambda: asdict(found))
        for reason in found.not_checked:
            findings.note(f"ServingCheck: not compared: {reason}")


_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        LabelCheck,
        SplitCheck,
        AnomalyCheck,
        SearchCheck,
        ModelCheck,
        VerdictCheck,
        ServedModelCheck,
    )
}


def component_checks(
    plan: "RunPlan", pipeline: "CsvToServing", baseline_version: str | None
) -> dict["BaseNode", ComponentCheck]:
    """Returns the checks of a run, by component.

    Args:
      plan: Plan of the run.
      pipeline: Pipeline with the components.
      baseline_version: Version that is served; None without one.
    """
    code, split = plan.code, plan.config.split
    written = code.plan.label.number_format if code.plan else None
    checks: dict[BaseNode, ComponentCheck] = {
        pipeline.example_gen: LabelCheck(
            pipeline.example_gen.id,
            plan.config.data.label,
            None if written is None else asdict(written),
            split.by,
            split.stops_at_label_difference,
        ),
        pipeline.statistics_gen: SplitCheck(pipeline.example_gen.id),
        pipeline.example_validator: AnomalyCheck(
            pipeline.example_validator.id,
            plan.config.example_validator.on_anomalies,
            has_own_schema=plan.schema is not None,
        ),
        pipeline.trainer: ModelCheck(
            code.plan is not None and code.plan.training.model == "auto",
        ),
        pipeline.evaluator: VerdictCheck(
            code.metrics,
            tuple(bound.model_dump() for bound in code.thresholds),
            baseline_version,
        ),
        pipeline.serving_check: ServedModelCheck(),
    }
    if pipeline.tuner is not None:
        checks[pipeline.tuner] = SearchCheck()
    return checks


def check_as_json(check: ComponentCheck) -> dict[str, Any]:
    """Returns a check as plain values."""
    settings: Any = check
    return {"kind": type(check).__name__, **asdict(settings)}


def check_from_json(fields: Mapping[str, Any]) -> ComponentCheck:
    """Returns the check from the values of `check_as_json`."""
    settings = {
        key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
    }
    kind = _KINDS[str(settings.pop("kind"))]
    check: ComponentCheck = kind(**settings)
    return check


def _add_details(findings: Findings, section: str, describe: Callable[[], Details]) -> None:
    """Reports the details of a component; an error is only a note, and does not end the run."""
    try:
        findings.add_details(section, describe())
    except Exception as error:  # any library error, as the file is only for the report
        _LOGGER.exception("no details of %s", section)
        reason = f"{type(error).__name__}: {error}"
        findings.note(
            f"the report goes without details of {section}, which cannot be read: {reason}"
        )


def _in_order(metrics: Metrics, names: tuple[str, ...]) -> Metrics:
    """Returns the metrics in configured order, followed by the others.

    TFMA adds a `<metric>_diff` to the baseline's; a reader with both values needs no third.
    """
    return {
        name: metrics[name]
        for name in dict.fromkeys((*names, *metrics))
        if name in metrics and name.removesuffix("_diff") not in metrics.keys() - {name}
    }
