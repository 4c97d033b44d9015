"""Scores of `run --data X.csv --label Y` on many tables, compared with models of other packages.

python -m benchmarks.tabular_default [--seeds 1 2 3] [--only NAME ...] [--work FOLDER] ...

Each table is run like a user would: `--set` is used only where the data require it (groups, time order, a
label of whole numbers). A third of its rows, drawn by the seed, evaluates; the same seed is `trainer.seed`
and that of the peers, which have the defaults of their packages. All learn from the same rows, those of
CsvExampleGen, and are scored on the same rows by the same function: AUC, accuracy or RMSE, and log loss.
`best` is that of the best possible model, known for generated data.

The folder `--work` keeps results: an interrupted comparison continues, and other seeds or peers are
added. `benchmarks/tabular_sets.py` says how to install the tables and CatBoost.
"""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

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
EVAL_SHARE = 1 / 3
OURS = "ours"


class Comparison:
    """The figures of one table and seed, kept in a JSON file."""

    def __init__(self, data: DataSet, seed: int, work: pathlib.Path):
        self.data, self.seed = data, seed
        self._folder = work / f"{data.name}-{seed}"
        self._file = work / "figures" / f"{data.name}-{seed}.json"
        self.figures: dict[str, Any] = {"scores": {}, "secs": {}}
        if self._file.is_file():
            self.figures = json.loads(self._file.read_text())

    def complete(self, peers: Sequence[str], project: pathlib.Path, settings: tuple[str, ...]) -> None:
        """Runs the pipeline and the peers that have no figures yet."""
        scores, secs = self.figures["scores"], self.figures["secs"]
        left = [name for name in peers if name not in scores]
        if not left and "status" in self.figures:
            return
        if not self._rows_file("train").is_file():  # what the run writes last
            root = self._run(project, settings)
            for split in ("eval", "train"):
                self._rows(root, split).to_pickle(self._rows_file(split))
            shutil.rmtree(self._folder)
        trained, evaluated = (pd.read_pickle(self._rows_file(split)) for split in ("train", "eval"))
        for name in left:
            scores[name], secs[name] = tabular_peers.compare(
                self.data, name, trained, evaluated, self.seed, secs[OURS]
            )
            self._write()

    def _rows_file(self, split: str) -> pathlib.Path:
        return self._file.parent / f"{self.data.name}-{self.seed}-{split}.pickle"

    def _run(self, project: pathlib.Path, settings: tuple[str, ...]) -> pathlib.Path:
        """Runs the pipeline, and returns its root."""
        data, table = self.data, self.data.load()
        shutil.rmtree(self._folder, ignore_errors=True)
        path = self._folder / "data"
        path.mkdir(parents=True, exist_ok=True)
        seeded = [f"trainer.seed={self.seed}"]
        if any(setting.startswith("split.") for setting in data.settings):
            path /= f"{data.name}.csv"
            table.to_csv(path, index=False)
        else:
            order = np.random.default_rng(self.seed).permutation(len(table))
            parts = np.split(order, [round(EVAL_SHARE * len(table))])
            for name, rows in zip(("eval", "train"), parts, strict=True):
                table.iloc[rows].to_csv(path / f"{name}.csv", index=False)
                seeded.append(f'split.{name}="{name}.csv"')
            seeded.append('split.by="files"')
        run = tabular_run.run(data, path, self._folder / "root", project, (*seeded, *settings))
        self.figures |= {
            "rows": len(table),
            "columns": len(table.columns) - 1,
            "model": run.model,
            "status": run.status,
            "components": run.component_secs,
            "covered": run.record.get("metrics", {}).get("interval_coverage"),
        }
        self.figures["secs"][OURS] = run.secs
        evaluated = self._rows(run.root, "eval")
        if self.data.best is not None:
            best = self.data.best(evaluated)
            if data.problem != "regression":
                best = np.stack([1 - best, best], axis=1)
            self._score("best", evaluated, best, ["0", "1"])
        serialized = tabular_run.serialized_split(run.root, "eval")
        predicted = tabular_run.predict(data, run.root, [serialized[index] for index in evaluated.index])
        if predicted is not None:
            self._score(OURS, evaluated, *predicted)
        self._write()
        return run.root

    def _rows(self, root: pathlib.Path, split: str) -> Any:
        """Returns the rows of a split that have a label; labels of classes as text."""
        rows = tabular_run.read_rows(tabular_run.serialized_split(root, split))
        label = self.data.label
        rows = rows[rows[label].notna()].copy()
        if self.data.problem != "regression":
            rows[label] = rows[label].astype(str)
        return rows

    def _score(self, name: str, rows: Any, predicted: Any, classes: list[str]) -> None:
        labels = rows[self.data.label]
        self.figures["scores"][name] = tabular_peers.scores(self.data, labels, predicted, classes)

    def _write(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self.figures, indent=1))


def report(done: list[Comparison], peers: Sequence[str]) -> str:
    """Returns tables of scores, losses and seconds, with ranks: means over the seeds of each data set."""
    by_table: dict[str, list[Comparison]] = {}
    for comparison in done:
        by_table.setdefault(comparison.data.name, []).append(comparison)
    parts = []
    for title, at, names in (("score", 0, tabular_peers.SCORE_NAMES), ("loss", 1, tabular_peers.LOSS_NAMES)):
        contestants = (OURS, *peers)
        lines, ranks, leads = [], [], []
        for group in by_table.values():
            data, first = group[0].data, group[0].figures
            is_loss = names[data.problem] not in ("AUC", "accuracy")
            means = [_mean(group, name, at) for name in contestants]
            ranks.append(rank(means if is_loss else [-mean for mean in means]))
            theirs = min(means[1:]) if is_loss else max(means[1:])
            leads.append(1 - means[0] / theirs if is_loss else means[0] / theirs - 1)
            best = [_shown(_mean(group, "best", at))] if "best" in first["scores"] else ["-"]
            chosen = "/".join(dict.fromkeys(comparison.figures["model"] for comparison in group))
            sizes = [str(first["rows"]), str(first["columns"]), str(len(group))]
            shown = [names[data.problem], *map(_shown, means), *best]
            lines.append([data.name, *sizes, *shown, f"{ranks[-1][0]:g}", f"{leads[-1]:+.2%}", chosen])
        header = ["data set", "rows", "columns", "seeds", title, *contestants, "best"]
        parts.append(tables.format_table([*header, "our rank", "ahead by", "model"], lines))
        mean_ranks = np.mean(ranks, axis=0)
        listed = ", ".join(f"{name} {mean:.2f}" for name, mean in zip(contestants, mean_ranks, strict=True))
        within, behind = sum(lead >= -0.01 for lead in leads), sum(lead < -0.05 for lead in leads)
        parts.append(
            f"Mean rank by {title} over {len(lines)} tables: {listed}. "
            f"Ours is within 1 % of the best peer, or ahead of it, on {within}, "
            f"and trails it by more than 5 % on {behind}."
        )
    lines = [
        [name, *(f"{_mean_secs(group, who):.1f}" for who in (OURS, *peers))]
        + [
            f"{np.mean([comparison.figures['components'].get(part, 0) for comparison in group]):.1f}"
            for part in COMPONENTS
        ]
        for name, group in by_table.items()
    ]
    parts.append(tables.format_table(["seconds", OURS, *peers, *COMPONENTS], lines))
    covered = {
        f"{comparison.data.name}, seed {comparison.seed}": comparison.figures["covered"]
        for comparison in done
        if comparison.figures.get("covered") is not None
    }
    if covered:  # `--set trainer.interval=0.9`
        parts.append(
            tables.format_table(
                ["table", "covered by the intervals"],
                [[name, f"{share:.3f}"] for name, share in covered.items()],
            )
        )
    failed = [comparison for comparison in done if comparison.figures["status"] != "pushed"]
    parts += [
        f"{comparison.data.name}, seed {comparison.seed}: {comparison.figures['status']}"
        for comparison in failed
    ]
    return "\n\n".join(parts)


def rank(values: Sequence[float]) -> list[float]:
    """Returns the rank of each value, the lowest first, 1; equal values share their mean rank."""
    return [
        1 + sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2
        for value in values
    ]


def _mean(group: list[Comparison], name: str, at: int) -> float:
    scores = (comparison.figures["scores"].get(name) for comparison in group)
    return float(np.mean([np.inf if pair is None else pair[at] for pair in scores]))


def _mean_secs(group: list[Comparison], name: str) -> float:
    return float(np.mean([comparison.figures["secs"].get(name, np.nan) for comparison in group]))


def _shown(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"


def main() -> None:
    """Compares, and prints the tables."""
    reported = [data.name for data in shipped()]
    sets = {data.name: data for data in (*shipped(), *generated())}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=sets,
        default=reported,
        help=f"of {', '.join(sets)}; default: those of packages",
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    peers = [*tabular_peers.PEERS, *tabular_peers.SEARCHES]
    parser.add_argument("--peers", nargs="*", choices=peers, default=[*tabular_peers.PEERS])
    parser.add_argument("--model", help="trainer.model of each run")
    parser.add_argument("--set", action="append", default=[], metavar="section.key=value", help="of each run")
    parser.add_argument(
        "--project", type=pathlib.Path, default=REPOSITORY, help="folder of the pipelines to run"
    )
    parser.add_argument("--work", type=pathlib.Path, help="folder for the figures; default: a temporary one")
    args = parser.parse_args()
    settings = tuple(args.set) + ((f'trainer.model="{args.model}"',) if args.model else ())
    with tempfile.TemporaryDirectory() as scratch:
        work = (args.work or pathlib.Path(scratch)).resolve()
        done = []
        for seed in args.seeds:
            for name in args.only:
                comparison = Comparison(sets[name], seed, work)
                try:
                    comparison.complete(args.peers, args.project.resolve(), settings)
                except MissingPackageError as error:
                    sys.exit(f"{name}: {error}")
                done.append(comparison)
                print(name, seed, comparison.figures["scores"], file=sys.stderr, flush=True)
        print(report(done, args.peers))


if __name__ == "__main__":
    main()
