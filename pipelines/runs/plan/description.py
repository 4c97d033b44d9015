"""The lines of `plan`: the columns, the split and the findings of a configuration's data."""

import time
from collections.abc import Callable
from pathlib import Path

from components.example_gen.file_names import is_parquet
from pipelines.beam.args import check_beam_args
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.data.byte_checks import readable
from pipelines.data.spans import name_spans
from pipelines.errors import counted
from pipelines.runs.plan.config_file import render_plan_file
from pipelines.runs.plan.cost import describe_cost
from pipelines.runs.plan.data_plan import DataPlan, plan_data, read_data
from pipelines.tabular.column_table import table_lines


def describe_plan(
    config: PipelineConfig, clock: Callable[[], float] = time.monotonic
) -> tuple[DataPlan, list[str]]:
    """Returns the plan for a configuration, and the lines that describe it.

    A column that is a copy of the label stops a run; here a line reports it.
    """
    check_beam_args(config.beam.args)
    start = clock()
    data = read_data(config)
    plan = plan_data(config, data, stops_at_copies=False)
    of_model = []
    if plan.code.plan:
        of_model = [*plan.code.plan.notes()[:1], *describe_cost(clock() - start)]
    number = data.profile.num_rows
    lines = [
        *([f"{name_spans(data.spans.as_records())} of {data.spans.path}"] if data.spans else []),
        f"{counted(number, 'row')} in {counted(len(data.profile.files), 'file')}; "
        f"{'Parquet' if is_parquet(data.profile.files[0]) else data.profile.dialect}; {data.texts.encoding}",
        "",
        *table_lines(plan.columns),
        "",
        f"split by {config.split.by}{f' ({config.split.column})' if config.split.column else ''}",
        *of_model,
        *(f"! {finding}" for finding in (*plan.findings, *data.profile.notes())),
    ]
    copies = [leak.column for leak in plan.leaks if leak.is_copy]
    if any(not data.kinds[name].is_given for name in copies):
        lines.append(
            f"! `run` stops at {copies[0]!r}, which is the label in other words, until [columns] "
            "names it"
        )
    return plan, lines


def write_plan_file(config: PipelineConfig, plan: DataPlan, target: Path) -> None:
    """Writes a configuration file to start from."""
    from pipelines.errors import BadInputError

    text = render_plan_file(config, plan, target.parent)
    with readable(target, "-o"):
        try:
            with target.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except FileExistsError as error:
            raise BadInputError(
                f"-o {target}: there is such a file, and it is not overwritten. Give another name."
            ) from error
