"""Checks after components: each returns its findings, which may say that the run must not continue.

A check is a dataclass of plain values. It can therefore be written to a file and recreated in another
process: on Kubeflow each step runs its own check.
"""

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from components.tfx.decision_file import DECISION_FILE
from pipelines.artifacts.anomalies import NOTE_PREFIX, read_anomalies, read_drift
from pipelines.artifacts.curves import read_curves
from pipelines.artifacts.search import search_in_words
from pipelines.artifacts.statistics import count_examples, describe_statistics
from pipelines.config.evaluator import ThresholdConfig
from pipelines.data.formats.number_format import NumberFormat
from pipelines.errors import RunFailedError, counted
from pipelines.root import Root
from pipelines.root.baseline import changed_data_note
from pipelines.root.check_records import OVERALL, check_records
from pipelines.root.details import Details
from pipelines.root.history import run_of_version
from pipelines.root.records import Metrics, VerdictRecord
from pipelines.root.served_run import weighs_alike
from pipelines.runs.checks.label_comparison import compare_labels, read_labels
from pipelines.runs.checks.model_description import describe_model
from pipelines.runs.definitions.evaluation import merge_thresholds

if TYPE_CHECKING:
    from tfx.dsl.components.base.base_node import BaseNode

    from pipelines.runs.definitions.csv_to_serving import CsvToServing
    from pipelines.runs.definitions.run_plan import RunPlan

_LOGGER = logging.getLogger(__name__)

Outputs = Mapping[str, list[Any]]
"""Output artifacts of a component, by key."""


@dataclass(frozen=True)
class Findings:
    facts: tuple[str, ...] = ()  # what was chosen
    notes: tuple[str, ...] = ()  # warnings
    label_comparison: dict[str, Any] | None = None  # the fields of a `LabelComparison`
    models: tuple[dict[str, Any], ...] = ()  # trained models, with the best one marked
    details: dict[str, Details] = field(default_factory=dict)  # for the report, by section
    verdict: VerdictRecord | None = None
    test_metrics: Metrics = field(default_factory=dict)  # of the split `test`
    failure: RunFailedError | None = None  # reason why the run must not continue


ComponentCheck = Callable[[Outputs, Root], Findings]
"""Check of a component's outputs. It has no effects."""


@dataclass(frozen=True)
class LabelCheck:
    """Compares the label in the splits."""

    component: str  # Id of the component that made the splits
    label: str  # Name of the label's column
    # Fields of the format of its numbers; None reads them as Python does.
    number_format: Mapping[str, Any] | None
    split_by: str
    stops: bool  # True if a difference ends the run

    def __call__(self, outputs: Outputs, root: Root) -> Findings:
        number_format = None if self.number_format is None else NumberFormat(**self.number_format)
        comparison = compare_labels(read_labels(outputs["examples"][0], self.label, number_format))
        if comparison is None:
            return Findings()
        record = comparison.as_record(self.label)
        if not comparison.is_significant:
            return Findings(label_comparison=record)
        difference = f"the splits differ in the label: {comparison.describe(self.label)}"
        if not self.stops:
            return Findings(notes=(difference,), label_comparison=record)
        failure = RunFailedError(
            self.component,
            f"{difference}. The model would be evaluated on other data than it was trained for. Correct the "
            f'split (split.by = "{self.split_by}"), or continue with split.on_label_difference = "warn"',
            is_bad_input=True,
        )
        return Findings(label_comparison=record, failure=failure)


@dataclass(frozen=True)
class SplitCheck:
    """Checks that there are rows to train and to evaluate on."""

    component: str  # Id of the component that divides the rows
    stops: bool = True  # True if an empty split ends the run

    def __call__(self, outputs: Outputs, root: Root) -> Findings:
        """Returns the statistics; an empty split may end the run."""
        (statistics,) = outputs["statistics"]
        details, notes = _details(statistics=lambda: describe_statistics(statistics))
        if not self.stops:
            return Findings(notes=notes, details=details)
        for split, num_examples in count_examples(statistics).items():
            if not num_examples:
                failure = RunFailedError(
                    self.component,
                    f"the split {split!r} has no rows, because the data have too few. More are needed to "
                    "train and to evaluate",
                    is_bad_input=True,
                )
                return Findings(notes=notes, details=details, failure=failure)
        return Findings(notes=notes, details=details)


@dataclass(frozen=True)
class AnomalyCheck:
    """Reads the anomalies of the ExampleValidator; ends the run if so configured."""

    component: str  # Id of the ExampleValidator
    on_anomalies: str  # Value of `example_validator.on_anomalies`
    has_own_schema: bool  # True if the schema is the user's

    def __call__(self, outputs: Outputs, root: Root) -> Findings:
        """Returns all anomalies, whether or not they end the run."""
        (artifact,) = outputs["anomalies"]
        anomalies = read_anomalies(artifact)
        details, notes = _details(
            anomalies=lambda: {
                "found": [asdict(anomaly) for anomaly in anomalies],
                "drift": read_drift(artifact),
            }
        )
        notes += tuple(f"{NOTE_PREFIX}{anomaly.text}" for anomaly in anomalies)
        breaking = [anomaly for anomaly in anomalies if anomaly.is_breaking]
        failing = {"warn": [], "fail": anomalies, "fail_if_broken": breaking}[self.on_anomalies]
        failure = None
        if failing:
            accepting = (
                "continue with --set example_validator.on_anomalies=warn"
                if self.has_own_schema
                else "accept them with `estimator-pipelines schema accept`"
            )
            if any(anomaly.is_drift for anomaly in failing):
                accepting += ", or name a column that is meant to change in example_validator.moving"
            failure = RunFailedError(
                self.component,
                f"the data failed validation ({counted(len(failing), 'anomaly', 'anomalies')}; the first: "
                f"{failing[0].text}) with example_validator.on_anomalies = {self.on_anomalies!r}. Correct "
                f"the data; if they are right, {accepting}",
                is_bad_input=True,
            )
        return Findings(notes=notes, details=details, failure=failure)


@dataclass(frozen=True)
class ModelCheck:
    """Reads the training and the signatures of the model."""

    compares_models: bool = True  # True if it is the best of several
    decides: bool = False  # True if its decision threshold is configured

    def __call__(self, outputs: Outputs, root: Root) -> Findings:
        """Returns the curves and the signatures; for several models, the choice among them."""
        details, notes = _details(
            training=lambda: read_curves(outputs["model_run"][0].uri),  # a Trainer may have none
            signatures=lambda: describe_model(outputs["model"][0]),
        )
        facts: tuple[str, ...] = ()
        if self.decides:
            from pipelines.tabular.decision import read_decision

            decision = read_decision(os.path.join(outputs["model_run"][0].uri, DECISION_FILE))
            facts = (f"decision: {decision.describe()}",)
        if not self.compares_models:
            return Findings(facts, notes, details=details)
        from pipelines.tabular.model_selection import describe_choice, read_candidates

        candidates = read_candidates(outputs["model_run"][0].uri)
        if len(candidates) > 1:  # with a Tuner, the model was chosen before
            chosen = [candidate for candidate in candidates if candidate.is_chosen]
            compared = "; ".join(candidate.describe() for candidate in candidates)
            facts += (f"model: {describe_choice(chosen)}, chosen from {compared}",)
        models = tuple(candidate.as_record() for candidate in candidates)
        return Findings(facts, notes, models=models, details=details)


@dataclass(frozen=True)
class SearchCheck:
    """Reads the trials of the Tuner."""

    def __call__(self, outputs: Outputs, root: Root) -> Findings:
        """Returns all trials, and the best one as a fact."""
        import components

        search = components.load_search(outputs["tuner_results"][0].uri)
        details, notes = _details(search=lambda: search)
        return Findings((f"tuner: {search_in_words(search)}",), notes, details=details)


@dataclass(frozen=True)
class VerdictCheck:
    """Reads the metrics as soon as they are known, so that a run that is killed later has them, too."""

    metrics: tuple[str, ...]  # Names of the metrics, in configured order
    thresholds: tuple[dict[str, Any], ...]  # User's thresholds: the fields of `ThresholdConfig`
    baseline_version: str | None  # Version that is served; None if its run weighed rows in another way

    def __call__(self, outputs: Outputs, root: Root) -> Findings:
        """Returns the verdict, and compares the baseline's metrics with those at its push."""
        import components

        uri = outputs["evaluation"][0].uri
        verdict = components.load_verdict(uri)
        metrics = _in_order(verdict.metrics, self.metrics)
        baseline = _in_order(verdict.baseline_metrics, self.metrics)
        thresholds = merge_thresholds(tuple(ThresholdConfig(**fields) for fields in self.thresholds))
        details, unread = _details(
            evaluation=lambda: {
                **components.load_details(uri),
                "excesses": [asdict(excess) for excess in verdict.excesses],
            }
        )
        measured = details.get("evaluation", {}).get("slices", {}).get("slices", {})
        intervals = {name: part["intervals"] for name, part in measured.items()}
        intervals[OVERALL] = {**intervals.get(OVERALL, {}), **verdict.intervals}
        # The doubts about a held model are the reason of its outcome.
        doubts = () if verdict.held else tuple(f"doubt: {doubt}" for doubt in verdict.doubts)
        pushed = run_of_version(root, self.baseline_version)
        changed = None
        if pushed is not None and baseline and not verdict.doubts:
            changed = changed_data_note(
                pushed.version, pushed.metrics, pushed.intervals, baseline, verdict.baseline_intervals
            )
        return Findings(
            notes=(*doubts, *unread, *([changed] if changed else [])),
            details=details,
            verdict=VerdictRecord(
                metrics,
                baseline,
                {name: _in_order(values, self.metrics) for name, values in verdict.slices.items()},
                check_records(
                    verdict.checks,
                    thresholds,
                    {OVERALL: metrics, **verdict.slices},
                    {OVERALL: baseline, **verdict.baseline_slices},
                    intervals,
                ),
                verdict.not_checked,
                dict(verdict.intervals),
                verdict.doubts,
                _confusion(details.get("evaluation", {}).get("plots", {})),
            ),
        )


def _confusion(plots: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the decisions of a binary model whose classes have names; empty for others."""
    if plots.get("problem_type") != "binary" or len(plots["classes"]) != 2 or not plots["model"]:
        return {}
    return {"classes": plots["classes"], **plots["model"]["confusion"]}


@dataclass(frozen=True)
class FinalMetricsCheck:
    """Reads the metrics of the split `test`."""

    metrics: tuple[str, ...]  # Names of the metrics, in configured order

    def __call__(self, outputs: Outputs, root: Root) -> Findings:
        import components

        verdict = components.load_verdict(outputs["evaluation"][0].uri)
        if not verdict.metrics.get("example_count"):
            return Findings(notes=("the split 'test' has no rows, because the data have too few",))
        return Findings(test_metrics=_in_order(verdict.metrics, self.metrics))


@dataclass(frozen=True)
class ServedModelCheck:
    """Reads what the ServingCheck compared and measured."""

    def __call__(self, outputs: Outputs, root: Root) -> Findings:
        """Returns the result; what could not be compared is a note."""
        import components

        result = components.load_serving_check(outputs["blessing"][0].uri)
        details, notes = _details(serving_check=lambda: asdict(result))
        notes += tuple(f"ServingCheck: not compared: {reason}" for reason in result.not_checked)
        return Findings(notes=notes, details=details)


_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        LabelCheck,
        SplitCheck,
        AnomalyCheck,
        SearchCheck,
        ModelCheck,
        VerdictCheck,
        FinalMetricsCheck,
        ServedModelCheck,
    )
}

ENDING_CHECKS = ("LabelCheck", "SplitCheck", "AnomalyCheck")
"""Kinds of checks that may end a run."""


def component_checks(
    plan: "RunPlan", pipeline: "CsvToServing", baseline_version: str | None
) -> dict["BaseNode", ComponentCheck]:
    code, split = plan.code, plan.config.split
    written = code.plan.label.number_format if code.plan else None
    served = run_of_version(plan.root, baseline_version)
    if served is not None and not weighs_alike(served, plan.config):
        baseline_version = None
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
            code.plan is not None and code.plan.decides,
        ),
        pipeline.evaluator: VerdictCheck(
            code.metrics, tuple(bound.model_dump() for bound in code.thresholds), baseline_version
        ),
        pipeline.serving_check: ServedModelCheck(),
    }
    if pipeline.tuner is not None:
        checks[pipeline.tuner] = SearchCheck()
    if pipeline.test_evaluator is not None:
        checks[pipeline.test_evaluator] = FinalMetricsCheck(code.metrics)
    return checks


def check_as_json(check: ComponentCheck) -> dict[str, Any]:
    """Returns a check as plain values."""
    settings: Any = check
    return {"kind": type(check).__name__, **asdict(settings)}


def check_from_json(fields: Mapping[str, Any]) -> ComponentCheck:
    """Returns the check from the values of `check_as_json`."""
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
    kind = _KINDS[str(settings.pop("kind"))]
    check: ComponentCheck = kind(**settings)
    return check


def _details(**readers: Callable[[], Details]) -> tuple[dict[str, Details], tuple[str, ...]]:
    """Returns details by section; an error is only a note, and does not end the run."""
    details: dict[str, Details] = {}
    notes: list[str] = []
    for section, read in readers.items():
        try:
            values = read()
            json.dumps(values, allow_nan=False)  # as it will be stored
            details[section] = values
        except Exception as error:  # any library error, as the file is only for the report
            _LOGGER.exception("no details of %s", section)
            reason = f"{type(error).__name__}: {error}"
            notes.append(f"the report goes without details of {section}, which cannot be read: {reason}")
    return details, tuple(notes)


def _in_order(metrics: Metrics, names: tuple[str, ...]) -> Metrics:
    """Returns the metrics in configured order, followed by the others.

    TFMA adds a `<metric>_diff` to the baseline's; a reader with both values needs no third.
    """
    return {
        name: metrics[name]
        for name in dict.fromkeys((*names, *metrics))
        if name in metrics and name.removesuffix("_diff") not in metrics.keys() - {name}
    }
