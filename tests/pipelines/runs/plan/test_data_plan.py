import pytest

from pipelines.config.load import load_config
from pipelines.data.formats.number_format import COMMA
from pipelines.data.staging import stage
from pipelines.errors import BadInputError
from pipelines.runs.plan.data_plan import check_headers, plan_data, read_data

NUM = 120


@pytest.fixture
def plan(tmp_path):
    """Returns a function that plans a table given as text."""

    def make(text, *settings, encoding="utf-8", name="data.csv", **options):
        file = tmp_path / name
        file.write_text(text, encoding=encoding)
        config = load_config(data=str(file), label="y", settings=settings)
        return plan_data(config, read_data(config), **options)

    return make


def table(**columns):
    rows = zip(*columns.values(), strict=True)
    return "\n".join(",".join(map(str, row)) for row in ([*columns], *rows)) + "\n"


X = [number * 0.37 % 5 for number in range(NUM)]
Y = ["no", "no", "yes"] * (NUM // 3)
COPY = ["declined" if value == "no" else "approved" for value in Y]


def test_a_copy_of_the_label_stops_until_the_configuration_names_it(plan):
    text = table(x=X, outcome=COPY, y=Y)
    with pytest.raises(BadInputError, match=r"'outcome' alone predicts 'y' correctly in 100 %.*\"ignore\""):
        plan(text)
    left_out = plan(text, "columns.outcome=ignore")
    assert left_out.code.plan.columns == ("y", "x")
    assert not left_out.leaks
    kept = plan(text, "columns.outcome=category")
    assert "outcome" in kept.code.plan.columns
    assert kept.columns[1].note.startswith("may be target leakage")
    assert any(finding.startswith("leak? column 'outcome'") for finding in kept.findings)
    assert plan(text, stops_at_copies=False).leaks[0].is_copy


def test_columns_that_differ_between_spans_are_refused(spans, tmp_path):
    other = tmp_path / "span-9" / "v1" / "data.csv"
    other.write_text(other.read_text().replace("x,y", "z,y", 1))
    wanted = ("data.spans=last 2",)
    with pytest.raises(BadInputError, match=r"span-10/v1/data\.csv, line 1.*'z'") as error:
        read_data(load_config(data=spans, label="y", settings=wanted))
    assert str(other) in str(error.value)
    assert read_data(load_config(data=spans, label="y")).profile.num_rows == 40


def test_files_of_each_split_are_looked_for_in_each_span(spans, tmp_path):
    settings = ("split.by=files", "split.train=data.csv", "split.eval=late*.csv", "data.spans=last 2")
    for number, rows in ((8, 4), (9, 5)):
        (tmp_path / f"span-{number}" / "v1" / "late-1.csv").write_text("x,y\n" + "1.5,1\n" * rows)
    data = read_data(load_config(data=spans, label="y", settings=settings))
    folders = [tmp_path / f"span-{number}" / "v1" for number in (8, 9)]
    assert data.profile.files == [folder / name for folder in folders for name in ("data.csv", "late-1.csv")]
    late = {file for file, split in data.splits.split_of.items() if split == "eval"}
    assert late == {folder / "late-1.csv" for folder in folders}
    assert data.findings == ("version 1 of span 10 has no data file (there is data.csv): it is skipped",)
    with pytest.raises(BadInputError, match="needs a folder as data"):
        read_data(load_config(data=f"{spans}/*.csv", label="y", settings=settings))


def test_a_near_copy_is_said_and_used(plan):
    near = [f"{value} {row % 2}" for row, value in enumerate(COPY)]  # two words for each class
    made = plan(table(x=X, outcome=near, y=Y))
    assert "outcome" in made.code.plan.columns
    (said,) = made.findings
    assert "alone predicts 'y' correctly in 100 % of 120 rows (the most frequent class alone: 66.7%)" in said
    assert '[columns] outcome = "ignore"' in said


def test_dialect_and_encoding_are_detected_and_said(plan):
    text = "größe;y\n" + "".join(f"{number},5;{'pq'[number % 2]}\n" for number in range(NUM))
    made = plan(text, encoding="cp1252")
    assert made.columns[0].name == "größe"
    assert (made.code.plan.numeric[0].number_format, made.texts.encoding) == (COMMA, "cp1252")
    assert made.findings == ()
    assert made.facts == (
        "reading the files as cp1252 (detected); set data.encoding if that is wrong",
        "fields are separated by semicolons and quoted by double quotes; set data.delimiter or "
        "data.quote if that is wrong",
    )
    settings = ("data.delimiter=;", "data.encoding=cp1252")
    assert plan(text, *settings, encoding="cp1252").facts == ("reading the files as cp1252",)
    with pytest.raises(BadInputError, match="there is no label column 'y'"):
        plan(text, "data.delimiter=|")


def test_faults_of_other_encodings_name_the_users_file(plan, tmp_path):
    with pytest.raises(BadInputError, match=f"^{tmp_path}/data.csv, line 3 .*1 field where"):
        plan("größe,y\n1,2\n3\n", encoding="utf-16")


def test_a_file_in_another_encoding_is_copied_for_example_gen(plan, tmp_path):
    text = "größe,z,y\n" + "".join(f"{row % 9}.5,{row},{'pq'[row % 2]}\n" for row in range(60))
    made = plan(text.replace("59,q", "x,q"), encoding="cp1252")
    staged = stage(made.profile, "y", tmp_path / "copies")
    assert staged.reasons == ("the text is written in UTF-8",)
    assert (staged.folder / "data-00000.csv").read_text(encoding="utf-8").startswith("größe,z,y\n")
    (note,) = (found for found in made.findings if found.startswith("column 'z'"))
    assert f"the first: {tmp_path}/data.csv, line 61: 'x'" in note
    with pytest.raises(BadInputError, match=f"^{tmp_path}/data.csv, column 'y'.*every label is 'p'"):
        plan(text.replace("q", "p"), encoding="cp1252")


def test_reasons_for_a_copy_name_the_users_file(plan, tmp_path):
    text = "größe,y\n" + "1,p\n2,q\n2,p\n1,q\n" * 15
    made = plan(text, encoding="utf-16", name="data[1].csv")
    assert stage(made.profile, "y", tmp_path / "copies").reasons == (
        "the text is written in UTF-8",
        f"the name '{tmp_path}/data[1].csv' would be read as a pattern",
    )


def test_the_column_that_divides_the_splits_is_not_learned(plan):
    text = table(x=X, patient=[f"p{number % 40}" for number in range(NUM)], y=Y)
    settings = ("split.by=column", "split.column=patient")
    assert plan(text, *settings).code.plan.columns == ("y", "x")
    assert "patient" in plan(text, *settings, "columns.patient=category").code.plan.columns


def test_rows_that_belong_together_are_a_finding(plan):
    text = table(x=X, patient=[f"p{number % 40}" for number in range(NUM)], plan=["a", "A"] * (NUM // 2), y=Y)
    found = plan(text).findings
    assert [finding.partition(":")[0] for finding in found] == ["column 'patient'", "column 'plan'"]
    for settings in (("split.by=column", "split.column=patient"), ("columns.patient=category",)):
        assert plan(text, *settings).findings == found[1:]
    assert plan(text, "columns.patient=ignore").findings == found


def test_files_divide_the_rows(tmp_path):
    for name, rows in (("train.csv", 60), ("eval.csv", 30)):
        (tmp_path / name).write_text(table(x=X[:rows], y=Y[:rows]))
    settings = ("split.by=files", "split.train=train.csv", "split.eval=eval.csv")
    config = load_config(data=str(tmp_path), label="y", settings=settings)
    data = read_data(config)
    assert data.profile.num_rows == 90
    assert data.splits.split_of == {tmp_path / "train.csv": "train", tmp_path / "eval.csv": "eval"}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_the_label_is_in_the_header_of_a_file_in_any_encoding(tmp_path, encoding):
    (tmp_path / "data.csv").write_text("größe;höhe\n1;2\n3;4\n", encoding=encoding)
    check_headers(load_config(data=f"{tmp_path}/*.csv", label="höhe"), pytest.fail)
    with pytest.raises(BadInputError, match="no label column 'hoehe'"):
        check_headers(load_config(data=f"{tmp_path}/*.csv", label="hoehe"), pytest.fail)


def test_a_chinese_file_whose_bytes_fit_windows_1252_is_doubted(plan):
    text = table(x=X, city=["高雄", "台北"] * (NUM // 2), y=Y)
    assert plan(text, encoding="big5").findings == (
        "reading the files as cp1252, which fits their bytes. It is probably big5 (Chinese): give --set "
        "data.encoding=big5.",
    )
    assert plan(text, "data.encoding=big5", encoding="big5").findings == ()
