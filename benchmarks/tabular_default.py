"""Scores of `run --data X.csv --label Y` on data sets of different kinds, compared with scikit-learn's.

python -m benchmarks.tabular_default [--only NAME ...] [--model NAME] [--project FOLDER] [--work FOLDER]

Each data set is run like a user would: from a CSV, with `--set` only if the data require it (groups,
time order). HistGradientBoosting and a linear model then learn from the same training rows, those of
CsvExampleGen, and all are scored on the same evaluation rows by the same function: AUC, accuracy or RMSE.
`best` is the score of the best possible model, known for generated data. `ahead by` in the first table is
the lead of our run over the better one of the two, in percent of its score.

With `--work` the CSVs and roots stay, and are not run again.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
import tempfile
import time
from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from benchmarks import tables, tabular_peers, tabular_run  # noqa: E402
from benchmarks.tabular_sets import DataSet, MissingPackageError, shipped  # noqa: E402
from benchmarks.tabular_sets_generated import generated  # noqa: E402

COMPONENTS = (
    "CsvExampleGen",
    "StatisticsGen",
    "SchemaGen",
    "ExampleValidator",
    "Transform",
    "Trainer",
    "Evaluator",
    "ServingCheck",
    "Pusher",
    "rest",
)
TARGET = 0.01


@dataclasses.dataclass(frozen=True)
class Result:
    """The results of a data set.

    Attributes:
        data: The data set.
        num_rows: Number of rows of the CSV.
        num_columns: Number of columns of the CSV, without the label.
        run: Our run.
        num_eval: Number of evaluation rows.
        scores: Scores of `ours`, `HGB`, `linear` and `best`, as far as they exist.
        peer_secs: Training and prediction of both of scikit-learn's models.
    """

    data: DataSet
    num_rows: int
    num_columns: int
    run: tabular_run.Run
    num_eval: int
    scores: dict[str, float]
    peer_secs: float

    @property
    def ahead(self) -> float | None:
        """Our lead over the better one of the two, as a share of its score."""
        if "ours" not in self.scores:
            return None
        ours, peers = self.scores["ours"], [self.scores["HGB"], self.scores["linear"]]
        if self.data.problem == "regression":
            return 1 - ours / min(peers)
        return ours / max(peers) - 1


def compare(
    data: DataSet, work: pathlib.Path, project: pathlib.Path, settings: tuple[str, ...]
) -> Result:
    """Runs the pipeline and both models on a data set.

    Args:
        data: The data set.
        work: Folder for its CSV and root.
        project: Folder whose `pipelines` is run.
        settings: Settings of all runs, for `--set`.

    Raises:
        MissingPackageError: The package with the data set is not installed.
    """
    table = data.load()
    csv = work / "data" / f"{data.name}.csv"
    csv.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(csv, index=False)
    run = tabular_run.run(data, csv, work / "roots" / data.name, project, settings)
    serialized = tabular_run.serialized_split(run.root, "eval")
    scores: dict[str, float] = {}
    start = time.monotonic()
    if serialized:
        evaluated = tabular_run.read_rows(serialized)
        trained = tabular_run.read_rows(tabular_run.serialized_split(run.root, "train"))
        # If the split is not drawn at random, it contains rows without a label, too.
        evaluated = evaluated[evaluated[data.label].notna()]
        trained = trained[trained[data.label].notna()]
        labels = evaluated[data.label]
        start = time.monotonic()
        scores["HGB"] = tabular_peers.score(
            data, labels, tabular_peers.boosting(data, trained, evaluated)
        )
        scores["linear"] = tabular_peers.score(
            data, labels, tabular_peers.linear(data, trained, evaluated)
        )
    peer_secs = time.monotonic() - start
    if serialized:
        if data.best is not None:
            scores["best"] = tabular_peers.score(data, labels, data.best(evaluated))
        kept = [serialized[index] for index in evaluated.index]
        predictions = tabular_run.predict(data, run.root, kept)
        if predictions is not None:
            scores["ours"] = tabular_peers.score(data, labels, predictions)
    return Result(
        data,
        len(table),
        len(table.columns) - 1,
        run,
        len(evaluated) if serialized else 0,
        scores,
        peer_secs,
    )


def _line(result: Result) -> list[str]:
    data, scores = result.data, result.scores

    def shown(value: float | None) -> str:
        if value is None:
            return "-"
        return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"

    return [
        data.name,
        data.kind,
        str(result.num_rows),
        str(result.num_columns),
        str(result.num_eval),
        tabular_peers.METRIC_NAMES[data.problem],
        shown(scores.get("ours")),
        shown(result.run.recorded(data.problem)),
        *(shown(scores.get(name)) for name in ("HGB", "linear", "best")),
        "-" if result.ahead is None else f"{result.ahead:+.2%}",
        result.run.model,
    ]


def _report(results: list[Result]) -> str:
    header = ["data set", "kind", "rows", "columns", "n eval", "metric", "ours", "in record"]
    header += ["HGB", "linear", "best", "ahead by", "model"]
    parts = [tables.format_table(header, [_line(result) for result in results])]
    components = [
        [result.data.name]
        + [f"{result.run.component_secs.get(name, 0):.1f}" for name in COMPONENTS]
        + [f"{result.run.secs:.1f}", f"{result.peer_secs:.1f}"]
        for result in results
    ]
    names = ["seconds", *COMPONENTS, "whole", "scikit-learn"]
    parts.append(tables.format_table(names, components))
    parts.append("\n".join(f"{result.data.name}: {result.run.status}" for result in results))
    known = [result.ahead for result in results if result.ahead is not None]
    within, ahead = sum(x >= -TARGET for x in known), sum(x > 0 for x in known)
    parts.append(
        f"{len(known)} data sets: within {TARGET:.0%} of the better peer, or ahead of it, on {within}; "
        f"ahead on {ahead}"
    )
    return "\n\n".join(parts)


def main() -> None:
    """Compares, and prints the tables."""
    sets = {data.name: data for data in (*shipped(), *generated())}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=sets, help=f"of {', '.join(sets)}"
    )
    parser.add_argument("--model", help="trainer.model of each run")
    parser.add_argument(
        "--set", action="append", default=[], metavar="section.key=value", help="of each run"
    )
    parser.add_argument(
        "--project", type=pathlib.Path, default=REPOSITORY, help="folder of the pipelines to run"
    )
    parser.add_argument(
        "--work", type=pathlib.Path, help="folder to keep; default: a temporary one"
    )
    parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
    args = parser.parse_args()
    settings = tuple(args.set) + ((f'trainer.model="{args.model}"',) if args.model else ())
    with tempfile.TemporaryDirectory() as scratch:
        work = (args.work or pathlib.Path(scratch)).resolve()
        results = []
        for name in args.only or sets:
            print(f"{name} ...", file=sys.stderr, flush=True)
            try:
                result = compare(sets[name], work, args.project.resolve(), settings)
            except MissingPackageError as error:
                print(f"{name}: left out, {error}", file=sys.stderr)
                continue
            results.append(result)
            print("  ".join(_line(result)), file=sys.stderr, flush=True)
        print(_report(results))
        if args.json:
            args.json.write_text(json.dumps([_figures(result) for result in results], indent=1))


def _figures(result: Result) -> dict[str, Any]:
    return {
        "name": result.data.name,
        "scores": result.scores,
        "ahead": result.ahead,
        "status": result.run.status,
        "secs": result.run.component_secs,
    }


if __name__ == "__main__":
    main()
