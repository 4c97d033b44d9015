import dataclasses
import os
import threading

import pytest

from pipelines.errors import BadInputError
from pipelines.report.files import index_file, report_file, write_index, write_pages
from pipelines.report.plots import Plot
from pipelines.root import Root
from tests.pushed_versions import add_model

from .conftest import DETAILS, FORMER, RECORD  # noqa: TID252
from .html_checks import dead_links  # noqa: TID252


@pytest.fixture
def root(tmp_path):
    records = Root(tmp_path).records
    for record in (FORMER, RECORD):
        records.write(record)
    for section, values in DETAILS.items():
        Root(tmp_path).details(RECORD.run_id).write(section, values)
    return tmp_path


def all_of(root):
    return Root(root).records.read_all()


@pytest.mark.more
def test_both_pages_are_written_and_nothing_else_is_left(root):
    target = root / "runs" / f"{RECORD.run_id}.html"
    write_pages(Root(root), RECORD, target)
    files = sorted(file.name for file in (root / "runs").iterdir())
    assert files == [
        ".index.plots.json.gz", f"{FORMER.run_id}.json", target.name, f"{RECORD.run_id}.json", "details",
        "index.html",
    ]  # fmt: skip
    assert "ROC curve" in target.read_text()
    assert target.stat().st_size < 300_000


@pytest.mark.more
def test_a_page_is_made_again_only_when_something_has_changed(root):
    target = report_file(Root(root), all_of(root), RECORD.run_id)
    index = index_file(Root(root), all_of(root))
    os.utime(target, (1, 1))
    os.utime(index, (1, 1))
    assert report_file(Root(root), all_of(root), RECORD.run_id) == target
    assert index_file(Root(root), all_of(root)) == index
    assert (target.stat().st_mtime, index.stat().st_mtime) == (1, 1)
    add_model(root / "serving" / RECORD.version)  # such as by a rollback
    report_file(Root(root), all_of(root), RECORD.run_id)
    index_file(Root(root), all_of(root))
    assert min(target.stat().st_mtime, index.stat().st_mtime) > 1
    assert "serving" in target.read_text()


@pytest.mark.more
def test_what_a_run_writes_at_its_end_is_up_to_date(root):
    target = root / "runs" / f"{RECORD.run_id}.html"
    write_pages(Root(root), RECORD, target)
    Root(root).records.write(dataclasses.replace(RECORD, report=str(target)))
    for page in (target, Root(root).index):
        os.utime(page, (1, 1))
    report_file(Root(root), all_of(root), RECORD.run_id)
    index_file(Root(root), all_of(root))
    assert (target.stat().st_mtime, Root(root).index.stat().st_mtime) == (1, 1)


@pytest.mark.more
def test_a_report_elsewhere_has_no_link_to_the_index(root, tmp_path):
    output = tmp_path / "mine.html"
    assert report_file(Root(root), all_of(root), FORMER.run_id, output) == output
    assert "index.html" not in output.read_text()
    assert not (root / "runs" / f"{FORMER.run_id}.html").exists()
    # Nor has one of which the page beside the records is up to date, and links to the index.
    beside = report_file(Root(root), all_of(root), RECORD.run_id)
    assert f'href="index.html#run-{FORMER.run_id}"' in beside.read_text()
    report_file(Root(root), all_of(root), RECORD.run_id, output)
    assert "index.html" not in output.read_text()
    index_file(Root(root), all_of(root), output)
    assert ".html" not in output.read_text()


@pytest.mark.parametrize("values", [{"curves": 5}, {"curves": [{"points": "x"}]}, {"curves": [[]]}])
def test_details_of_another_form_are_named(root, values):
    details = Root(root).details(RECORD.run_id)
    details.write("training", values)
    with pytest.raises(BadInputError, match=str(details.folder)):
        report_file(Root(root), all_of(root), RECORD.run_id)


def test_a_record_of_another_form_is_named(root):
    Root(root).records.write(dataclasses.replace(RECORD, checks=({"a": 1},)))
    with pytest.raises(BadInputError, match=rf"{RECORD.run_id}\.json .* KeyError: 'passed'"):
        report_file(Root(root), all_of(root), RECORD.run_id)


@pytest.mark.more
def test_the_index_behind_a_change_is_made_again_if_there_is_one(root):
    write_index(Root(root))
    assert not Root(root).index.exists()
    write_pages(Root(root), RECORD, root / "runs" / f"{RECORD.run_id}.html")
    (root / "runs" / f"{RECORD.run_id}.html").unlink()
    assert dead_links(root / "runs") != []
    write_index(Root(root))
    assert dead_links(root / "runs") == []


@pytest.mark.more
def test_an_unchanged_run_takes_the_plots_of_the_run_that_it_repeats(root, monkeypatch):
    write_pages(Root(root), RECORD, root / "runs" / f"{RECORD.run_id}.html")
    drawn = []
    stock = Plot.svg.fget
    monkeypatch.setattr(Plot, "svg", property(lambda plot: drawn.append(plot.title) or stock(plot)))
    again = dataclasses.replace(RECORD, run_id="20990101-000000", status="unchanged", same_as=RECORD.run_id)
    target = root / "runs" / f"{again.run_id}.html"
    write_pages(Root(root), again, target)
    assert "ROC curve" in target.read_text()
    assert not [title for title in drawn if "ROC" in title], drawn


def test_many_writers_leave_a_whole_page(root):
    """Readers see a whole page at any moment, while others write it."""
    records = all_of(root)
    index_file(Root(root), records)
    seen = []

    def read():
        while not done.is_set():
            seen.append(Root(root).index.read_text().endswith("</html>\n"))

    done = threading.Event()
    reader = threading.Thread(target=read)
    reader.start()
    for number in range(5):
        changed = [*records[:-1], dataclasses.replace(RECORD, reason=f"reason {number}")]
        index_file(Root(root), changed)
    done.set()
    reader.join()
    assert seen
    assert all(seen)
