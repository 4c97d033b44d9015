"""Turns links that work between the files of the repository into links between the pages of the site."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CODE = re.compile(r"(^ *(?P<fence>```+|~~~+).*?^ *(?P=fence) *$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
_HREF = re.compile(r'(?<=<a href=")(?P<target>[^"]+)(?=")')
_PLACE = "\0"
ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Pages of the site by the file in the root of the repository."""


@dataclass(frozen=True)
class Site:
    """Pages of the files of the repository."""

    root: Path  # Root of the repository

    def page_of(self, file: str) -> str:
        """Returns the page of a file."""
        if file in ROOT_PAGES:
            return ROOT_PAGES[file]
        if file.startswith("docs/"):
            return file.removeprefix("docs/")
        return f"sources/{file}.md"

    def file_of(self, page: str) -> str:
        """Returns the file of a page."""
        files = {made: file for file, made in ROOT_PAGES.items()}
        return files.get(page, f"docs/{page}")

    def shown_sources(self, text: str, file: str) -> Iterator[str]:
        """Yields the files outside of docs/ that a text links to."""
        for link in (*_LINK.finditer(prose(text)), *_HREF.finditer(prose(text))):
            target, _ = self._target(link["target"], file)
            is_image = link.groupdict().get("image")
            if target and not is_image and self.page_of(target).startswith("sources/"):
                yield target

    def rewritten(self, text: str, file: str) -> str:
        """Returns the text with links between pages."""
        folder = posixpath.dirname(self.page_of(file))

        def replace(link: re.Match[str]) -> str:
            target, anchor = self._target(link["target"], file)
            is_image = link.groupdict().get("image")
            if target is None:
                return str(link["text"]) if is_image else link[0]  # a badge would be fetched
            if is_image:
                address = posixpath.relpath(target.removeprefix("docs/"), folder or ".")
                return f"![{link['text']}]({address})"
            page = posixpath.relpath(self.page_of(target), folder or ".") + anchor
            return f"[{link['text']}]({page})" if link.re is _LINK else page

        code = [match[0] for match in _CODE.finditer(text)]
        parts = [_HREF.sub(replace, _LINK.sub(replace, part)) for part in prose(text).split(_PLACE)]
        return "".join(part + block for part, block in zip(parts, [*code, ""], strict=True))

    def _target(self, target: str, file: str) -> tuple[str | None, str]:
        """Returns the file and the anchor of a link; None for links to other sites."""
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return None, ""
        path, hash_sign, anchor = target.partition("#")
        return posixpath.normpath(posixpath.join(posixpath.dirname(file), path)), hash_sign + anchor


def prose(text: str) -> str:
    """Returns Markdown with a null character in place of each code block."""
    return _CODE.sub(_PLACE, text)
