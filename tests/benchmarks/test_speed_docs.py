"""Writing the results of the bench into a page."""

import pytest

from benchmarks import speed_docs, speed_table
from benchmarks.speed_docs import BEGIN, END
from benchmarks.speed_growth import CONTESTANTS, SIZES
from benchmarks.speed_table import Run
from benchmarks.speed_works import OURS, REFERENCE, WORKS


@pytest.fixture
def rows():
    (work,) = (work for work in WORKS if work.letter == "f")
    runs = [Run(OURS, 1e-6, 2e-6), Run(REFERENCE, 4e-6, 6e-6)]
    return speed_table.table_rows(work, runs, by_processor=False)


def test_only_what_is_between_the_comments_is_replaced():
    page = f"# Speed\n{BEGIN}\nold\n{END}\nmore\n"
    assert speed_docs.replaced(page, "new\n") == f"# Speed\n{BEGIN}\n\nnew\n\n{END}\nmore\n"


@pytest.mark.parametrize(
    "page", ["", BEGIN, END, f"{END}{BEGIN}", f"{BEGIN}{BEGIN}{END}", f"{BEGIN}{END}{END}"]
)
def test_a_page_without_the_comments_is_left_alone(page):
    with pytest.raises(ValueError, match="each once"):
        speed_docs.replaced(page, "new")


def test_the_page_and_its_figures(tmp_path, rows):
    page = tmp_path / "speed.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    memory = {OURS: {"steps": [1000, 2000, 3000], "resident_bytes": [2**29] * 3}}
    growth = [
        {"plot": plot, "size": size, "contestant": contestant.name, "secs": 0.5, "processor_secs": 0.25}
        for plot, sizes in SIZES.items()
        for size in sizes
        for contestant in CONTESTANTS
    ]
    results = {"growth": {"measured": growth}, "memory": {"measured": memory}}
    speed_docs.write(page, rows, results, "Measured today.", by_processor=True)
    text = page.read_text()
    assert "Measured today." in text
    assert "| (f) evaluate | tf.estimator 2.15 | 1 / 2 us per row | 4 / 6 us | 4.00x " in text
    assert "Memory of estimator_core: 512 MiB at first, 512 MiB after 3,000;" in text
    names = ["speed-batch.svg", "speed-features.svg", "speed-memory.svg", "speed-ratios.svg"]
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == names
    assert all(f"](figures/{name})" in text for name in names)


def test_the_bars_are_of_what_is_judged_by(rows):
    assert ">4x<" in speed_docs.ratios_figure(rows, by_processor=False)
    assert ">3x<" in speed_docs.ratios_figure(rows, by_processor=True)
