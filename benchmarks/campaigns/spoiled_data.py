"""Runs real commands on spoiled data, or data without a signal, and checks the messages.

python -m benchmarks.campaigns.spoiled_data [--only NAME ...] [--project FOLDER] [--work FOLDER]

Each scenario generates its data, runs a user's commands one after the other, and lists the expected
results: exit code, status, words in the output, components that must not run. The relevant lines are
printed, with `ok` or `DIFFERS`; the exit code is 1 if anything differs.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from benchmarks import tabular_run  # noqa: E402
from benchmarks.campaigns import spoiled_tables  # noqa: E402
from benchmarks.tabular_sets import shipped  # noqa: E402
from benchmarks.tabular_sets_generated import generated  # noqa: E402

TIMEOUT_SECS = 900
_SHOWN = re.compile(
    r"^\s*[!✗✓=] |evaluation at step|best checkpoint|^\s+\S+ +(category|number|date|text|id|boolean)  "
)


@dataclasses.dataclass(frozen=True)
class Answer:
    """Result of a command.

    Attributes:
        exit_code: Exit code of the process.
        line: JSON object in the last line of stdout; empty if there is none.
        shown: stdout and stderr.
        components: Names of the components that ran, for a run.
    """

    exit_code: int
    line: dict[str, Any]
    shown: str
    components: tuple[str, ...]


class Session:
    """The commands of a scenario, in its own folder, and the results that differed.

    Args:
        name: Name of the scenario.
        folder: Folder for data and roots.
        project: Folder whose `pipelines` is run.
    """

    def __init__(self, name: str, folder: pathlib.Path, project: pathlib.Path):
        self.folder = folder
        self.num_different = 0
        self._project = project
        print(f"\n== {name}", flush=True)

    def write(self, name: str, table: pd.DataFrame) -> pathlib.Path:
        """Writes a CSV and returns its path."""
        file = self.folder / name
        table.to_csv(file, index=False)
        return file

    def give(self, *words: object) -> Answer:
        """Runs `python -m pipelines WORDS` and returns the answer."""
        command = [str(word) for word in words]
        print(
            f"$ python -m pipelines {' '.join(command).replace(f'{self.folder}/', '')}", flush=True
        )
        done = subprocess.run(
            [sys.executable, "-m", "pipelines", *command],
            cwd=self._project,
            env={**os.environ, "PYTHONPATH": str(self._project), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECS,
            check=False,
        )
        last = (done.stdout.splitlines() or [""])[-1]
        line = json.loads(last) if last.startswith("{") else {}
        record = pathlib.Path(str(line.get("report"))).with_suffix(".json")
        parts = json.loads(record.read_text())["components"] if record.is_file() else ()
        return Answer(
            done.returncode, line, done.stdout + done.stderr, tuple(part["name"] for part in parts)
        )

    def run(self, file: pathlib.Path, label: str, root: str, *options: str) -> Answer:
        """Runs the pipeline on a CSV."""
        return self.give(
            "run", "--data", file, "--label", label, "--root", self.folder / root, *options
        )

    def show(self, answer: Answer, pattern: str | re.Pattern[str] = _SHOWN) -> None:
        """Prints the relevant lines of an answer, with status and exit code."""
        for line in answer.shown.splitlines():
            if re.search(pattern, line) and not re.search(r"✓ [A-Z]|^\{", line):
                print(f"    {line.strip().replace(f'{self.folder}/', '')[:300]}")
        if answer.line:
            status = {
                key: answer.line.get(key) for key in ("status", "version", "baseline_version")
            }
            print(f"    exit code {answer.exit_code}, {status}")
        else:
            print(f"    exit code {answer.exit_code}")

    def expect(self, condition: str, holds: bool, seen: object = "") -> None:
        """Prints if an expectation holds."""
        self.num_different += not holds
        print(
            f"  {'ok     ' if holds else 'DIFFERS'} {condition}{f' ({seen})' if seen != '' else ''}",
            flush=True,
        )


def shuffled(session: Session) -> None:
    """The same root, a new file name, and shuffled labels in 60 % of the rows."""
    for num_rows in (3_000, 12_000):
        root = f"root_{num_rows}"
        honest = session.write(f"january_{num_rows}.csv", spoiled_tables.trips(1, num_rows))
        first = session.run(honest, "tipped", root)
        session.expect("honest data are pushed", first.line.get("status") == "pushed")
        new = spoiled_tables.with_shuffled_labels(spoiled_tables.trips(2, num_rows), "tipped", 0.6)
        answer = session.run(session.write(f"february_{num_rows}.csv", new), "tipped", root)
        session.show(answer, "^ *[!✗✓=] ")
        session.expect(
            f"{num_rows} rows: 60 % shuffled labels are not pushed",
            answer.exit_code == 3 and answer.line["status"] == "not_blessed",
        )
        session.expect(
            "the first version serves", answer.line["serving_version"] == first.line["version"]
        )


def broken_columns(session: Session) -> None:
    """New data with a column emptied, multiplied by 60, with a renamed category, or dropped."""
    session.run(session.write("january.csv", spoiled_tables.trips(1)), "tipped", "root")
    new = spoiled_tables.trips(3)
    for name, table in {
        "emptied": new.assign(minutes=""),
        "times_60": new.assign(minutes=new["minutes"] * 60),
        "renamed": new.assign(city=new["city"].replace("Chicago", "CHI")),
        "dropped": new.drop(columns="minutes"),
    }.items():
        answer = session.run(session.write(f"{name}.csv", table), "tipped", "root")
        session.show(answer, "^✗|anomal|split, column")
        session.expect(
            f"{name}: exit code 2 before Transform",
            answer.exit_code == 2 and "Transform" not in answer.components,
            ", ".join(answer.components),
        )


def best_checkpoint(session: Session) -> None:
    """Titanic and generated reviews: the best checkpoint, and a loss below that of a constant."""
    sets = {data.name: data for data in (*shipped(), *generated())}
    for name in ("titanic", "text"):
        data = sets[name]
        answer = session.run(session.write(f"{name}.csv", data.load()), data.label, name)
        session.show(answer)
        log = max((session.folder / name / "logs").glob("*"), key=os.path.getmtime).read_text()
        losses: dict[int, float] = {}
        evaluations = re.findall(
            r"Saving dict for global step (\d+):.*?[ ,]loss = ([-\d.e+]+)", log
        )
        for step, loss in evaluations:  # of several models, the best one at each step
            losses[int(step)] = min(float(loss), losses.get(int(step), float("inf")))
        found = re.findall(r"best checkpoint is .*model\.ckpt-(\d+)", log + answer.shown)
        best = min(losses, key=lambda step: losses[step]) if losses else None
        session.expect(
            "the checkpoint with the lowest loss of held-out rows is exported",
            bool(found) and best is not None and int(found[-1]) == best,
            f"losses by step {losses}, exported {found[-1:]}",
        )
        checks = [check for check in answer.line["checks"] if check["against"] == "trivial"]
        session.expect(
            "better than a constant, in its loss, too",
            len(checks) == 2 and all(check["passed"] for check in checks),
        )
        scores = []
        for split in ("train", "eval"):
            rows = tabular_run.serialized_split(session.folder / name, split)
            labels = tabular_run.read_rows(rows)[data.label]
            predicted, _ = tabular_run.predict(data, session.folder / name, rows)
            probabilities = np.clip(predicted[:, 1], 1e-7, 1 - 1e-7)
            truth = (labels == sorted(labels.unique())[1]).to_numpy()
            scores.append(-np.mean(np.log(np.where(truth, probabilities, 1 - probabilities))))
        prior = truth.mean()
        constant = -prior * np.log(prior) - (1 - prior) * np.log(1 - prior)
        session.expect(
            "not overtrained: the loss on new rows is nearer to that of training than to a constant's",
            scores[1] - scores[0] < constant - scores[1],
            f"training {scores[0]:.4f}, evaluation {scores[1]:.4f}, constant {constant:.4f}",
        )


def chance(session: Session) -> None:
    """Text for which the best model has an AUC of .53."""
    table, best_auc = spoiled_tables.hopeless_reviews()
    answer = session.run(session.write("reviews.csv", table), "negative", "root")
    session.show(answer)
    session.expect(
        f"not pushed (best possible AUC {best_auc:.3f})",
        answer.exit_code == 3,
        f"AUC {answer.line['metrics'].get('auc')}",
    )


def duplicates(session: Session) -> None:
    """500 different rows, each 20 times, like those of mammograms: copies in both splits."""
    (data,) = (data for data in generated() if data.name == "duplicates")
    table = data.load()
    table["positive"] = table.groupby(list(table.columns[:-1]))["positive"].transform("max")
    answer = session.run(session.write("scans.csv", table), data.label, "root")
    session.show(answer)
    rows = {
        split: tabular_run.serialized_split(session.folder / "root", split)
        for split in ("train", "eval")
    }
    counts = pd.DataFrame({split: pd.Series(part).value_counts() for split, part in rows.items()})
    both = int((counts.notna().all(axis=1)).sum())
    share = len(rows["eval"]) / len(table)
    session.expect(
        "identical rows do not all fall into one split",
        both > 0.95 * len(counts) and abs(share - 1 / 3) < 0.03,
        f"{both} of {len(counts)} different rows are in both splits; {share:.1%} of all evaluate",
    )


def messy(session: Session) -> None:
    """Money, decimal commas in quotes, times, text, ZIP codes; and a column that is the label."""
    table = spoiled_tables.orders()
    file = session.write("orders.csv", table)
    answer = session.give("plan", "--data", file, "--label", "returned")
    session.show(answer, r"^ *(column|price|discount|ordered|review|zip|refund|returned) ")
    for column, kind in {
        "price": "number", "discount": "number", "ordered": "date", "review": "text", "zip": "category",
    }.items():  # fmt: skip
        found = re.search(rf"^ *{column} +(\w+)", answer.shown, re.MULTILINE)
        session.expect(f"{column} is a {kind}", bool(found) and found.group(1) == kind)
    answer = session.run(file, "returned", "root")
    session.show(answer, "^✗|refund|label")
    session.expect(
        "the label in other words ends the run before anything is trained",
        answer.exit_code == 2 and "refund" in str(answer.line.get("reason")),
    )
    answer = session.run(file, "returned", "root", "--set", 'columns.refund="ignore"')
    session.show(answer)
    session.expect("without that column it is pushed", answer.line["status"] == "pushed")


def rollback(session: Session) -> None:
    """After `rollback`: the baseline, unchanged data, and the output of `runs`."""
    root = session.folder / "root"
    first = session.run(session.write("january.csv", spoiled_tables.trips(1)), "tipped", "root")
    march = session.write("march.csv", spoiled_tables.trips(3))
    second = session.run(march, "tipped", "root")
    session.show(second, "^✓ pushed|^✗")
    session.expect("new data are pushed", second.line["status"] == "pushed")
    session.show(session.give("rollback", "--root", root), r"\d{6,}")
    again = session.run(march, "tipped", "root")
    session.show(again, "unchanged|^✗")
    session.expect(
        "unchanged data push nothing", (again.exit_code, again.line["status"]) == (0, "unchanged")
    )
    third = session.run(session.write("april.csv", spoiled_tables.trips(4)), "tipped", "root")
    session.show(third, "^✓ pushed|^✗")
    session.expect(
        "the baseline is what serves",
        third.line["baseline_version"] == first.line["version"],
        f"{third.line['baseline_version']}; withdrawn is {second.line['version']}",
    )
    runs = session.give("runs", "--root", root)
    print("\n".join(f"    {line}" for line in runs.shown.splitlines() if "20" in line))
    session.expect("`runs` shows the withdrawn version", "withdrawn" in runs.shown)


def relabelled(session: Session) -> None:
    """The same columns with other labels."""
    session.run(session.write("january.csv", spoiled_tables.trips(1)), "tipped", "root")
    new = spoiled_tables.trips(3)
    for name, table in {
        "other_words": new.assign(tipped=new["tipped"].map({"no": "none", "yes": "some"})),
        "other_shares": spoiled_tables.with_flipped_labels(new, "tipped", "no", "yes", 0.7),
    }.items():
        answer = session.run(session.write(f"{name}.csv", table), "tipped", "root")
        session.show(answer, "^✗|anomal|split, column")
        session.expect(
            f"{name}: exit code 2 before training",
            answer.exit_code == 2 and "Trainer" not in answer.components,
            ", ".join(answer.components),
        )
    # Inverted labels have the same values and shares: only a model can detect them.
    table = new.assign(tipped=new["tipped"].map({"no": "yes", "yes": "no"}))
    answer = session.run(session.write("inverted.csv", table), "tipped", "root")
    session.show(answer)
    session.expect("inverted: not pushed", answer.exit_code in (2, 3), answer.line["status"])


SCENARIOS: dict[str, Callable[[Session], None]] = {
    "shuffled": shuffled,
    "broken_columns": broken_columns,
    "best_checkpoint": best_checkpoint,
    "chance": chance,
    "duplicates": duplicates,
    "messy": messy,
    "rollback": rollback,
    "relabelled": relabelled,
}


def main() -> int:
    """Runs the scenarios, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument(
        "--project", type=pathlib.Path, default=REPOSITORY, help="folder of the pipelines to run"
    )
    parser.add_argument("--work", type=pathlib.Path, help="new folder to keep")
    args = parser.parse_args()
    different = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.only:
            folder = (args.work or pathlib.Path(scratch)).resolve() / name
            folder.mkdir(parents=True)
            scenario = SCENARIOS[name]
            session = Session(f"{name}: {scenario.__doc__}", folder, args.project.resolve())
            scenario(session)
            different[name] = session.num_different
    print()
    print("\n".join(f"{name}: {count or 'none'} differ" for name, count in different.items()))
    return int(any(different.values()))


if __name__ == "__main__":
    sys.exit(main())
