"""TFX pipelines of teams, each laid into a folder with its data: the same ones for every engine."""

import json
import re
import shutil
from pathlib import Path

from pipelines.examples.taxi import generate
from tests.docs.markdown import read

HERE = Path(__file__).parent
NAMES = ("taxi", "bills", "stock")
PRICES = {"apple": 2, "pear": 3}
ROWS = [("ann", "apple", 3), ("bob", "pear", 2), ("ann", "pear", 1), ("cid", "apple", 7)]
# ann: 3 x 2 + 1 x 3; bob: 2 x 3; cid: 7 x 2. Each row is there ten times.
BILLS = ["ann 90", "bob 60", "cid 140"]
STATUS = {"taxi": "pushed", "bills": "finished", "stock": "pushed"}
# What runs again in the second run, which compares with the blessed model of the first run.
AGAIN = {"taxi": {"Evaluator"}, "bills": set(), "stock": set()}


def lay(name, folder):
    """Writes `pipeline.py`, its modules and its data into a folder.

    `taxi` is the definition of docs/your-tfx-pipeline.md, whose file passes it to a LocalDagRunner.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if name == "taxi":
        page = read("docs/your-tfx-pipeline.md")
        for file, text in re.findall(r'```python title="(.*?)"\n(.*?)```', page, re.DOTALL):
            (folder / file).write_text(text)
        generate.write_csv(folder / "data" / "taxi.csv", rows=15_000, seed=1)
        return
    shutil.copy(HERE / f"{name}.py", folder / "pipeline.py")
    if name == "stock":
        rows = [f"{x / 99},{x / 33}" for x in range(300)]
        _write(folder / "numbers/numbers.csv", "x,y", rows)
    else:
        rows = [",".join(map(str, row)) for row in ROWS * 10]
        _write(folder / "rows/rows.csv", "customer,item,number", rows)
        set_prices(folder, PRICES)


def set_prices(folder, prices):
    (folder / "prices").mkdir(exist_ok=True)
    (folder / "prices" / "prices.json").write_text(json.dumps(prices))


def arguments(name, folder):
    """Returns the arguments of the pipeline's function, for a folder as the steps see it."""
    return {} if name == "taxi" else {"folder": str(folder)}


def options(name, folder):
    """Returns the options of `run` and `schedule create`, in the folder itself."""
    pairs = [("--arg", f"{key}={value}") for key, value in arguments(name, folder).items()]
    return ["--pipeline", "pipeline.py", *(word for pair in pairs for word in pair)]


def assert_unchanged(name, record):
    """A second run, of unchanged data and code."""
    assert record["status"] == "unchanged"
    ran = {component["name"] for component in record["components"] if component["status"] != "cached"}
    assert ran == AGAIN[name]


def assert_made(name, folder, root):
    """The pipeline's result is there."""
    if name == "bills":
        (file,) = (root / "artifacts" / "BillsGen").glob("*/bills/bills*")
        assert sorted(file.read_text().split("\n")) == ["", *BILLS]
    else:
        (_,) = (folder / {"taxi": "serving", "stock": "pushed"}[name]).glob("*/saved_model.pb")


def _write(file, header, rows):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([header, *rows, ""]))
