import hashlib
import random
from collections import Counter
from pathlib import Path

import pytest
import tensorflow as tf
from tfx.components.example_gen import utils
from tfx.components.example_gen.csv_example_gen import executor as stock
from tfx.proto import example_gen_pb2
from tfx.types import standard_artifacts
from tfx.utils import proto_utils

from components.example_gen import csv_file, executor
from components.example_gen.component import CsvExampleGen

OUTPUT = utils.make_default_output_config(
    example_gen_pb2.Input(splits=[example_gen_pb2.Input.Split(name="all", pattern="*")])
)

SOURCE = example_gen_pb2.Input(splits=[example_gen_pb2.Input.Split(name="all", pattern="*.csv")])
RUNNER = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"
NO_TFX_PACKAGE = "--sdk_container_image=unused"  # TFX would pack itself for remote workers, each time


def write(kind, folder, rows, output=OUTPUT, source=SOURCE, beam_args=(), custom_config=None):
    """Returns the examples that an executor writes."""
    data, out = folder / "data", folder / kind.__module__
    data.mkdir(exist_ok=True)
    (data / "rows.csv").write_text("x,y\n" + "".join(f"{row}\n" for row in rows))
    examples = standard_artifacts.Examples()
    examples.uri = str(out)
    kind(kind.Context([RUNNER, NO_TFX_PACKAGE, *beam_args], str(folder / "tmp"), "1")).Do(
        {},
        {"examples": [examples]},
        {
            "input_base": str(data),
            "input_config": proto_utils.proto_to_json(source),
            "output_config": proto_utils.proto_to_json(output),
            "custom_config": custom_config,
            "output_data_format": example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE,
            "output_file_format": example_gen_pb2.FileFormat.FORMAT_TFRECORDS_GZIP,
        },
    )
    return examples


def records(examples, name):
    """Returns the examples of a split, in their order."""
    return [
        tf.train.Example.FromString(record)
        for file in sorted((Path(examples.uri) / f"Split-{name}").iterdir())
        for record in tf.data.TFRecordDataset(str(file), "GZIP").as_numpy_iterator()
    ]


def split(kind, folder, rows, output=OUTPUT, custom_config=None):
    """Returns the count of each serialized example in each split."""
    examples = write(kind, folder, rows, output, custom_config=custom_config)
    # Stock TFX writes the features of an example in any order.
    return {
        name: Counter(example.SerializeToString(deterministic=True) for example in records(examples, name))
        for name in ("train", "eval")
    }


def content(examples):
    """Returns the bytes of each file."""
    folder = Path(examples.uri)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_files_depend_on_the_contents_of_the_rows_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(executor, "CSV_BYTES_PER_FILE", 500)
    rows = [f"{37 * number % 101},a" for number in range(300)] + ["7.5,b"] * 40
    turned = rows[:]
    random.Random(3).shuffle(turned)
    for folder in ("one", "many"):
        (tmp_path / folder).mkdir()
    one = write(executor.Executor, tmp_path / "one", rows)
    # Three files, whose rows three workers take.
    for name, begin in (("a", 0), ("b", 100)):
        more = tmp_path / "many" / "data" / f"{name}.csv"
        more.parent.mkdir(exist_ok=True)
        more.write_text("x,y\n" + "".join(f"{row}\n" for row in turned[begin : begin + 100]))
    threads = ["--direct_num_workers=3", "--direct_running_mode=multi_threading"]
    many = write(executor.Executor, tmp_path / "many", turned[200:], beam_args=threads)
    expected = content(one)
    # Of 1.7 kB of CSV, one for each 500 bytes.
    assert [name for name in expected if "eval" in name] == [
        f"Split-eval/data_tfrecord-{number:05d}-of-00004.gz" for number in range(4)
    ]
    assert len(expected) == 8
    assert content(many) == expected


def test_rows_have_the_order_of_their_digests(tmp_path):
    examples = write(executor.Executor, tmp_path, [f"{number},a" for number in range(101)])
    for name in ("train", "eval"):
        found = [example.SerializeToString(deterministic=True) for example in records(examples, name)]
        assert len(found) > 10
        assert found == sorted(found, key=lambda row: hashlib.sha256(row).digest())


def test_a_failure_leaves_no_rows_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 1_000)
    rows = [f"{number},a" for number in range(1_000)]
    with pytest.raises(Exception, match="line 1002: 1 cell where the header has 2"):
        write(executor.Executor, tmp_path, [*rows, "1"])
    assert not list(tmp_path.rglob(".unfinished"))
    write(executor.Executor, tmp_path, rows)
    assert not list(tmp_path.rglob(".unfinished"))


def test_a_split_without_rows_has_an_empty_file(tmp_path):
    ours, stocks = (write(kind, tmp_path, ["1,a"]) for kind in (executor.Executor, stock.Executor))
    assert set(content(ours)) == set(content(stocks))
    assert sorted(len(records(ours, name)) for name in ("train", "eval")) == [0, 1]


def test_input_splits_stay_as_they_are(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "late.csv").write_text("x,y\n" + "9,z\n" * 3)
    splits = [
        example_gen_pb2.Input.Split(name=name, pattern=f"{file}.csv")
        for name, file in (("train", "rows"), ("eval", "late"))
    ]
    source = example_gen_pb2.Input(splits=splits)
    examples = write(executor.Executor, tmp_path, ["1,a", "2,b"] * 4, example_gen_pb2.Output(), source)
    assert examples.split_names == '["train", "eval"]'
    assert [len(records(examples, name)) for name in ("train", "eval")] == [8, 3]
    with pytest.raises(ValueError, match=r"divides one input split.*Received: 2.*\(train, eval\)"):
        write(executor.Executor, tmp_path, ["1,a"], source=source)


def test_the_artifact_says_what_stock_tfxs_does(tmp_path):
    rows = [f"{number},{number % 3}" for number in range(20)]
    ours, stocks = (write(kind, tmp_path, rows) for kind in (executor.Executor, stock.Executor))
    assert ours.split_names == stocks.split_names == '["train", "eval"]'
    assert ours.mlmd_artifact.custom_properties == stocks.mlmd_artifact.custom_properties
    names = {f"Split-{name}/data_tfrecord-00000-of-00001.gz" for name in ("train", "eval")}
    assert set(content(ours)) == set(content(stocks)) == names


@pytest.mark.more
def test_copies_of_a_row_spread_and_other_rows_stay_where_stock_tfx_has_them(tmp_path):
    rows = [f"{number},{number % 3}" for number in range(150)] + ["7.5,a"] * 600 + ["8.5,b"] * 2
    ours, stocks = (split(kind, tmp_path, rows) for kind in (executor.Executor, stock.Executor))
    assert sum(ours.values(), Counter()) == sum(stocks.values(), Counter())  # nothing is lost
    copies = {row for part in stocks.values() for row, count in part.items() if count > 1}
    assert len(copies) == 2
    for name in ("train", "eval"):
        assert set(ours[name]) - copies == set(stocks[name]) - copies
    (many,) = (row for row in copies if sum(part[row] for part in stocks.values()) == 600)
    assert sorted(part[many] for part in stocks.values()) == [0, 600]
    # A third of 600, within 4 standard deviations: sqrt(600 * 1/3 * 2/3) = 11.5.
    assert abs(ours["eval"][many] - 200) < 46


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([f"{number - 50},{number * 10**16}" for number in range(100)], id="integers"),
        pytest.param(["0.1,1e-3", "3,nan", "1e20,-.5", "7.,5E+2", " 8 ,1_000"], id="numbers"),
        pytest.param([",", "1,", ",b", "", "2,c"], id="empty cells and lines", marks=pytest.mark.more),
        pytest.param(['1,"a, ""b"""', '2," c "', '"3",""', '4,"d\ne"'], id="quotes", marks=pytest.mark.more),
        pytest.param(["é,日本", "1,🚕", "00037,x", "9223372036854775808,y"], id="texts"),
        pytest.param([f"{number}.5,word {number}\r" for number in range(40)], id="CRLF"),
    ],
)
def test_the_examples_are_those_of_stock_tfx(tmp_path, rows):
    found = [split(kind, tmp_path, rows) for kind in (executor.Executor, stock.Executor)]
    ours, stocks = (sum(parts.values(), Counter()) for parts in found)
    assert ours == stocks
    assert ours.total() == len([row for row in rows if row])
    assert found[0] == found[1]  # no row has a copy, so also in the same splits


BY_Y = example_gen_pb2.Output()
BY_Y.CopyFrom(OUTPUT)
BY_Y.split_config.partition_feature_name = "y"


def test_a_split_by_a_column_is_stock_tfxs(tmp_path):
    rows = [f"{number},{number % 7}" for number in range(60)] + ["1,0"] * 20
    ours, stocks = (split(kind, tmp_path, rows, BY_Y) for kind in (executor.Executor, stock.Executor))
    assert ours == stocks


def read(column, part):
    """Returns the values of a column, None where there is none."""
    found = []
    for row, count in part.items():
        feature = tf.train.Example.FromString(row).features.feature[column]
        values = getattr(feature, feature.WhichOneof("kind")).value
        found += [values[0] if values else None] * count
    return found


def test_a_group_is_never_divided_and_rows_without_one_are_split_by_themselves(tmp_path):
    # Stock TFX refuses a column of fractions, and one with an empty cell.
    groups = [f"{number % 40}.5" for number in range(400)]
    rows = [f"{number},{group}" for number, group in enumerate(groups)] + ["1,"] * 300
    parts = split(executor.Executor, tmp_path, rows, BY_Y)
    groups_in = {name: Counter(read("y", part)) for name, part in parts.items()}
    alone = {name: found.pop(None) for name, found in groups_in.items()}
    assert not set(groups_in["train"]) & set(groups_in["eval"])
    assert len(groups_in["train"]) + len(groups_in["eval"]) == 40
    assert min(len(found) for found in groups_in.values()) > 3
    # Copies: a third of 300, within 4 standard deviations of sqrt(300 * 1/3 * 2/3) = 8.2.
    assert abs(alone["eval"] - 100) < 33


def test_rows_with_a_word_for_no_group_are_split_by_themselves(tmp_path):
    config = CsvExampleGen(input_base="", no_groups=["NA", "?"]).exec_properties["custom_config"]
    rows = [f"{number},{word}" for number in range(100) for word in ("NA", " NA", "?", "na")]
    parts = split(executor.Executor, tmp_path, rows, BY_Y, config)
    counts = [Counter(value.decode() for value in read("y", part)) for part in parts.values()]
    assert [sorted(found) for found in counts].count([" NA", "?", "NA"]) == 1  # the other has all of "na"
    # A third of 300, within 4 standard deviations of 8.2.
    assert abs(sum(counts[1].values()) - counts[1]["na"] - 100) < 33


def test_white_space_makes_no_other_group(tmp_path):
    rows = [f"{number},{' ' * (number % 3)}p{number // 3}{' ' * (number % 2)}" for number in range(90)]
    parts = split(executor.Executor, tmp_path, rows, BY_Y)
    patients = [{value.strip() for value in read("y", part)} for part in parts.values()]
    assert not patients[0] & patients[1]
    assert len(patients[0] | patients[1]) == 30
