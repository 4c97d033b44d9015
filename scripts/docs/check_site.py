"""Checks a built site: it has every page and every public name, and loads nothing from other hosts.

Usage: check_site.py FOLDER
"""

import sys
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

from api_pages import API_PAGES, names_of

# Attributes that make a browser fetch a file immediately; links are only followed by the reader.
_FETCHES = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.fetched: list[str] = []
        self.has_diagram = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors.add(values.get("id") or "")
        self.has_diagram |= "mermaid" in (values.get("class") or "").split()
        address = values.get(_FETCHES.get(tag, "")) or ""
        if address.startswith(("http:", "https:", "//")):
            self.fetched.append(address)


def faults(site: Path, pages: Iterable[str]) -> list[str]:
    """Returns the faults of a site."""
    messages = []
    anchors: dict[str, set[str]] = {}
    for page in pages:
        file = site / page.removesuffix(".md")
        file = file.with_name(f"{file.name}.html")
        if not file.exists():
            messages.append(f"{page}: {file} was not built")
            continue
        parsed = _Page()
        parsed.feed(file.read_text(encoding="utf-8"))
        anchors[page] = parsed.anchors
        messages += [f"{page}: fetches {address}" for address in parsed.fetched]
        if parsed.has_diagram:
            messages.append(f"{page}: a mermaid diagram, for which a script is fetched from a CDN")
    for page in API_PAGES:
        for name in names_of(page):
            if name.alias_of is None and name.path not in anchors.get(page.file, set()):
                messages.append(f"{page.file}: {name.path} is missing; does it have a docstring?")
    return messages


def main() -> None:
    """Checks the site that was built from the staged pages."""
    staged = Path("build/docs")
    pages = [path.relative_to(staged).as_posix() for path in sorted(staged.rglob("*.md"))]
    messages = faults(Path(sys.argv[1]), pages)
    if messages:
        sys.exit("\n".join(f"docs: {fault}" for fault in messages))
    print(f"docs: {len(pages)} pages; open {sys.argv[1]}/index.html", file=sys.stderr)


if __name__ == "__main__":
    main()
