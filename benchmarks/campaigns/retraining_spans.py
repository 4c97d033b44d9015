"""Sequences of retraining in one root each: outcomes for stable data, slow drift and broken data.

    python -m benchmarks.campaigns.retraining_spans [--spans 10] [--sequences stable drift broken]

Each span is a file of generated rows and a `run` command; the commands are forked off one process that
has done the imports. The expected outcomes are:

- `stable`: every span is drawn anew from one distribution and pushed; each fourth file is a copy of the
  span before, and nothing is pushed.
- `drift`: the distances grow by 30 % from span to span. There is a warning, and a push: each span is compared
  with the data of the served model.
- `broken`: some spans are in another unit, lack a column, or have an unknown label. They end before
  Transform, and the next good one is pushed.

The last column is the AUC of the span's model; a run that ends early has none.
"""

import argparse
import contextlib
import csv
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from benchmarks.tables import format_table
from tests.warm_command import WarmCommand

ROWS = 1_500
GROWTH = 1.3
_MAX_WORDS = 110

Run = Callable[..., "CompletedProcess[str]"]
Row = dict[str, object]


@dataclass(frozen=True)
class Span:
    """Outcome of a span."""

    number: int  # Number of the span, from 1
    data: str  # Description of its data
    outcome: str  # Status of the run
    trained: bool  # True if Transform ran, or was taken from the cache
    said: tuple[str, ...]  # Its anomalies, or the reason why nothing was pushed
    auc: float | None  # AUC of its model; None if there is none


def rows_of_span(seed: int, scale: float = 1.0) -> list[Row]:
    """Returns trips; passengers who go far for the time tip."""
    draw = random.Random(seed)
    rows: list[Row] = []
    for _ in range(ROWS):
        miles = draw.lognormvariate(1.5, 0.5)
        city = draw.choices(["north", "south", "west"], [5, 3, 2])[0]
        score = miles + (2.0 if city == "north" else 0.0) + draw.gauss(0, 1.5)
        rows.append(
            {
                "miles": round(miles * scale, 3),
                "passengers": draw.randint(1, 6),
                "city": city,
                "tipped": "yes" if score > 5.5 else "no",
            }
        )
    return rows


def write_rows(file: Path, rows: list[Row]) -> None:
    """Writes rows as a CSV, which appears only when it is complete."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.partial")
    with partial.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    partial.replace(file)


def _in_another_unit(rows: list[Row]) -> list[Row]:
    return [{**row, "miles": float(str(row["miles"])) * 1_609} for row in rows]


def _without_city(rows: list[Row]) -> list[Row]:
    return [{name: row[name] for name in row if name != "city"} for row in rows]


def _with_another_label(rows: list[Row]) -> list[Row]:
    return [{**row, "tipped": "perhaps"} if i % 20 == 0 else row for i, row in enumerate(rows)]


FAULTS = {"metres": _in_another_unit, "no city": _without_city, "another label": _with_another_label}


def spans_of(sequence: str, count: int) -> Iterator[tuple[str, list[Row]]]:
    """Yields a description of the data of each span, and the data."""
    faults = list(FAULTS)
    for number in range(1, count + 1):
        if sequence == "drift":
            yield (f"miles x {GROWTH ** (number - 1):.2f}", rows_of_span(number, GROWTH ** (number - 1)))
        elif sequence == "broken" and number % 3 == 2:
            fault = faults[(number // 3) % len(faults)]
            yield fault, FAULTS[fault](rows_of_span(number))
        elif sequence == "stable" and number % 4 == 0:
            yield "as before", rows_of_span(number - 1)
        else:
            yield "new rows", rows_of_span(number)


def run_sequence(sequence: str, count: int, folder: Path, run: Run) -> Iterator[Span]:
    """Yields the outcomes of the spans of a sequence."""
    for number, (data, rows) in enumerate(spans_of(sequence, count), 1):
        file = folder / f"span-{number}.csv"
        write_rows(file, rows)
        done = run(
            *("run", "--data", file, "--label", "tipped", "--root", folder / "root"),
            *("--set", "trainer.train_steps=400", "--set", "pusher.keep=2"),
        )
        line = json.loads(done.stdout.splitlines()[-1])
        record = json.loads((folder / "root" / "runs" / f"{line['run_id']}.json").read_text())
        anomalies = [
            note.removeprefix("anomaly: ") for note in record["notes"] if note.startswith("anomaly: ")
        ]
        said = anomalies or ([line["reason"]] if line.get("reason") else [])
        trained = any(part["name"] == "Transform" for part in record["components"])
        yield Span(number, data, line["status"], trained, tuple(said), line["metrics"].get("auc"))


def table_row(span: Span) -> tuple[str, ...]:
    """Returns the row of the table for a span."""
    said = span.said[0] if span.said else ""
    more = f" (+{len(span.said) - 1})" if len(span.said) > 1 else ""
    shown = said if len(said) <= _MAX_WORDS else said[: _MAX_WORDS - 3] + "..."
    return (
        str(span.number),
        span.data,
        span.outcome,
        "yes" if span.trained else "no",
        "" if span.auc is None else f"{span.auc:.4f}",
        shown + more,
    )


def main() -> None:
    """Runs the sequences and prints a table of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spans", type=int, default=10)
    names = ("stable", "drift", "broken")
    parser.add_argument("--sequences", nargs="+", choices=names, default=names)
    arguments = parser.parse_args()
    with contextlib.closing(WarmCommand()) as command:

        def run(*words: object) -> "CompletedProcess[str]":
            with contextlib.redirect_stdout(None):  # it prints the output of a failed test
                return command(*words)

        for sequence in arguments.sequences:
            with tempfile.TemporaryDirectory() as folder:
                rows = []
                for span in run_sequence(sequence, arguments.spans, Path(folder).resolve(), run):
                    rows.append(table_row(span))
                    print(f"{sequence} {' | '.join(rows[-1])}", file=sys.stderr, flush=True)
            header = ("span", "data", "outcome", "trained", "AUC", "said")
            print(f"\n{sequence}\n{format_table(header, rows)}", flush=True)


if __name__ == "__main__":
    main()
