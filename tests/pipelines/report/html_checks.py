"""A strict reading of a page, for errors that a validator or an accessibility checker would find."""

import itertools
from html.parser import HTMLParser

VOID = {"meta", "br", "input", "link", "img", "hr", "wbr"}
SVG_EMPTY = {"path", "rect", "line", "use", "circle"}


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children, self.texts = [], []

    def all(self, *tags):
        for child in self.children:
            if not tags or child.tag in tags:
                yield child
            yield from child.all(*tags)

    def get(self, name, default=None):
        return self.attributes.get(name, default)

    def inside(self, tag):
        return self.parent is not None and (self.parent.tag == tag or self.parent.inside(tag))

    @property
    def text(self):
        parts = [part if isinstance(part, str) else part.text for part in self.texts]
        return " ".join("".join(parts).split())


class Page(HTMLParser):
    """A page as a tree; an element that is not closed, or closed by another, is an error."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.root = self._open = Element("", {}, None)
        self.feed(text)
        self.close()
        assert self._open is self.root, f"<{self._open.tag}> is not closed"

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        element = Element(tag, dict(attrs), self._open)
        self._open.children.append(element)
        self._open.texts.append(element)
        if tag not in VOID:
            self._open = element

    def handle_startendtag(self, tag, attrs):
        assert self._open.inside("svg") or self._open.tag == "svg" or tag in VOID, tag
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert tag == self._open.tag, f"</{tag}> ends <{self._open.tag}>"
        self._open = self._open.parent

    def handle_data(self, data):
        self._open.texts.append(data)

    def all(self, *tags):
        return list(self.root.all(*tags))


def check_page(text):
    """Returns the page; raises where its structure is not sound."""
    page = Page(text)
    (html,) = page.all("html")
    assert html.get("lang") == "en"
    for tag in ("title", "main", "h1", "header", "footer"):
        assert len([e for e in page.all(tag) if not e.inside("svg")]) == 1, tag
    ids = [element.get("id") for element in page.all() if element.get("id")]
    assert len(ids) == len(set(ids)), sorted(one for one in ids if ids.count(one) > 1)
    for element in page.all():
        for name in ("aria-labelledby", "aria-describedby", "for"):
            for reference in (element.get(name) or "").split():
                assert reference in ids, (element.tag, name, reference)
        href = element.get("href", "")
        assert not href.startswith("#") or href[1:] in ids, href
        assert "style" not in element.attributes, element.tag  # the policy forbids it
        assert not [name for name in element.attributes if name.startswith("on")]
    _check_headings(page)
    _check_tables(page)
    _check_svgs(page)
    for field in page.all("input"):
        assert any(label.get("for") == field.get("id") for label in page.all("label"))
    for scroller in page.all():
        if (scroller.get("class") or "").split()[:1] in (["wide"], ["graph"]):
            assert (scroller.get("tabindex"), scroller.get("role")) == ("0", "region")
            assert scroller.get("aria-label") or scroller.get("aria-labelledby")
    landmarks = [
        (e.tag == "nav", e.get("aria-label") or e.get("aria-labelledby"))
        for e in page.all("section", "nav", "div", "pre")
        if e.tag in ("section", "nav") or e.get("role") == "region"
    ]
    assert len(landmarks) == len(set(landmarks)), landmarks
    assert not [e for e in page.all("link", "img", "iframe", "object", "embed") if True]
    (skip,) = (e for e in page.all("a") if e.get("class") == "skip")
    assert skip.get("href") == "#main"
    return page


def _check_headings(page):
    levels = [int(e.tag[1]) for e in page.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    for before, after in itertools.pairwise(levels):
        assert after <= before + 1, levels


def _check_tables(page):
    for table in page.all("table"):
        (caption,) = table.all("caption")
        assert caption.text
        heads = list(table.all("th"))
        assert heads
        assert all(head.get("scope") in ("col", "row") for head in heads)
        assert all(head.text for head in heads if head.get("scope") == "col")
        widths = {len([e for e in row.children if e.tag in ("td", "th")]) for row in table.all("tr")}
        assert len(widths) == 1, (caption.text, widths)
        assert table.parent.get("class", "").split()[0] == "wide"


def _check_svgs(page):
    for svg in page.all("svg"):
        if svg.get("aria-hidden") == "true":
            continue
        assert svg.get("role") == "img"
        assert svg.get("aria-label") or svg.get("aria-labelledby")


def dead_links(folder):
    """Returns the links in the pages of a folder that lead to no file: each as page and target."""
    return [
        (file.name, target)
        for file in sorted(folder.glob("*.html"))
        for element in Page(file.read_text()).all("a")
        if (target := element.get("href").partition("#")[0]) and not (folder / target).is_file()
    ]
