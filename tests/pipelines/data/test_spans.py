import pytest

from pipelines.config.span_selection import parse_selection
from pipelines.data.spans import describe_spans, name_spans, resolve_spans
from pipelines.errors import BadInputError


def make(folder, *names):
    for name in names:
        file = folder / name
        if name.endswith("/"):
            file.mkdir(parents=True)
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a,b\n1,2\n")


@pytest.fixture
def resolve(tmp_path):
    """Returns a function that resolves a pattern below `tmp_path`."""

    def find(pattern, spans="newest", **options):
        return resolve_spans(f"{tmp_path}/{pattern}", parse_selection(spans), **options)

    return find


def names(resolved, folder):
    return [str(file.relative_to(folder)) for file in resolved.files]


FOUR = ("s2/x.csv", "s9/a.csv", "s9/b.csv", "s10/x.csv", "s7/x.csv")


@pytest.mark.parametrize(
    ("spans", "files"),
    [
        ("newest", ["s10/x.csv"]),
        ("last 2", ["s9/a.csv", "s9/b.csv", "s10/x.csv"]),
        ("last 3", ["s7/x.csv", "s9/a.csv", "s9/b.csv", "s10/x.csv"]),
        ("last 2 to 9", ["s7/x.csv", "s9/a.csv", "s9/b.csv"]),
        ("last 2 to 8", ["s2/x.csv", "s7/x.csv"]),
        ("9", ["s9/a.csv", "s9/b.csv"]),
        ("9-10", ["s9/a.csv", "s9/b.csv", "s10/x.csv"]),
    ],
)
def test_spans_compare_as_numbers_and_older_ones_come_first(resolve, tmp_path, spans, files):
    make(tmp_path, *FOUR)
    found = resolve("s{SPAN}", spans)
    assert names(found, tmp_path) == files
    assert found.notes == ()


def test_dates_compare_as_dates(resolve, tmp_path):
    make(tmp_path, "31-12-2025.csv", "01-02-2026.csv", "15-01-2026.csv")
    found = resolve("{DD}-{MM}-{YYYY}.csv", "last 2")
    assert names(found, tmp_path) == ["15-01-2026.csv", "01-02-2026.csv"]
    assert found.as_records() == (
        {"span": "2026-01-15", "version": None, "num_files": 1},
        {"span": "2026-02-01", "version": None, "num_files": 1},
    )


def test_the_newest_version_of_each_span_wins(resolve, tmp_path):
    make(tmp_path, "s1/v9/x.csv", "s1/v10/x.csv", "s2/v3/a.csv", "s2/v3/b.csv", "s2/v1/x.csv")
    found = resolve("s{SPAN}/v{VERSION}/*.csv", "1..2")
    assert names(found, tmp_path) == ["s1/v10/x.csv", "s2/v3/a.csv", "s2/v3/b.csv"]
    assert [(span.key, span.version) for span in found.spans] == [(1, 10), (2, 3)]
    assert describe_spans(found.as_records()) == "1 (version 10), 2 (version 3)"


def test_windows_that_end_with_a_span_or_have_fewer(resolve, tmp_path):
    make(tmp_path, *FOUR)
    found = resolve("s{SPAN}", "last 6")
    assert [span.key for span in found.spans] == [2, 7, 9, 10]
    assert found.notes == ("data.spans = 'last 6': there are only 4",)
    make(tmp_path, "s2/x.csv", "s3/x.csv")
    pinned = ({"span": 2, "version": None, "num_files": 1},)
    assert resolve("s{SPAN}", "last 1 to 2", pinned=pinned).notes == ()
    assert "span 3" in resolve("s{SPAN}", "newest", pinned=pinned).notes[0]


def test_holes_of_a_range_are_named(resolve, tmp_path):
    make(tmp_path, *FOUR, "s8/")
    with pytest.raises(BadInputError) as error:
        resolve("s{SPAN}", "2..11")
    assert str(error.value) == (
        f"data.spans = '2..11': there is no span 3..6, 8, 11 of {tmp_path}/s{{SPAN}} (span 8 has no data "
        'file (it is empty)). Existing spans: 2, 7..10. Give a range without gaps, or "last N" for the '
        "newest N existing spans."
    )


V = "s{SPAN}/v{VERSION}"
TWO_VERSIONS = ("s3/v1/x.csv", "s3/v01/x.csv", "s4/v1/x.csv", "s04/v2/x.csv")
REFUSED = {
    "a window that ends before all": (("s2/x.csv", "s3/x.csv"), "s{SPAN}", "last 2 to 1",
                                      r"'last 2 to 1': .* has no span that old\. Existing spans: 2\.\.3"),
    "one that is not there": (FOUR, "s{SPAN}", "4", "there is no span 4 of"),
    "none at all": (("s-old/x.csv",), "s{SPAN}", "newest", r"No span matches .*in {here}\): {{SPAN}}"),
    "no date": (("s-old/x.csv",), "{YYYY}{MM}{DD}.csv", "newest", "stand for a date, as in 2026-01-31"),
    "no folder": (("s-old/x.csv",), "none/s{SPAN}", "newest", "No span matches"),
    "two names of a span": (("s1/x.csv", "s3/x.csv", "s03/x.csv"), "s{SPAN}", "newest",
                            r"s03 and .*/s3 are both span 3\. Remove one of them, or"),
    "two names of a version": (TWO_VERSIONS, V, "3", r"v01 and .*/v1 are both version 1 of span 3\."),
    "versions of a span that lie apart": (TWO_VERSIONS, V, "4",
                                          r"s04/v2 and .*/s4/v1 are both span 4\.|s4/v1 and"),
    "a compressed file": (("s1/x.csv", "s2/x.csv.zip"), "s{SPAN}", "newest",
                                           r"x\.csv\.zip, which is compressed"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "pattern", "spans", "message"), REFUSED.values(), ids=REFUSED)
def test_spans_that_are_refused(resolve, tmp_path, monkeypatch, files, pattern, spans, message):
    make(tmp_path, *files)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInputError, match=message.format(here=tmp_path)):
        resolve(pattern, spans)


def test_spans_and_versions_without_a_finished_file_are_passed_over_and_noted(resolve, tmp_path):
    make(tmp_path, "s8/x.csv", "s9/v1/x.csv", "s9/v2/x.csv.tmp", "s10/v1/", "s11/")
    found = resolve("s{SPAN}/v{VERSION}")
    assert names(found, tmp_path) == ["s9/v1/x.csv"]
    assert found.notes == (
        "span 11 has no data file (it is empty): it is skipped",
        "version 1 of span 10 has no data file (it is empty): it is skipped",
        "version 2 of span 9 has no data file (there is x.csv.tmp): it is skipped",
    )


def test_a_pattern_that_matches_nothing_in_a_span(resolve, tmp_path):
    make(tmp_path, "s1/a.csv", "s2/a.txt", "s2/b.txt", "s2/c.txt", "s2/d.txt")
    found = resolve("s{SPAN}/*.csv")
    (note,) = found.notes
    assert note == "span 2 has no data file (there is a.txt, b.txt, c.txt and 1 more): it is skipped"
    (tmp_path / "s1" / "a.csv").unlink()
    with pytest.raises(BadInputError, match=r"has a data file: span 2 has no .* 1 more\)\.$"):
        resolve("s{SPAN}/*.csv")


@pytest.mark.parametrize("unfinished", ["b.csv.tmp", ".b.csv.Xe4", "_temporary/0.csv"])
def test_a_span_that_is_being_written_is_refused(resolve, tmp_path, unfinished):
    make(tmp_path, "s1/a.csv", "s2/a.csv", f"s2/{unfinished}", "s2/_SUCCESS")
    for pattern in ("s{SPAN}", "s{SPAN}/*.csv"):
        with pytest.raises(BadInputError, match=r"span 2 seems to be incomplete: .*/s2/"):
            resolve(pattern)
    assert names(resolve("s{SPAN}", "1"), tmp_path) == ["s1/a.csv"]  # nobody asked for 2


def test_what_is_being_written_in_a_folder_of_a_span_and_where_its_links_lead(resolve, tmp_path):
    make(tmp_path, "store/a.csv", "store/b.csv.tmp", "s1/csv/")
    (tmp_path / "s1" / "csv" / "a.csv").symlink_to(tmp_path / "store" / "a.csv")
    assert resolve("s{SPAN}/csv").files == [tmp_path / "store" / "a.csv"]
    make(tmp_path, "s2/csv/a.csv", "s2/csv/b.csv.tmp")
    with pytest.raises(BadInputError, match=r"span 2 seems to be incomplete: .*s2/csv/b\.csv\.tmp"):
        resolve("s{SPAN}/csv/*.csv")


def test_what_is_being_written_beside_files_of_other_spans_is_no_span(resolve, tmp_path):
    make(tmp_path, "1.csv", "2.csv", "3.csv.tmp", "x/1.csv", "x/2.csv.part")
    assert names(resolve("{SPAN}.csv"), tmp_path) == ["2.csv"]
    found = resolve("x/{SPAN}.*")
    assert names(found, tmp_path) == ["x/1.csv"]
    assert "span 2 has no data file (there is 2.csv.part)" in found.notes[0]


def test_digits_and_places_that_a_pattern_asks_for(resolve, tmp_path):
    make(tmp_path, "s1/x.csv", "s3/x.csv", "s03/x.csv", "eu/s1.csv", "us/s1.csv", "eu/s2.csv")
    assert names(resolve("s{SPAN:2}"), tmp_path) == ["s03/x.csv"]
    assert names(resolve("s{SPAN}", "1"), tmp_path) == ["s1/x.csv"]
    assert names(resolve("*/s{SPAN}.csv", "1"), tmp_path) == ["eu/s1.csv", "us/s1.csv"]


def test_two_spans_of_the_same_file(resolve, tmp_path):
    make(tmp_path, "s1/x.csv")
    (tmp_path / "s2").symlink_to(tmp_path / "s1")
    with pytest.raises(BadInputError, match=r"span 1 and span 2 .* are the same file, .*s1/x\.csv"):
        resolve("s{SPAN}", "last 2")
    assert names(resolve("s{SPAN}"), tmp_path) == ["s1/x.csv"]


def test_pinned_spans_stay_though_there_are_newer_ones(resolve, tmp_path):
    make(tmp_path, "s1/v1/x.csv", "s2/v1/x.csv", "s2/v2/x.csv")
    before = resolve("s{SPAN}/v{VERSION}", "last 2")
    make(tmp_path, "s2/v3/x.csv", "s3/v1/x.csv")
    found = resolve("s{SPAN}/v{VERSION}", "last 2", pinned=before.as_records())
    assert found.spans == before.spans
    assert found.notes == ("newer spans, left for the next run: version 3 of span 2, version 1 of span 3",)
    # Of a range, later spans are no part.
    (note,) = resolve("s{SPAN}/v{VERSION}", "1..2", pinned=before.as_records()).notes
    assert note.endswith("run: version 3 of span 2")
    (tmp_path / "s2" / "v2" / "x.csv").unlink()
    with pytest.raises(BadInputError, match=r"the run read version 2 of span 2 of .* no longer exists"):
        resolve("s{SPAN}/v{VERSION}", "last 2", pinned=before.as_records())


def test_pinned_dates_leave_newer_ones_to_the_next_run(resolve, tmp_path):
    make(tmp_path, "2026-01-31.csv", "2026-02-01.csv")
    pinned = ({"span": "2026-01-31", "version": None, "num_files": 1},)
    found = resolve("{YYYY}-{MM}-{DD}.csv", pinned=pinned)
    assert names(found, tmp_path) == ["2026-01-31.csv"]
    assert found.notes == ("newer spans, left for the next run: span 2026-02-01",)


def test_spans_in_words_and_a_path_without_placeholders():
    def record(span, version=None):
        return {"span": span, "version": version, "num_files": 2}

    assert describe_spans([record(4)]) == "4"
    assert describe_spans([record(4), record(5), record(7)]) == "4..5, 7"
    assert describe_spans([record(4, 1), record(5, 1), record(6, 2)]) == ("4..5 (version 1), 6 (version 2)")
    assert describe_spans([record("2026-01-31"), record("2026-02-01")]) == "2026-01-31..2026-02-01"
    assert name_spans([record(4, 3)]) == "span 4 (version 3)"
    assert name_spans([record(4), record(6)]) == "spans 4, 6"
    with pytest.raises(ValueError, match=r"Received: path='data\.csv'"):
        resolve_spans("data.csv", parse_selection("newest"))
