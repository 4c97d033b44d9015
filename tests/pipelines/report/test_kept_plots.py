import gzip
import subprocess
import sys

import pytest

from pipelines.report import plots
from pipelines.report.files import report_file
from pipelines.report.plots import KeptPlots
from pipelines.root import Root
from tests.pushed_versions import add_model

from .conftest import DETAILS, FORMER, RECORD  # noqa: TID252


def plot(name="p", title="t", points=((0.0, 0.25), (1.0, 0.5)), drawn=None):
    made = plots.scatter(plots.PlotText(name, title, "d"), list(points), "x", "y")
    if drawn is None:
        return made

    def draw():
        drawn.append(made.content)
        return f"<svg>{len(drawn)}</svg>"

    return plots.Plot(made.title, made.description, made.content, draw)


def test_a_plot_is_drawn_once(tmp_path):
    file = tmp_path / "run" / "plots.json.gz"
    drawn = []
    for _ in range(2):
        kept = KeptPlots(file)
        assert kept.to_svg(plot(drawn=drawn)) == kept.to_svg(plot(drawn=drawn)) == "<svg>1</svg>"
        kept.write()
    assert len(drawn) == 1
    assert [item.name for item in file.parent.iterdir()] == ["plots.json.gz"]


@pytest.mark.parametrize("changes", [{"name": "q"}, {"title": "u"}, {"points": ((0.0, 0.25), (1.0, 0.75))}])
def test_another_plot_is_drawn(tmp_path, changes):
    drawn = []
    kept = KeptPlots(tmp_path / "plots")
    kept.to_svg(plot(drawn=drawn))
    kept.write()
    again = KeptPlots(tmp_path / "plots")
    assert again.to_svg(plot(drawn=drawn, **changes)) == "<svg>2</svg>"
    again.write()
    # A plot that the page does not show any more is not kept.
    assert KeptPlots(tmp_path / "plots").to_svg(plot(drawn=drawn)) == "<svg>3</svg>"


def test_other_code_and_damage_draw_again(tmp_path, monkeypatch, caplog):
    drawn = []
    kept = KeptPlots(tmp_path / "plots")
    kept.to_svg(plot(drawn=drawn))
    kept.write()
    with monkeypatch.context() as patch:
        patch.setattr(plots, "_code_hash", lambda: "other code")
        KeptPlots(tmp_path / "plots").to_svg(plot(drawn=drawn))
    assert len(drawn) == 2
    for damage in (b"\x1f\x8bhalf a file", gzip.compress(b'{"key": 7}')):
        (tmp_path / "plots").write_bytes(damage)
        KeptPlots(tmp_path / "plots").to_svg(plot(drawn=drawn))
    assert len(drawn) == 4
    assert "plots are drawn again" in caplog.text


@pytest.mark.more
def test_a_report_that_is_made_again_needs_no_matplotlib(tmp_path):
    for record in (FORMER, RECORD):
        Root(tmp_path).records.write(record)
    for section, values in DETAILS.items():
        Root(tmp_path).details(RECORD.run_id).write(section, values)
    first = report_file(Root(tmp_path), Root(tmp_path).records.read_all(), RECORD.run_id)
    before = first.read_text().count("<svg")
    add_model(tmp_path / "serving" / str(RECORD.version))  # such as by a rollback
    script = f"""
import sys
from pipelines.cli.app import app
app(["report", "--root", {str(tmp_path)!r}], standalone_mode=False)
print([name for name in ("matplotlib", "tensorflow") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == [str(first), "[]"]
    text = first.read_text()
    assert "(serving when this page was made)" in text
    assert text.count("<svg") == before > 5
