"""Every link between the files of the repository leads somewhere."""

import re

import pytest

from tests.docs.markdown import NAMES, ROOT, anchors, links, read


def fault(page, target):
    """Returns the fault of a link; None if there is none."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.is_relative_to(ROOT):
        return "leads out of the repository"
    if not file.exists():
        return "there is no such file"
    if anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
        return f"{file.name} has no heading with this anchor"
    return None


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_files_and_headings(name):
    page = ROOT / name
    inside = [target for target in links(read(name)) if not re.match(r"[a-z]+:", target)]
    assert not [(target, reason) for target in inside if (reason := fault(page, target))]


def test_a_dead_link_is_seen(tmp_path):
    page = ROOT / "docs" / "spans.md"
    assert fault(page, "no-such-page.md") == "there is no such file"
    assert fault(page, "new-data.md#no-such-heading").startswith("new-data.md has no heading")
    assert fault(page, "../../elsewhere.md") == "leads out of the repository"
    assert fault(page, "new-data.md#the-schema") is None
    assert fault(page, "#an-example") is None


def test_the_readme_links_to_every_page_and_the_index_of_the_decisions_to_each():
    linked = {target.partition("#")[0] for target in links(read("README.md"))}
    assert linked >= {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    folder = ROOT / "docs" / "decisions"
    pages = {page.name for page in folder.glob("0*.md")}
    assert set(links(read("docs/decisions/index.md"))) == pages


def test_the_three_columns_of_the_readme_fit_its_page_on_github():
    table = read("README.md").partition("<table>")[2].partition("</table>")[0]
    assert "\n\n" not in table  # a blank line ends HTML in Markdown
    code = re.findall(r"<pre[^>]*>\n(.*?)</pre>", table, re.DOTALL)
    assert len(code) == 6
    assert max(len(line) for block in code for line in block.splitlines()) <= 26  # 832 pixels for all columns


def test_anchors_are_those_of_github():
    text = "# A `b`, c?\n\n## It's [x](y.md)\n\n## It's x\n\n```sh\n# no heading\n```\n## v1_2 & 3\n"
    assert anchors(text) == {"a-b-c", "its-x", "its-x-1", "v1_2--3"}
