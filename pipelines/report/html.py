"""Writes the record of a run as one self-contained HTML file."""

import json
from pathlib import Path
from typing import Any

from pipelines.checks import CheckRecord, against_text, interval_text
from pipelines.data.spans import name_spans
from pipelines.report.data_sections import data_sections
from pipelines.report.html_table import number as _number
from pipelines.report.html_table import table as _table
from pipelines.report.html_table import text as _text
from pipelines.report.model_sections import model_sections
from pipelines.run_record import RunRecord

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem;
       color: #1c2430; background: #fff; }
h1 { font-size: 1.4rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.verdict { display: inline-block; padding: .2rem .7rem; border-radius: .4rem; font-weight: 600; }
.pushed { background: #d9f2e0; color: #0b5c26; } .not_blessed { background: #fdeecb; color: #6b4700; }
.unchanged { background: #dde8fb; }
.failed, .interrupted { background: #fbdcdc; color: #7c1212; } .running { background: #dde8fb; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
td, th { padding: .25rem 1rem .25rem 0; text-align: left; }
th { border-bottom: 1px solid #b8c0cc; } td.number { text-align: right;
     font-variant-numeric: tabular-nums; }
.bar { display: inline-block; height: .7rem; background: #4a78c2; border-radius: .2rem; }
pre { background: #f3f5f8; padding: .8rem; overflow-x: auto; }
"""

_OUTCOMES = {
    "pushed": "pushed",
    "unchanged": "unchanged",
    "not_blessed": "not blessed",
    "failed": "failed",
    "interrupted": "interrupted",
    "running": "running",
}


def write_report(record: RunRecord, target: Path) -> None:
    """Writes the report of a run to a file, whole or not at all."""
    partial = target.with_name(f".{target.name}.partial")
    partial.write_text(render_report(record), encoding="utf-8")
    partial.replace(target)


def render_report(record: RunRecord) -> str:
    """Returns the report of a run as HTML: verdict, metrics, slices, components, configuration."""
    sections = [
        f"<h1>{_text(record.name)}</h1>",
        f"<p>Run {_text(record.run_id)}, {_text(record.started)} to "
        f"{_text(record.finished or 'now')}"
        + (f"; {_text(name_spans(record.spans))}" if record.spans else "")
        + "</p>",
        f'<p><span class="verdict {_text(record.status)}">{_OUTCOMES[record.status]}</span> '
        f"{_text(f'version {record.version}' if record.version else '')} "
        f"{_text(record.reason or '')}</p>",
    ]
    if record.metrics:
        rows = (
            [_text(name), _number(value), _number(record.baseline_metrics.get(name))]
            for name, value in record.metrics.items()
        )
        baseline = f"baseline, version {record.baseline_version}" if record.baseline_metrics else ""
        header = ("metric", "value", baseline or "baseline: none")
        sections += ["<h2>Metrics on the evaluation split</h2>", _table(header, rows)]
    if record.checks:
        columns = ("metric", "against", "value", "bound", "difference", "interval", "", "in words")
        rows = (
            [
                _text(check["metric"]),
                _text(against_text(check)),
                _number(check["value"]),
                _number(check["bound"]),
                _number(check["difference"], "{:+.4g}"),
                _text(_interval(check)),
                "✓" if check["passed"] else "✗",
                _text(check["message"]),
            ]
            for check in record.checks
        )
        sections += ["<h2>Checks</h2>", _table(columns, rows)]
    if record.not_checked:
        items = "".join(f"<li>{_text(reason)}</li>" for reason in record.not_checked)
        sections += ["<h2>Not checked</h2>", f"<ul>{items}</ul>"]
    if record.slices:
        names = list(record.metrics)
        rows = (
            [_text(key), *(_number(values.get(name)) for name in names)]
            for key, values in record.slices.items()
        )
        sections += ["<h2>Slices</h2>", _table(("slice", *names), rows)]
    sections += model_sections(record)
    sections += data_sections(record)
    if record.components:
        longest = max(component.elapsed_secs for component in record.components) or 1.0
        rows = (
            [
                _text(component.name),
                _text(component.status),
                _number(component.elapsed_secs, "{:.1f}"),
                f'<span class="bar" style="width:{12 * component.elapsed_secs / longest:.2f}rem">'
                "</span>",
            ]
            for component in record.components
        )
        sections += ["<h2>Components</h2>", _table(("component", "status", "seconds", ""), rows)]
    if record.notes:
        items = "".join(f"<li>{_text(note)}</li>" for note in record.notes)
        sections += ["<h2>Notes</h2>", f"<ul>{items}</ul>"]
    configuration = _text(json.dumps(_given(record.config), indent=1, ensure_ascii=False))
    sections += [
        "<h2>Configuration</h2>",
        f"<pre>{configuration}</pre>",
        f"<p>Data fingerprint {_text(record.data_fingerprint[:16])}, log {_text(record.log)}</p>",
    ]
    title = _text(f"{record.name} {record.run_id}")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>\n" + "\n".join(sections) + "\n</body></html>\n"
    )


def _interval(check: CheckRecord) -> str:
    confidence = check["confidence"]
    return interval_text(check) + (f" ({100 * confidence:g} %)" if confidence else "")


def _given(config: Any) -> Any:
    """Returns a configuration without what is not set: its default is in the other sections."""
    if isinstance(config, dict):
        return {key: _given(value) for key, value in config.items() if value is not None}
    return [_given(item) for item in config] if isinstance(config, list | tuple) else config
