import pytest
import tensorflow as tf

from components.errors import SettingError
from components.tuner.validation_rows import divide, fold_files


def write(path, rows, compression=""):
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for row in rows:
            writer.write(row)


def read(patterns, compression):
    paths = sorted(path for pattern in patterns for path in tf.io.gfile.glob(pattern))
    return list(tf.data.TFRecordDataset(paths, compression).as_numpy_iterator())


@pytest.mark.parametrize(("ending", "compression"), [(".gz", "GZIP"), ("", "")])
def test_each_fifth_row_over_all_files_judges_a_fold(tmp_path, ending, compression):
    rows = [b"%d" % number for number in range(12)]
    write(tmp_path / f"data-0{ending}", rows[:7], compression)
    write(tmp_path / f"data-1{ending}", rows[7:], compression)
    for _ in range(2):  # the second time, it is there already
        divide([str(tmp_path / "data-*")], tmp_path / "rows")
        for fold, expected in ((0, [b"0", b"5", b"10"]), (4, [b"4", b"9"])):
            learn, judge = (read(part, compression) for part in fold_files(tmp_path / "rows", fold))
            assert judge == expected
            assert sorted(learn) == sorted(row for row in rows if row not in judge)


def example(**features):
    def feature(values):
        if isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    named = {name: feature(values) for name, values in features.items() if values}
    return tf.train.Example(features=tf.train.Features(feature=named)).SerializeToString()


@pytest.mark.parametrize("kind", [lambda n: n, lambda n: b"%d" % n])
def test_the_rows_of_a_group_judge_together(tmp_path, kind):
    # Groups 1, 2, 3 and 4 come first, then a row without a group and one with -1, then 5.
    keys = [1, 2, 2, 3, 1, 4, None, -1, 5, 2]
    rows = [example(n=[n], g=[] if k is None else [k if k == -1 else kind(k)]) for n, k in enumerate(keys)]
    write(tmp_path / "data-0", rows[:4], "")
    write(tmp_path / "data-1", rows[4:], "")
    divide([str(tmp_path / "data-*")], tmp_path / "rows", "g")
    # In turn: 1, 2, 3, 4, the row without, the row with -1, 5.
    for fold, expected in enumerate([[0, 4, 7], [1, 2, 8, 9], [3], [5], [6]]):
        learn, judge = (read(part, "") for part in fold_files(tmp_path / "rows", fold))
        assert judge == [rows[number] for number in expected]
        assert len(learn) + len(judge) == 10


@pytest.mark.parametrize(
    ("group", "message"),
    [("g", "3 groups of 'g' are too few"), ("h", "'h': no transformed training row has such a feature")],
)
def test_groups_and_rows_that_cannot_be_divided_are_refused(tmp_path, group, message):
    write(tmp_path / "data", [example(g=[number % 3]) for number in range(30)], "")
    with pytest.raises(SettingError, match=message):
        divide([str(tmp_path / "data")], tmp_path / "rows", group)
    write(tmp_path / "data.gz", [b"1", b"2", b"3", b"4"], "GZIP")
    with pytest.raises(SettingError, match="4 training rows are too few to hold out one in 5"):
        divide([str(tmp_path / "data.gz")], tmp_path / "rows")
