"""Section of the model's origin: lineage, environment, configuration."""

import json
from typing import Any

from pipelines.data.spans import describe_spans
from pipelines.report import words
from pipelines.report.context import NOT_RECORDED, Context
from pipelines.root.lineage import describe_lineage, versions_of_spans

_MAX_FILES = 200
_MAX_SPANS = 50
_MAX_RUNS = 10


def describe(context: Context) -> dict[str, Any]:
    """Returns the lineage, the environment and the configuration."""
    record = context.record
    lineage = describe_lineage(context.root, record, context.records)
    files = [
        {**file, "size": "" if file["bytes"] is None else words.size(file["bytes"])}
        for file in lineage["data"]["files"][:_MAX_FILES]
    ]
    return {
        "lineage": lineage,
        "spans": describe_spans(record.spans) if record.spans else "",
        "of_spans": _span_rows(context),
        "bad_rows": list(record.bad_rows.items()),
        "bad_rows_file": str(context.root.details(record.same_as or record.run_id).bad_rows),
        "files": files,
        "left_out": len(lineage["data"]["files"]) - len(files),
        "files_missing": None if files else NOT_RECORDED,
        "parameters": sorted(lineage["parameters"].items()),
        "definitions": sorted(lineage["code"]["definitions"].items()),
        "environment": list(record.environment.items()),
        "environment_missing": None if record.environment else NOT_RECORDED,
        "configuration": json.dumps(given(record.config), indent=1, ensure_ascii=False),
        "log": record.log,
        "command": f"estimator-pipelines lineage {record.version or record.run_id}",
    }


def _span_rows(context: Context) -> list[dict[str, Any]]:
    """Returns the runs that read each span of this run, newest first."""
    spans = versions_of_spans(context.root, context.record.spans[-_MAX_SPANS:], context.records)
    return [
        {
            "span": span["span"],
            "left_out": len(span["runs"][:-_MAX_RUNS]),
            "runs": [
                {**run, "state": words.state(run["status"])["word"]}
                for run in reversed(span["runs"][-_MAX_RUNS:])
            ],
        }
        for span in reversed(spans)
    ]


def given(config: Any) -> Any:
    """Returns a configuration without its unset keys: their values are shown in other sections."""
    if isinstance(config, dict):
        return {key: given(value) for key, value in config.items() if value is not None}
    return [given(item) for item in config] if isinstance(config, list | tuple) else config
