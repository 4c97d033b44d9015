"""The lineage of a version, and the versions that used a span, from the records of runs alone."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from pipelines.config.load import is_of_tfx_pipeline
from pipelines.config.toml import flat_settings
from pipelines.data.spans import describe_spans
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.history import read_runs
from pipelines.root.records import Decision, RunFacts, RunRecord, order_key

Run = TypeVar("Run", bound=RunFacts)

Lineage = dict[str, Any]
"""The lineage of one run, as `lineage --json` prints it."""


def find_lineage(root: Root, name: str | None = None, span: str | None = None) -> list[Lineage]:
    """Returns the lineage of runs, oldest first.

    `name`: version, for the run that pushed it, or id of a run. Default: the served version.
    `span`: number or date of a span, for every run that read it; requires that `name` is None.
    """
    records = read_runs(root)
    pruned = root.pruned.read_all()
    if span is not None:
        runs: list[RunFacts] = [*pruned, *records]
        readers = runs_of_span(runs, span)
        if not readers:
            spans = {str(span_fields["span"]) for run in runs for span_fields in run.spans}
            ordered = sorted(spans, key=lambda span_fields: (len(span_fields), span_fields))  # 9 before 10
            raise BadInputError(
                f"No recorded run of {root} has read the span {span}. Spans: {', '.join(ordered) or 'none'}."
            )
        return [
            describe_lineage(root, run, records)
            if isinstance(run, RunRecord)
            else _describe_pruned(root, run)
            for run in readers
        ]
    if name is None:
        name = root.versions.serving()
        if name is None:
            raise BadInputError(f"No version is live in {root}. Name a run or a version, or --span.")
    if not any(name in (record.run_id, record.version) for record in records):
        for run in pruned:
            if name in (run.run_id, run.version):
                return [_describe_pruned(root, run)]
    return [describe_lineage(root, find_run(records, name, root), records)]


def find_run(records: Sequence[RunRecord], name: str, root: Root) -> RunRecord:
    """Returns the newest run with this id, or that pushed this version."""
    for record in reversed(records):
        if name in (record.run_id, record.version):
            return record
    versions = sorted({record.version for record in records if record.version}, key=int)
    raise BadInputError(
        f"There is no run {name!r} in {root}, and none that pushed a version of that name. Versions: "
        f"{', '.join(versions) or 'none'}; the newest runs: "
        f"{', '.join(record.run_id for record in records[-5:]) or 'none'}."
    )


def runs_of_span(runs: Sequence[Run], span: str) -> list[Run]:
    """Returns the runs that read a span, given as text: a number or a date; oldest first."""
    readers = [run for run in runs if any(str(fields["span"]) == span for fields in run.spans)]
    return sorted(readers, key=lambda run: order_key(run.number, run.run_id))


def versions_of_spans(
    root: Root, spans: Sequence[Mapping[str, Any]], records: Sequence[RunRecord]
) -> list[dict[str, Any]]:
    """Returns, for each span, all runs that have read it, with their versions."""
    runs: list[RunFacts] = [*root.pruned.read_all(), *records]
    return [
        {
            "span": str(span["span"]),
            "runs": [
                {
                    "run_id": run.run_id,
                    "status": run.status,
                    "version": run.version,
                    "version_state": root.versions.state(run.version),
                }
                for run in runs_of_span(runs, str(span["span"]))
            ],
        }
        for span in spans
    ]


def describe_lineage(root: Root, record: RunRecord, records: Sequence[RunRecord]) -> Lineage:
    """Returns the origin of a run's version, and its state now."""
    chosen = [model["model"] for model in record.models if model["is_chosen"]]
    baseline = record.baseline_version
    baseline_runs = [other.run_id for other in records if baseline and other.version == baseline]
    return {
        **_describe_run(root, record),
        "baseline_version": record.baseline_version,
        "baseline_run": baseline_runs[-1] if baseline_runs else None,
        "compared_by": [
            other.run_id
            for other in records
            if record.version is not None and other.baseline_version == record.version
        ],
        "is_pruned": False,
        "data": {
            "path": record.section("data").get("path"),
            "label": record.section("data").get("label"),
            "fingerprint": record.data_fingerprint,
            "spans": list(record.spans),
            "files": list(record.data_files),
        },
        "code": {
            "fingerprint": record.code_fingerprint,
            "module": _module(record),
            "git_commit": record.environment.get("git commit"),
            "mended": record.mended,
            "definitions": dict(record.code_definitions),
        },
        "model": " + ".join(chosen) or None,
        "parameters": lineage_parameters(record),
        "metrics": dict(record.metrics),
        "doubts": list(record.doubts),
        "decision": None if record.decision is None else asdict(record.decision),
        "environment": dict(record.environment),
        "kubeflow_run": record.kubeflow_run,
    }


def _describe_pruned(root: Root, run: RunFacts) -> Lineage:
    """Returns the remaining lineage of a run whose record was removed."""
    return {**_describe_run(root, run), "data": {"spans": list(run.spans)}, "is_pruned": True}


def _describe_run(root: Root, run: RunFacts) -> Lineage:
    facts = {
        name: getattr(run, name) for name in ("run_id", "name", "status", "started", "finished", "version")
    }
    return {**facts, "version_state": root.versions.state(run.version)}


def lineage_parameters(record: RunRecord) -> dict[str, Any]:
    """Returns the settings of a run that are set, by `section.key`, without those of the data."""
    omitted = ("data", "name", "kubeflow", "beam")
    sections = {name: values for name, values in record.config.items() if name not in omitted}
    return {key: value for key, value in flat_settings(sections).items() if value not in (None, [], ())}


def lineage_lines(lineage: Lineage) -> list[str]:
    data, version = lineage["data"], lineage["version"]
    lines = [
        f"version {version} ({lineage['version_state']})" if version else "no version was pushed",
        f"  run        {lineage['run_id']} of {lineage['name']!r}: {lineage['status']}, "
        f"{lineage['started']} to {lineage['finished'] or 'now'}",
    ]
    if lineage.get("is_pruned"):
        spans = [f"  spans      {describe_spans(data['spans'])}"] if data["spans"] else []
        return [*lines, *spans, "  record     removed by the retention rules; nothing else is known"]
    code = lineage["code"]
    if lineage["kubeflow_run"]:
        lines.append(f"  on         Kubeflow, run {lineage['kubeflow_run']}")
    if data["path"]:  # the definition of a TFX pipeline names its data
        lines.append(f"  data       {data['path']}, label {data['label']!r}")
    if data["spans"]:
        lines.append(f"  spans      {describe_spans(data['spans'])}")
    for file in data["files"]:
        size = "" if file["bytes"] is None else f"{file['bytes']:,} bytes, "  # None for a folder
        lines.append(f"  file       {file['path']} ({size}sha256 {file['sha256']})")
    if not data["files"] and data["path"]:
        lines.append(f"  data hash  {data['fingerprint']} (the files were not recorded by this version)")
    if data["path"]:
        lines.append(f"  code       {code['module']}, sha256 {code['fingerprint'] or 'not known'}")
    else:
        definitions = code["definitions"].items()
        lines += [f"  code       {name}, sha256 {digest}" for name, digest in definitions]
    if code["git_commit"]:
        lines.append(f"  commit     {code['git_commit']}")
    if code["mended"]:
        lines.append(f"  training   continued from run {code['mended']}")
    if lineage["model"]:
        lines.append(f"  model      {lineage['model']}")
    lines.append("  settings   " + ", ".join(f"{k} = {v}" for k, v in lineage["parameters"].items()))
    shown = [(name, value) for name, value in lineage["metrics"].items() if value is not None]
    if shown:
        lines.append("  metrics    " + ", ".join(f"{name} {value:.6g}" for name, value in shown))
    lines += [f"  doubt      {text}" for text in lineage["doubts"]]
    if lineage["decision"]:
        lines.append(f"  decision   {Decision(**lineage['decision'])}")
    if lineage["baseline_version"]:
        of_run = lineage["baseline_run"] or "of a run without a record"
        lines.append(f"  compared   with version {lineage['baseline_version']} ({of_run})")
    if lineage["compared_by"]:
        lines.append(f"  baseline   of the runs {', '.join(lineage['compared_by'])}")
    return lines


def _module(record: RunRecord) -> str:
    if is_of_tfx_pipeline(record.config):
        return record.section("pipeline").get("file") or "a pipeline given to pipelines.run"
    module = record.section("module")
    return str(module.get("path") or module.get("file") or "the generic model")
