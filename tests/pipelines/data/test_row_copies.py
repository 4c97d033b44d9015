import pytest

from pipelines.data import row_copies
from pipelines.data.row_copies import RowCopies, RowHashes

ROWS = ["x,y", "1,a", "2,b", "1,a", "3,c", "1,a", "2,b"]


def hashed(*texts, num_rows=6, block=1_000):
    hashes = RowHashes()
    for text in texts:
        for start in range(0, len(text), block):
            hashes.update(text[start : start + block].encode())
        hashes.end_file(num_rows)
    return hashes.count()


@pytest.mark.parametrize("block", [1, 5, 1_000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_copies_are_counted_in_blocks_of_any_size(block, end):
    text = end.join(ROWS) + end
    # Three rows are 1,a, which is two copies and three pairs; two are 2,b.
    assert hashed(text, block=block) == RowCopies(3, 4)
    assert hashed(text + end + end, block=block) == RowCopies(3, 4)


def test_copies_in_several_files_without_a_last_line_end_or_with_lines_that_are_no_rows():
    assert hashed("\n".join(ROWS)) == RowCopies(3, 4)
    # The headers of two such files are not copies.
    assert hashed("\n".join(ROWS), "\n".join(ROWS)) == RowCopies(9, 6 * 5 // 2 + 4 * 3 // 2 + 1)
    text = 'x,y\n1,"a\n1,"a\n1,"a\n1,"a\n'  # as with line breaks in quotes
    assert hashed(text, num_rows=2) == RowCopies()
    assert hashed("x,y\n5,a\n5,a\n", num_rows=2) == RowCopies(1, 1)
    assert hashed("") == RowCopies()


def test_of_many_rows_all_copies_of_some_are_kept(monkeypatch):
    monkeypatch.setattr(row_copies, "_MAX_HASHES", 1_000)
    rows = "\n".join(map(str, range(4_000)))
    found = hashed(f"x\n{rows}\n{rows}\n", num_rows=8_000)
    # 8,000 hashes are halved three or four times; each kept one has one copy.
    assert found.num_copies == found.num_pairs
    assert found.num_copies % 8 == 0
    assert found.num_copies == pytest.approx(4_000, rel=0.25)
