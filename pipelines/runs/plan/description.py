"""The lines of `plan`: the columns, the split and the findings of a configuration's data."""

import time
from collections.abc import Callable
from pathlib import Path

from components.example_gen.file_names import is_parquet
from pipelines.beam.options import check_beam_args
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.data.byte_checks import readable
from pipelines.data.remote import temporary_copy
from pipelines.data.spans import name_spans
from pipelines.errors import BadInputError, counted
from pipelines.runs.definitions.run_plan import DataPlan
from pipelines.runs.plan.config_file import render_plan_file
from pipelines.runs.plan.data_plan import plan_data, read_data
from pipelines.tabular.column_table import table_lines

START_SECS = 40.0
"""Seconds of a run on a hundred rows: loading the libraries, and graphs that do not depend on the data."""

RUN_PER_PLAN = 15.0
"""Time of a run beyond that, divided by the time in which its plan is made.

Plan and run grow with the same numbers, columns and cells, and on the same machine, so the measured time of
the plan takes the place of a formula in them. Measured on 2 cores: 13 with 64 rows and 1,000 columns, 19 with
64 rows and 6,830 columns, 9 with 10,000 rows and 1,000 columns; so an estimate can be twice the time.
"""

FOLD_SECS = 9.0
"""Seconds of the generic models on each further fold: mostly their graphs. Measured on 2 cores, 379 rows."""

_SHORT_SECS = 90.0


def describe_cost(plan_secs: float, folds: int) -> list[str]:
    """Returns a line with the estimated time of a run; none for a short one."""
    secs = START_SECS + RUN_PER_PLAN * plan_secs + FOLD_SECS * (folds - 1)
    if secs < _SHORT_SECS:
        return []
    minutes = max(2, round(secs / 60))
    and_folds = f" and {folds} folds" if folds > 1 else ""
    return [
        f"estimated run time: about {minutes} minutes (extrapolated from the {plan_secs:.0f} s of this "
        f"plan{and_folds})"
    ]


def describe_plan(
    config: PipelineConfig, clock: Callable[[], float] = time.monotonic, width: int | None = None
) -> tuple[DataPlan, list[str]]:
    """Returns the plan for a configuration, and the lines that describe it, with a table of this width.

    A column that is a copy of the label stops a run; here a line reports it.
    """
    check_beam_args(config.beam.args)
    with temporary_copy(config.data, config.split) as copy:
        start = clock()
        data = read_data(config, copy=copy)
        plan = plan_data(config, data, stops_at_copies=False)
    of_model = []
    if table := plan.code.plan:
        folds = table.training.folds if table.training.model == "auto" else 1
        of_model = [*table.notes()[:1], *table.decision_notes(), *describe_cost(clock() - start, folds)]
    number, split = data.profile.num_rows, config.split
    lines = [
        *([f"{name_spans(data.spans.as_records())} of {data.spans.path}"] if data.spans else []),
        f"{counted(number, 'row')} in {counted(len(data.profile.files), 'file')}; "
        f"{'Parquet' if is_parquet(data.profile.files[0]) else data.profile.dialect}; {data.texts.encoding}",
        "",
        *table_lines(plan.columns, width),
        "",
        f"split by {split.by}{f' ({split.column})' if split.column else ''}"
        + (f"; {split.test:.0%} are for the test" if isinstance(split.test, float) else ""),
        *of_model,
        *(f"i {fact}" for fact in plan.facts),
        *(f"! {finding}" for finding in (*plan.findings, *data.profile.notes())),
    ]
    copies = [leak.column for leak in plan.leaks if leak.is_copy]
    if any(not data.kinds[name].is_given for name in copies):
        lines.append(
            f"! `run` stops at {copies[0]!r}, because it is target leakage, until [columns] names it"
        )
    return plan, lines


def write_plan_file(config: PipelineConfig, plan: DataPlan, target: Path) -> None:
    """Writes a configuration file to start from."""
    text = render_plan_file(config, plan, target.parent)
    with readable(target, "-o"):
        try:
            with target.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except FileExistsError as error:
            raise BadInputError(f"-o {target}: the file already exists. Choose another name.") from error
