import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.data.encoding import as_utf8, describe_likely_encodings


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


@pytest.mark.parametrize(
    ("encoding", "words", "likely"),
    [
        ("shift_jis", ("東京都", "クレジットカード", "とうきょう"), "It is probably cp932 (Japanese)"),
        ("euc_jp", ("東京都", "クレジットカード", "とうきょう"), "It is probably euc_jis_2004 (Japanese)"),
        ("gb18030", ("北京", "订单日期", "有限公司"), "It is probably gb18030 (Chinese)"),
        ("big5", ("高雄", "訂單日期", "有限公司"), "It is probably big5 (Chinese)"),
        ("euc_kr", ("서울", "주문일", "결제방법"), "It is probably cp949 (Korean)"),
        ("cp1252", ("Größe", "Zürich", "fährt"), ""),
        ("cp1252", ("été", "cœur", "12,50 €"), ""),
        ("cp1252", ("20 °C", "5 µm", "1 ½"), ""),
        ("cp1251", ("Москва", "заказ", "оплата"), ""),
        ("cp1253", ("Αθήνα", "πόλη", "κάρτα"), ""),
    ],
)
def test_a_file_in_japanese_chinese_or_korean_is_recognized(tmp_path, encoding, words, likely):
    file = tmp_path / "a.csv"
    lines = (f"{number},{words[number % 3]},{words[number % 2]}\n" for number in range(300))
    file.write_text("a,b,c\n" + "".join(lines), encoding=encoding)
    said = describe_likely_encodings(file)
    assert said.strip().startswith(likely)
    assert bool(said) == bool(likely)


def test_utf_8_with_a_few_broken_bytes_stays_utf_8(tmp_path):
    (tmp_path / "a.csv").write_bytes("北京,订单日期\n".encode() * 20 + b"\xb0\xa1\n")
    assert describe_likely_encodings(tmp_path / "a.csv") == ""
