"""Writes the Markdown of the site, from docs/, the README and the sources, into a folder.

Usage: stage.py FOLDER
"""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from api_pages import API_PAGES, api_page
from command_page import command_page
from links import ROOT_PAGES, Site

from pipelines.cli.app import app


def pages() -> dict[str, str]:
    """Returns the Markdown of each page, by its path on the site."""
    site = Site(ROOT)
    made = {page.file: api_page(page) for page in API_PAGES}
    made["reference/commands.md"] = command_page(app)
    shown: set[str] = set()
    files = [*(ROOT / name for name in ROOT_PAGES), *sorted((ROOT / "docs").rglob("*.md"))]
    for path in files:
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        made[site.page_of(name)] = site.rewritten(text, name)
        shown |= set(site.shown_sources(text, name))
    return made | _source_pages(shown)


def _source_pages(shown: set[str]) -> dict[str, str]:
    """Returns the pages of files outside of docs/, and of the files that these link to in turn."""
    site, made, waiting = Site(ROOT), dict[str, str](), sorted(shown)
    while waiting:
        source = waiting.pop()
        text = (ROOT / source).read_text(encoding="utf-8")
        if source.endswith(".md"):
            waiting += [
                shown for shown in site.shown_sources(text, source) if site.page_of(shown) not in made
            ]
            text = site.rewritten(text, source)
        else:
            language = {".py": "python", ".sh": "sh", ".toml": "toml"}.get(Path(source).suffix, "text")
            text = f"# {source}\n\n````{language}\n{text}\n````\n"
        made[site.page_of(source)] = text
    return made


def main() -> None:
    """Writes the pages."""
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "assets").mkdir(parents=True)
    shutil.copy(HERE / "site.css", folder / "assets")
    for name in ("figures", "monitoring"):
        shutil.copytree(ROOT / "docs" / name, folder / name)
    for name, text in pages().items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
