"""Reads Markdown for the tests: links, headings, blocks of code and inline code."""

import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]

_BLOCK = re.compile(r"^( *)```([\w-]*)[^\n]*\n(.*?)^\1``` *$", re.DOTALL | re.MULTILINE)
_NOT_A_CONFIGURATION = "<!-- not a configuration -->\n"


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def prose(text):
    """Returns the text without its blocks of code."""
    return _BLOCK.sub("", text)


def blocks(text, language):
    """Returns the blocks of code in a language, without their indentation, but for marked ones."""
    return [
        re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE)
        for match in _BLOCK.finditer(text)
        if match[2] == language and not text[: match.start()].endswith(_NOT_A_CONFIGURATION)
    ]


def links(text):
    """Returns the targets of the links, also of those in HTML."""
    without_code = re.sub(r"`[^`\n]*`", "code", prose(text))
    targets = re.findall(r"\[[^\]]+\]\(([^)\s]+)\)|<a href=\"([^\"]+)\"", without_code)
    return [in_markdown or in_html for in_markdown, in_html in targets]


def anchors(text):
    """Returns the anchors of the headings, as GitHub makes them."""
    slugs = []
    for heading in re.findall(r"^#+ +(.*?) *$", prose(text), re.MULTILINE):
        shown = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        again = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", other) is not None for other in slugs)
        slugs.append(f"{slug}-{again}" if again else slug)
    return set(slugs)


def commands(text):
    """Returns the words of each shell command in the code blocks, without comments."""
    lines = "\n".join(blocks(text, "sh")).replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def inline_code(text):
    """Returns the text between backquotes outside of the blocks."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose(text))]
