"""Differences between two runs, from their records: outcome, metrics, data, code, times and more."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.config.toml import flat_settings
from pipelines.data.spans import describe_spans
from pipelines.root.check_records import subject
from pipelines.root.records import RunRecord

_NOT_COMPARED = ("kubeflow",)
_MAX_TEXT = 60


@dataclass(frozen=True)
class Difference:
    """One difference between two runs."""

    # `outcome`, `metrics`, `data`, `columns`, `configuration`, `code`, `model`, `environment` or `durations`.
    section: str
    name: str
    before: Any  # Value in the first run; None where it is missing
    after: Any  # Value in the second run; None where it is missing

    @property
    def change(self) -> float | None:
        """The second number minus the first; None unless both are numbers."""
        values = (self.before, self.after)
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
            return None
        return float(self.after) - float(self.before)

    @property
    def is_seconds(self) -> bool:
        return self.section == "durations"


def compare_runs(first: RunRecord, second: RunRecord) -> list[Difference]:
    """Returns the differences, in the order of the sections."""
    differences: list[Difference] = []
    for section, describe in _SECTIONS.items():
        before, after = dict(describe(first)), dict(describe(second))
        for name in dict.fromkeys((*before, *after)):
            value, other = before.get(name), after.get(name)
            if value != other:
                differences.append(Difference(section, name, value, other))
    return differences


def recorded_sections(record: RunRecord) -> set[str]:
    """Returns the sections of which a record has anything; that of a TFX pipeline has no `columns`."""
    return {
        section
        for section, describe in _SECTIONS.items()
        if any(value not in (None, "") for _, value in describe(record))
    }


def comparison_json(first: RunRecord, second: RunRecord) -> dict[str, Any]:
    """Returns the comparison as `runs --compare A B --json` prints it."""
    return {
        "runs": [first.run_id, second.run_id],
        "differences": [
            {**asdict(difference), "change": difference.change} for difference in compare_runs(first, second)
        ],
    }


def comparison_table(first: RunRecord, second: RunRecord) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table("", "name", first.run_id, second.run_id, "change", box=None)
    section = ""
    for difference in compare_runs(first, second):
        cells = (
            difference.section if difference.section != section else "",
            difference.name,
            *shown_pair(difference),
            "" if difference.change is None else f"{difference.change:+.4g}",
        )
        table.add_row(*map(Text, cells))
        section = difference.section
    return table


def shown_pair(difference: Difference) -> tuple[str, str]:
    return _shown(difference, difference.before), _shown(difference, difference.after)


def _shown(difference: Difference, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f} s" if difference.is_seconds else f"{value:.6g}"
    text = str(value)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


def _outcome(record: RunRecord) -> Iterator[tuple[str, Any]]:
    yield "status", record.status
    yield "version", record.version
    yield "baseline", record.baseline_version
    for check in record.checks:
        name = f"{subject(check)} against {check['against']}"
        yield name, "passed" if check["passed"] else "failed"


def _data(record: RunRecord) -> Iterator[tuple[str, Any]]:
    yield "fingerprint", record.data_fingerprint[:16]
    if record.spans:
        yield "spans", describe_spans(record.spans)
    sizes: Mapping[str, Any] = record.label_by_split.get("sizes", {})
    for split, size in sizes.items():
        yield f"rows in {split}", size
    for file in record.data_files:
        yield file["path"], file["sha256"][:16]


def _configuration(record: RunRecord) -> Iterator[tuple[str, Any]]:
    compared = {key: value for key, value in record.config.items() if key not in _NOT_COMPARED}
    for key, value in flat_settings(compared).items():
        if value not in (None, [], ()):  # equal to not set, which an older record may not have
            yield key, value if isinstance(value, str | int | float) else str(value)


def _model(record: RunRecord) -> Iterator[tuple[str, Any]]:
    for model in record.models:
        if model["is_chosen"]:
            yield f"weight of {model['model']}", model.get("weight", 1.0)
        yield f"loss of {model['model']}", model["loss"]
        yield f"best step of {model['model']}", model["step"]


def _durations(record: RunRecord) -> Iterator[tuple[str, Any]]:
    for component in record.components:
        is_cached = component.status == "cached"
        yield component.name, "cached" if is_cached else round(component.elapsed_secs, 1)


_SECTIONS = {
    "outcome": _outcome,
    "metrics": lambda record: record.metrics.items(),
    "data": _data,
    "columns": lambda record: (
        (column["name"], f"{column['kind']}: {column['use']}") for column in record.columns
    ),
    "configuration": _configuration,
    "code": lambda record: ((name, digest[:16]) for name, digest in record.code_definitions.items()),
    "model": _model,
    "environment": lambda record: record.environment.items(),
    "durations": _durations,
}
