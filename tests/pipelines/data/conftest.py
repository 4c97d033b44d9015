"""Reads a user's file as a run does, up to the values that CsvExampleGen makes of its cells."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from components.example_gen.cells import ColumnType
from components.example_gen.csv_file import CsvFile, read_names
from components.example_gen.reading import _infer_types, _typed, _widest
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.data.staging import stage
from pipelines.runs.definitions.run_plan import DataPlan
from pipelines.runs.plan.data_plan import plan_data, read_data


@dataclass(frozen=True)
class ReadFiles:
    """Files as a run reads them."""

    plan: DataPlan | None  # of the training; None if only the cells were asked for
    notes: str  # for the user: findings, notes of the profile and of columns, reasons for a copy
    types: dict[str, ColumnType]  # of each column in CsvExampleGen
    cells: dict[str, list[str]]  # by column, as text
    values: dict[str, list[Any]]  # by column, as they are in the tf.Examples

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.cells.values())))


@pytest.fixture
def read_as_a_run(tmp_path_factory):
    """Returns a function that reads a path; `label=None` reads the cells of all rows, without a plan."""

    def read(path, label="y", **settings):
        data = {"path": str(path), "label": label or "", **settings}
        config = PipelineConfig.model_validate({"data": data})
        if label is None:
            # The label may be any column: its name is that of the first one.
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("pipelines.runs.plan.data_plan.check_label_column", lambda *_: None)
                found = read_data(config)
            columns = found.profile.columns.values()
            plan, required = None, None
            text = frozenset(one.name for one in columns if one.is_stored_unlike_text)
        else:
            found = read_data(config)
            plan = plan_data(config, found)
            required, text = plan.code.required_label, frozenset(plan.text_columns)
        folder = tmp_path_factory.mktemp("staged")
        staged = stage(found.profile, required, folder, found.splits)
        paths = {str(staged.folder / name): sha256 for name, sha256 in staged.files.items()}
        files = [CsvFile(path, sha256, read_names(path)) for path, sha256 in paths.items()]
        types = _widest(_infer_types(file, text, frozenset()) for file in files)
        blocks = [pa.Table.from_batches([block for file in files for block in file.blocks()])]
        values = pa.Table.from_batches([block for file in files for block in _typed(file, types)])
        names = files[0].names
        return ReadFiles(
            plan,
            "\n".join(
                [
                    *found.facts,
                    *(plan.findings if plan else found.findings),
                    *found.profile.notes(),
                    *(kind.note for kind in found.kinds.values()),
                    *staged.reasons,
                ]
            ),
            types,
            {name: blocks[0].column(place).to_pylist() for place, name in enumerate(names)},
            {name: values.column(place).to_pylist() for place, name in enumerate(names)},
        )

    return read
