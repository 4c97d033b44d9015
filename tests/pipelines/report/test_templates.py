import base64
import hashlib
import re

from pipelines.report.page import FOLDER, breakable, render

EMPTY = {"name": "a", "root": "<r>", "state": "s", "serving": None, "facts": [], "plot": None,
         "rows": [], "has_spans": False, "metric": ""}  # fmt: skip


def test_the_page_allows_its_own_style_and_script_alone():
    page = render("index.html.j2", **EMPTY)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    policy = policy.replace("&#39;", "'")
    for kind, element in (("style", "style"), ("script", "script")):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "&lt;r&gt;" in page


def test_names_are_broken_only_behind_their_marks_and_templates_are_in_the_package():
    assert breakable("sparse_categorical/<b>:x") == "sparse_<wbr>categorical/&lt;b&gt;:x"
    assert breakable("-1.5 km, __init__") == "-1.<wbr>5 km, __init__"
    names = {file.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("*") if file.is_file()}
    assert {"style.css", "filter.js", "report.html.j2", "sections/verdict.html.j2"} <= names
