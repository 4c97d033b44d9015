import pytest

from pipelines.errors import BadInputError
from pipelines.scheduling.known_spans import KnownSpans


def test_spans_are_added(tmp_path):
    known = KnownSpans(tmp_path / "trips")
    assert known.read() is None
    known.add([])
    assert KnownSpans(tmp_path / "trips").read() == frozenset()
    known.add(["span-8", "span-7"])
    known.add(["span-9", "span-8"])
    assert KnownSpans(tmp_path / "trips").read() == {"span-7", "span-8", "span-9"}
    before = (tmp_path / "trips" / "spans.json").stat().st_mtime_ns
    known.add(["span-7"])
    assert (tmp_path / "trips" / "spans.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("text", ["{", "{}", '{"known": "span-7"}', '{"known": [7]}'])
def test_a_damaged_file_is_named_and_not_taken_for_none(tmp_path, text):
    (tmp_path / "spans.json").write_text(text)
    with pytest.raises(BadInputError, match=r"spans\.json .*Correct it"):
        KnownSpans(tmp_path).read()
