import dataclasses
import re

import pytest

from pipelines.report.context import NOT_RECORDED, Context
from pipelines.report.page import FOLDER, SECTIONS, render_report

from .conftest import DETAILS, HOSTILE, RECORD, RTL, STATISTICS  # noqa: TID252
from .html_checks import check_page  # noqa: TID252


@pytest.fixture
def page(full):
    return check_page(render_report(full, "abc", has_index=True))


def test_the_structure_is_sound_and_all_sections_are_there_with_numbers_as_text(page, full):
    assert [one.get("id") for one in page.all("section")] == [one.id for one in SECTIONS]
    links = [one.get("href") for one in page.all("a")]
    assert [link for link in links if link.startswith("#")][1:] == [f"#{one.id}" for one in SECTIONS]
    assert "index.html" in links
    text = render_report(full)
    assert text.index('<div class="verdict') < text.index("<nav") < text.index('<dl class="facts">')
    assert "<script>alert" not in text
    assert len(page.all("script")) == 1
    names = [one.text for one in page.all("th")]
    assert names.count(HOSTILE) >= 3  # columns, drift, importance
    assert RTL in names
    text = page.root.text
    for part in ("0.81", "0.77 to 0.85", "+0.31", "1 of 2 passed", "city:" + RTL, "1.2 MB", "12.3 kB"):
        assert part in text
    for part in ("None", "nan", "undefined"):
        assert not re.search(rf"\b{part}\b", text), part


def test_a_record_of_an_older_version_says_what_it_lacks(bare):
    page = check_page(render_report(bare))
    missing = [one.text for one in page.all("p") if one.get("class") == "missing"]
    assert len(missing) == 7
    assert all(NOT_RECORDED in text for text in missing)


@pytest.mark.parametrize("changes", [{}, {"status": "not_blessed", "version": None}])
def test_a_record_without_anything_new_since(bare, changes):
    old = dataclasses.replace(bare.record, graph={}, environment={}, data_files=(), spans=(), **changes)
    page = check_page(render_report(Context(old, bare.root, {}, (old,))))
    assert page.root.text.count(NOT_RECORDED) == 9  # and files, environment; not the graph


def test_a_failed_run_has_the_sections_that_there_are(failed):
    page = check_page(render_report(failed))
    assert [one.get("id") for one in page.all("section")] == ["verdict", "components", "origin"]
    assert "The run failed in CsvExampleGen; nothing was pushed." in page.root.text
    assert "CsvExampleGen: no space" in page.root.text


@pytest.mark.more
def test_very_many_columns_stay_usable(full):
    """300 columns: 40 at once, the others behind a button, and a filter by name."""
    one = STATISTICS["columns"][0]
    columns = [{**one, "name": f"column {number}"} for number in range(300)]
    details = {**DETAILS, "statistics": {**STATISTICS, "columns": columns, "num_columns": 300}}
    record = dataclasses.replace(RECORD, columns=())
    text = render_report(Context(record, full.root, details, (record,)))
    page = check_page(text)
    shown = [t for t in page.all("tbody") if t.get("data-filtered-by") == "filter-columns"]
    assert [len(body.children) for body in shown] == [40, 260]
    assert shown[1].inside("details")
    (box,) = (e for e in page.all("div") if e.get("class") == "filter")
    assert "hidden" in box.attributes  # without the script there is nothing to filter with
    assert len(text) < 1_200_000


def _variables(css):
    light, dark = css.split("@media (prefers-color-scheme: dark)")
    return [dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", part.split("}")[0])) for part in (light, dark)]


def _luminance(color):
    """WCAG 2.2's relative luminance."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(first, second):
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_formula_of_the_contrast():
    assert _contrast("#ffffff", "#000000") == pytest.approx(21)
    assert _contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # known to fail AA


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colors_can_be_read(theme):
    """WCAG AA: 4.5 for text, 3 for drawings."""
    colors = _variables((FOLDER / "style.css").read_text())[theme]
    for text in ("ink", "muted", "link"):
        for back in ("page", "panel"):
            assert _contrast(colors[text], colors[back]) >= 4.5, (text, back)
    for tone in ("good", "warn", "bad", "info"):
        assert _contrast(colors[tone], colors[f"{tone}-back"]) >= 4.5, tone
        assert _contrast(colors["ink"], colors[f"{tone}-back"]) >= 4.5, tone
    for drawn in ("model", "baseline", "muted"):
        assert _contrast(colors[drawn], colors["page"]) >= 3, drawn
    shade = re.findall(r"--shade: (\d+), (\d+), (\d+)", (FOLDER / "style.css").read_text())[theme]
    darkest = 0.37  # of the confusion matrix
    mixed = [
        round(darkest * int(part) + (1 - darkest) * int(colors["page"][at : at + 2], 16))
        for part, at in zip(shade, (1, 3, 5), strict=True)
    ]
    assert _contrast(colors["ink"], "#" + bytes(mixed).hex()) >= 4.5


def test_motion_print_and_narrow_pages_are_thought_of():
    css = (FOLDER / "style.css").read_text()
    for part in ("prefers-reduced-motion", "@media print", "overflow-x: auto", ":focus-visible"):
        assert part in css
