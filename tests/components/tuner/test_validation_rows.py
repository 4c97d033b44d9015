from pathlib import Path

import pytest
import tensorflow as tf

from components.errors import SettingError
from components.tuner.validation_rows import divide, parts_in


def write(path: Path, rows: list[bytes], compression: str) -> None:
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for row in rows:
            writer.write(row)


def read(patterns: list[str], compression: str) -> list[bytes]:
    paths = sorted(path for pattern in patterns for path in tf.io.gfile.glob(pattern))
    return list(tf.data.TFRecordDataset(paths, compression).as_numpy_iterator())


@pytest.mark.parametrize(("ending", "compression"), [(".gz", "GZIP"), ("", "")])
def test_each_fifth_row_over_all_files_judges_a_fold(
    tmp_path: Path, ending: str, compression: str
) -> None:
    rows = [b"%d" % number for number in range(12)]
    write(tmp_path / f"data-0{ending}", rows[:7], compression)
    write(tmp_path / f"data-1{ending}", rows[7:], compression)
    for _ in range(2):  # the second time, it is there already
        divide([str(tmp_path / "data-*")], tmp_path / "rows")
        for fold, expected in ((0, [b"0", b"5", b"10"]), (4, [b"4", b"9"])):
            learn, judge = (read(part, compression) for part in parts_in(tmp_path / "rows", fold))
            assert judge == expected
            assert sorted(learn) == sorted(row for row in rows if row not in judge)


def test_four_rows_are_too_few(tmp_path: Path) -> None:
    write(tmp_path / "data.gz", [b"1", b"2", b"3", b"4"], "GZIP")
    with pytest.raises(SettingError, match="4 training rows are too few to hold out one in 5"):
        divide([str(tmp_path / "data.gz")], tmp_path / "rows")
