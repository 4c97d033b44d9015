"""The plan of a run's data, before anything is written: files, columns, splits, model."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from components.nearest import nearest_first
from pipelines.config.data import DataConfig
from pipelines.config.data_url import is_url
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.span_pattern import has_placeholder
from pipelines.config.toml import columns_entry
from pipelines.data.bad_rows import BadRows, set_aside
from pipelines.data.column_cells import ColumnCells
from pipelines.data.dialect import Dialect, detect_dialect, detect_from_lines
from pipelines.data.encoding import (
    UTF_8_NAMES,
    Utf8Files,
    as_utf8,
    describe_likely_encodings,
    detect_encoding,
)
from pipelines.data.faults import parse_header
from pipelines.data.file_states import read_states
from pipelines.data.files import find_csv_files
from pipelines.data.leaks import Leak, find_leaks
from pipelines.data.opening import open_text
from pipelines.data.pitfalls import find_pitfalls
from pipelines.data.profile import CsvProfile, profile_clean_files, profile_csv
from pipelines.data.spans import ResolvedSpans, SpanRecord, resolve_spans
from pipelines.data.splits import find_split_files, plan_splits
from pipelines.errors import BadInputError
from pipelines.root.schema.curated import read_curated_schema
from pipelines.root.schema.root_schema import RootSchema
from pipelines.root.schema.type_overrides import changed_kinds, find_type_overrides, override_notes
from pipelines.runs.definitions import evaluation
from pipelines.runs.definitions.model_code import choose_model_code
from pipelines.runs.definitions.run_plan import CsvData, DataPlan
from pipelines.tabular.column_table import list_columns
from pipelines.tabular.infer import infer_kinds
from pipelines.tabular.label import check_has_label, check_label_column

LEAK_PREFIX = "leak? "
"""Beginning of a note about a column that predicts the label on its own; its evidence follows."""

_HEADER_LINES = 100  # that show the delimiter, too


def read_data(
    config: PipelineConfig,
    root_schema: RootSchema | None = None,
    pinned_spans: Sequence[SpanRecord] = (),
    copy: str | None = None,
) -> CsvData:
    """Reads the files of a configuration.

    `copy`: path of the data on this machine, if they are elsewhere.
    """
    data = config.data
    split_of, spans = _find_files(config, pinned_spans, copy)
    originals = list(split_of)
    texts, profile, bad_rows = _profile(originals, data)
    dialect = profile.dialect
    try:
        check_label_column(profile, data.label)
        configured = (*config.columns, *data.exclude, *data.numeric, *data.categorical)
        overrides = find_type_overrides(profile, root_schema, configured)
        kinds = infer_kinds(profile, config, overrides.uses)
        notes = override_notes(overrides, kinds)
        profile, kinds = overrides.apply(profile, kinds, use_new_columns=config.module is not None)
        copies = dict(zip(texts.files, (split_of[file] for file in texts.originals), strict=True))
        splits = plan_splits(config.split, profile, kinds, copies, data.label, config.module is None)
    except BadInputError as error:
        raise BadInputError(texts.with_original_paths(str(error))) from error
    facts = []
    findings = list(spans.notes) if spans else []
    if bad_rows:
        findings.append(f"data: {bad_rows}")
    likely = ""
    if texts.encoding == "cp1252" and data.encoding is None:
        likely = next(filter(None, map(describe_likely_encodings, originals)), "")
    if likely:
        findings.append(f"reading the files as cp1252, which fits their bytes.{likely}")
    elif texts.encoding != "utf-8":
        origin = "" if data.encoding else " (detected); set data.encoding if that is wrong"
        facts.append(f"reading the files as {texts.encoding}{origin}")
    if dialect != Dialect(data.delimiter or ",", data.quote or '"'):
        facts.append(f"{dialect}; set data.delimiter or data.quote if that is wrong")
    findings += [kind.doubt for name, kind in kinds.items() if kind.doubt and name not in data.exclude]
    findings += (*notes, *changed_kinds(root_schema, kinds))
    if splits.note:
        facts.append(f"split: {splits.note}")
    return CsvData(
        profile=profile,
        kinds=kinds,
        splits=splits,
        texts=texts,
        facts=tuple(facts),
        findings=tuple(findings),
        type_overrides=overrides,
        spans=spans,
        bad_rows=bad_rows,
    )


def check_headers(config: PipelineConfig, warn: Callable[[str], None]) -> None:
    """Checks that the existing files have the label, without reading their rows; warns if there are none."""
    data = config.data
    if is_url(data.path):  # only a run copies them
        return
    try:
        files, _ = _find_files(config, ())
    except BadInputError as error:  # they may still come
        warn(f"a run would fail now: {error}")
        return
    for file in files:
        encoding = data.encoding or detect_encoding(file, max_blocks=1)
        with open_text(file, "replace", encoding="utf-8-sig" if encoding == "utf-8" else encoding) as stream:
            lines = list(islice(stream, _HEADER_LINES))
        dialect = detect_from_lines(lines, data.delimiter, data.quote)
        check_has_label(file, parse_header(file, lines, dialect), data.label)


def _profile(originals: list[Path], data: DataConfig) -> tuple[Utf8Files, CsvProfile, BadRows | None]:
    """Returns the files as UTF-8, their profile, and the rows that were left out."""
    if data.encoding in (None, *UTF_8_NAMES):
        clean_profile = profile_clean_files(originals, data.delimiter, data.quote)
        if clean_profile is not None:
            return Utf8Files(originals, originals, "utf-8"), clean_profile, None
    states = read_states(originals)
    texts = as_utf8(originals, data.encoding)
    try:
        dialect = detect_dialect(texts.files, data.delimiter, data.quote)
        bad_rows, is_given = None, data.quote is not None
        if data.on_bad_row == "quarantine":
            texts, bad_rows = set_aside(texts, dialect, is_given)
        of_files = None if texts.are_copies else states
        profile = profile_csv(texts.files, dialect, of_files, is_given)
    except BadInputError as error:
        raise BadInputError(texts.with_original_paths(str(error))) from error
    if texts.are_copies:
        profile.originals = dict(zip(texts.files, texts.originals, strict=True))
        profile.states |= states
        profile.num_set_aside = bad_rows.num_rows if bad_rows else 0
    return texts, profile, bad_rows


def check_same_files(config: PipelineConfig, data: CsvProfile, spans: ResolvedSpans | None) -> None:
    """Checks that a configuration still refers to the files that were read."""
    if is_url(config.data.path):  # a copy of them was read, which does not change
        return
    now, _ = _find_files(config, spans.as_records() if spans else ())
    changed = sorted(set(now) ^ set(data.user_files))
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise BadInputError(
            f"{changed[0]}{more} {'came' if changed[0] in now else 'went'} while the data in "
            f"{config.data.path} were being read. Try again once no other process is writing there."
        )


def _find_files(
    config: PipelineConfig, pinned_spans: Sequence[SpanRecord], copy: str | None = None
) -> tuple[dict[Path, str], ResolvedSpans | None]:
    """Returns the split of each file of a configuration (empty if its rows are divided), and their spans."""
    data = config.data
    path = copy or data.path
    split_of: dict[Path, str] = {}

    def find(path: str) -> list[Path]:
        if config.split.by != "files":
            return find_csv_files(path)
        found = {file: name for name, files in find_split_files(path, config.split).items() for file in files}
        split_of.update(found)
        return list(found)

    spans = None
    if has_placeholder(data.path):
        spans = replace(resolve_spans(path, data.selection, find, pinned_spans), path=data.path)
    files = spans.files if spans else find(path)
    return {file: split_of.get(file, "") for file in files}, spans


def plan_data(config: PipelineConfig, data: CsvData, stops_at_copies: bool = True) -> DataPlan:
    """Returns the plan of the training, after checking all of the configuration against the files.

    `stops_at_copies`: raises if a column is the label itself, unless `[columns]` names that column.
    """
    columns = data.profile.columns
    evaluation.check_evaluator_config(config, list(columns))
    for name in config.example_validator.moving:
        if name not in columns:
            raise BadInputError(
                f"example_validator.moving: there is no column {name!r}. Columns: "
                f"{', '.join(nearest_first(name, columns))}."
            )
    try:
        code = choose_model_code(config, data.profile, data.kinds)
    except BadInputError as error:
        raise BadInputError(data.texts.with_original_paths(str(error))) from error
    leaks: list[Leak] = []
    if code.plan is not None:
        candidates = tuple(name for name in code.plan.columns if name != config.data.label)
        is_regression = code.plan.label.problem_type == "regression"
        leaks = find_leaks(data.profile, data.kinds, config.data.label, is_regression, candidates)
    copies = [leak for leak in leaks if leak.is_copy and not data.kinds[leak.column].is_given]
    if copies and stops_at_copies:
        leak = copies[0]
        raise BadInputError(
            f"{leak.evidence}: this is target leakage, and a model with this column learns nothing else. "
            f"Leave it out with {columns_entry(leak.column, 'ignore')}; if it is known at prediction time, "
            f'keep it with {columns_entry(leak.column, "category")} (or "number").'
        )
    warnings = {leak.column: "may be target leakage" for leak in leaks}
    rows = list_columns(data.profile, data.kinds, config.data.label, code.plan, warnings)
    leak_notes = tuple(
        f"{LEAK_PREFIX}{leak.evidence}. If it is not known at prediction time, leave it out: "
        f"{columns_entry(leak.column, 'ignore')}"
        for leak in leaks
    )
    if code.plan is not None:
        text_columns = code.plan.text_columns
        lost: tuple[str, ...] = ()
    else:
        codes = [
            name for name in columns_with_leading_zeros(data.profile) if name not in data.type_overrides.text
        ]
        unlike = [name for name, column in columns.items() if column.is_stored_unlike_text]
        text_columns = (*kept_codes(config, codes), *unlike)
        lost = lost_zeros_notes(config, codes)
    schema = None
    if config.schema_.path is not None:
        used = code.plan.read_columns if code.plan else ()
        schema = read_curated_schema(config.schema_.path, data.profile, used, text_columns)
    data.profile.check_unchanged()
    learned = {"code": code, "columns": rows, "leaks": tuple(leaks), "text_columns": text_columns}
    pitfalls = tuple(find_pitfalls(data.profile, data.kinds, config.split, config.data.label))
    findings = data.findings + leak_notes + lost + pitfalls
    return DataPlan(**{**vars(data), **learned, "findings": findings, "schema": schema})


_KEPT = ("category", "text")


def columns_with_leading_zeros(profile: CsvProfile) -> tuple[str, ...]:
    """Returns the columns of whole numbers of which some have leading zeros."""
    return tuple(
        name
        for name, column in profile.columns.items()
        if column.type == "integer" and ColumnCells(profile, name).count("^0[0-9]")
    )


def kept_codes(config: PipelineConfig, columns: Collection[str]) -> tuple[str, ...]:
    """Returns those of the columns that are configured as a category or text."""
    return tuple(
        name for name in columns if config.columns.get(name) in _KEPT or name in config.data.categorical
    )


def lost_zeros_notes(config: PipelineConfig, columns: Collection[str]) -> tuple[str, ...]:
    """Returns a note on the columns whose leading zeros a module does not see, if there are any."""
    data = config.data
    configured = {*config.columns, *data.exclude, *data.numeric, *data.categorical, data.label}
    lost = [name for name in columns if name not in configured]
    if not lost:
        return ()
    names = ", ".join(map(repr, lost))
    return (
        f"the module gets {names} as int64, without the leading zeros of the cells. Keep them as text: "
        f"{columns_entry(lost[0], 'category')}",
    )
