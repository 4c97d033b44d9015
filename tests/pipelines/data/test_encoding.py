import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.data.encoding import as_utf8


def test_other_files_are_copied_as_utf8_under_their_names_and_parquet_has_no_encoding(tmp_path):
    plain, other = tmp_path / "plain.csv", tmp_path / "other.csv"
    plain.write_text("größe\r\n1\n", encoding="utf-8", newline="")
    other.write_bytes("größe\r\n2\n".encode("cp1252"))
    texts = as_utf8([plain, other])
    assert (texts.encoding, texts.are_copies) == ("cp1252", True)
    assert [file.read_bytes().decode() for file in texts.files] == ["größe\r\n1\n", "größe\r\n2\n"]
    assert texts.with_original_paths(f"{texts.files[1]}, line 2") == f"{other}, line 2"
    own = as_utf8([plain])
    assert (own.files, own.are_copies, own.encoding) == ([plain], False, "utf-8")
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"city": ["Zürich"]}), file)
    assert as_utf8([file], "cp1252").files == [file]
