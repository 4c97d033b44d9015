import shutil

import numpy as np
import pandas
import pytest
import tensorflow_data_validation as tfdv

from components.example_validator.validation import validate
from pipelines.config.load import load_config
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.baseline import find_baseline_statistics
from pipelines.root.records import ComponentRecord
from pipelines.root.schema.acceptance import accept_schema
from pipelines.root.schema.text import schema_to_keep
from tests.pipelines.root.metadata_store import open_store, put_statistics
from tests.pipelines.run_records import make_record
from tests.pushed_versions import serve_version

KINDS = {"fare": "number", "n": "number", "city": "category", "note": "category", "tips": "boolean"}
FIRST, SECOND = "20260101-000000", "20260102-000000"


def columns(kinds):
    """Returns the columns of a run's record."""
    return [{"name": name, "kind": kind} for name, kind in kinds.items()]


def table(rows=60):
    random = np.random.default_rng(3)
    return pandas.DataFrame(
        {
            "fare": random.uniform(1, 9, rows),
            "n": random.integers(5, 50, rows),
            "city": random.choice(["a", "b", "c"], rows),
            "note": random.choice(["x", "y"], rows),
            "tips": random.choice(["no", "yes"], rows),
        }
    )


def statistics_of(root, run_id):
    """Returns the folder of the statistics of a run, whose step has the run's name."""
    return root / "artifacts" / "StatisticsGen" / run_id / "statistics"


class RootOfRuns:
    """A root with runs; the first one has pushed version 5, and the schema is of its data."""

    def __init__(self, folder):
        self.folder = folder
        self.records = Root(folder).records

    def run(self, run_id, frame, notes=(), *settings, validated=True, kinds=KINDS):
        """Leaves the files of a run that validated a table."""
        folder = statistics_of(self.folder, run_id)
        statistics = []
        for split, part in (("train", frame[::2]), ("eval", frame[1::2])):
            statistics.append(tfdv.generate_statistics_from_dataframe(part))
            (folder / f"Split-{split}").mkdir(parents=True)
            file = folder / f"Split-{split}" / "FeatureStats.pb"
            file.write_bytes(statistics[-1].SerializeToString())
        names = ["StatisticsGen", *(["ExampleValidator"] if validated else [])]
        self.records.write(
            make_record(
                run_id,
                status="failed",
                config=load_config(data="x.csv", label="tips", settings=settings).model_dump(mode="json"),
                notes=notes,
                columns=tuple({"name": name, "kind": kind} for name, kind in kinds.items()),
                components=tuple(ComponentRecord(name, "finished", 1.0, step=run_id) for name in names),
            )
        )
        return statistics

    def push(self, version, run_id):
        serve_version(self.folder / "serving", version, run_id)

    @property
    def schema(self):
        return Root(self.folder).schema.read().schema


ODD = ("anomaly: train split, column 'city': Odd.",)


@pytest.fixture
def root(tmp_path):
    made = RootOfRuns(tmp_path / "root")
    first = made.run(FIRST, table())
    made.push(5, FIRST)
    schema = tfdv.infer_schema(first[0], infer_feature_shape=False)
    schema = tfdv.update_schema(schema, first[1], infer_feature_shape=False)
    schema = schema_to_keep(schema, KINDS, "tips", ("no", "yes"))
    Root(made.folder).schema.replace(schema, FIRST, columns(KINDS))
    return made


def accept(root, frame, *arguments):
    """Returns the lines of an acceptance; its data must be free of anomalies by the new schema."""
    for part in root.run(SECOND, frame, ODD):
        assert validate(part, root.schema, fixed_schema=True).anomaly_info or not arguments
    accepted = accept_schema(Root(root.folder))
    assert accepted.run_id == SECOND
    for split in ("train", "eval"):
        file = statistics_of(root.folder, SECOND) / f"Split-{split}"
        part = type(part).FromString((file / "FeatureStats.pb").read_bytes())
        assert not validate(part, root.schema, fixed_schema=True).anomaly_info
    *lines, last = accepted.lines
    assert last == f"~ new data are compared with those of run {SECOND} (until now: run {FIRST})"
    assert Root(root.folder).schema.accepted_run(Root(root.folder).schema.read()) == SECOND
    return lines


def refused(root, message, run_id=None):
    with pytest.raises(BadInputError, match=message):
        accept_schema(Root(root.folder), run_id)


def with_odd_cells(frame):
    frame["n"] = frame["n"] + 0.5
    frame.loc[::7, "fare"] = np.nan
    frame.loc[:5, "tips"] = "perhaps"
    return frame


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        pytest.param(table().replace("a", "A"), ["~ column 'city': new values 'A'"], id="a renamed category"),
        pytest.param(
            table().drop(columns="note").assign(extra=1.5),
            ["- column 'note' (BYTES)", "+ column 'extra': FLOAT, required"],
            id="a removed and a new column",
        ),
        pytest.param(
            with_odd_cells(table()),
            [
                "~ column 'fare': present required -> some rows",
                "~ column 'n': type INT -> FLOAT",
                "~ column 'tips': new values 'perhaps'",
            ],
            id="another type, missing values and a new label",
        ),
    ],
)
def test_what_data_change_in_the_schema(root, frame, expected):
    assert accept(root, frame, "fails before") == expected


def test_drift_alone_changes_what_is_compared_with(root):
    before = Root(root.folder).schema.file.read_text()
    assert accept(root, table().assign(fare=lambda frame: frame.fare * 60)) == ["= the schema stays as it is"]
    assert Root(root.folder).schema.file.read_text() == before
    refused(root, f"nothing to accept: run {SECOND} was accepted already")


def test_an_edit_that_the_data_fit_stays_and_another_gives_way(root):
    schema = root.schema
    for feature in schema.feature:
        if feature.name == "fare":
            feature.drift_comparator.jensen_shannon_divergence.threshold = 0.5
            feature.float_domain.max = 1_000
        if feature.name == "n":
            feature.int_domain.max = 49
    Root(root.folder).schema.replace(schema, FIRST, columns(KINDS))
    lines = accept(root, table().assign(n=lambda frame: frame.n + 100), "fails before")
    assert len(lines) == 1
    assert lines[0].startswith("~ column 'n': values at most 49 -> ")
    (fare,) = (feature for feature in root.schema.feature if feature.name == "fare")
    assert fare.drift_comparator.jensen_shannon_divergence.threshold == 0.5
    assert fare.float_domain.max == 1_000


def test_a_column_that_was_empty_takes_the_type_that_it_has(root):
    kinds = {**KINDS, "note": "empty"}
    statistics = root.run("20260101-100000", table().assign(note=None), kinds=kinds)
    inferred = tfdv.infer_schema(statistics[0], infer_feature_shape=False)
    Root(root.folder).schema.replace(schema_to_keep(inferred, kinds, "tips"), FIRST, columns(kinds))
    (line,) = accept(root, table().assign(note=2.5))
    assert line == "~ column 'note': type any -> FLOAT; present optional -> required"


def test_a_root_without_a_schema_gets_that_of_the_run(root):
    shutil.rmtree(root.folder / "schema")
    root.run(SECOND, table().replace("a", "A"), ODD)
    lines = accept_schema(Root(root.folder)).lines
    assert lines == (
        "+ the schema, which the root did not have",
        f"~ new data are compared with those of run {SECOND} (until now: version 5)",
    )
    assert {feature.name for feature in root.schema.feature} == set(KINDS)


def test_a_run_that_is_named(root):
    root.run(SECOND, table().replace("a", "A"), ODD)
    root.run("20260103-000000", table())
    refused(root, f"20260103-000000 found no anomalies. .*: {SECOND}")
    assert accept_schema(Root(root.folder), SECOND).run_id == SECOND


def test_a_root_that_was_moved(root, tmp_path):
    root.run(SECOND, table().replace("a", "A"), ODD)
    moved = root.folder.rename(tmp_path / "moved")
    assert accept_schema(Root(moved)).lines[0] == "~ column 'city': new values 'A'"


@pytest.mark.parametrize(
    ("arguments", "run_id", "message"),
    [
        ((ODD,), "20200101-000000", f"no run '20200101-000000' in .*Runs: {SECOND}, {FIRST}"),
        ((), None, f"the validation of run {SECOND} found no anomalies"),
        ((ODD, "schema.path=mine.pbtxt"), None, "schema.path = 'mine.pbtxt', which overrides"),
    ],
    ids=["no such run", "nothing found", "a schema of one's own"],
)
def test_what_cannot_be_accepted(root, arguments, run_id, message):
    root.run(SECOND, table(), *arguments)
    before = Root(root.folder).schema.file.read_bytes()
    refused(root, message, run_id)
    assert Root(root.folder).schema.file.read_bytes() == before


def test_what_left_nothing_to_accept(root):
    root.run(SECOND, table(), ODD, validated=False)
    refused(root, f"run {SECOND} ended before the validation of its data", SECOND)
    refused(root, f"the validation of run {FIRST} found no anomalies")
    third = "20260103-000000"
    root.run(third, table(), ODD)
    with Root(root.folder).lock.writing.held():
        refused(root, "Another run is in progress")
    shutil.rmtree(root.folder / "artifacts")
    refused(root, rf"statistics of run {third} no longer exist \(/")


def test_a_run_of_an_earlier_version_which_no_run_has_taken_over(root):
    frame = table().replace("a", "A")
    root.run(SECOND, frame, ODD)
    statistics = root.folder / "artifacts" / "StatisticsGen" / "statistics" / "16"
    statistics.parent.mkdir()
    statistics_of(root.folder, SECOND).rename(statistics)
    record = Root(root.folder).records.read(SECOND)
    parts = tuple(ComponentRecord(part.name, "finished", 1.0) for part in record.components)
    Root(root.folder).records.write(record.changed(components=parts))
    put_statistics(open_store(root.folder), SECOND, statistics)
    note, *lines, last = accept_schema(Root(root.folder)).lines
    assert note.startswith(f"! {root.folder} is from an earlier version of this program")
    assert (lines, last) == (
        ["~ column 'city': new values 'A'"],
        f"~ new data are compared with those of run {SECOND} (until now: run {FIRST})",
    )
    kept = Root(root.folder).kept_artifact(SECOND, "statistics")
    assert find_baseline_statistics(Root(root.folder), "run-new", SECOND) == kept


def test_a_folder_that_is_no_root_stays_as_it_is(tmp_path):
    with pytest.raises(BadInputError, match="There are no runs in"):
        accept_schema(Root(tmp_path / "none"))
    assert list(tmp_path.iterdir()) == []
