"""Measures which bad new data the gate holds or stops, and how many honest models it holds.

    python -m benchmarks.campaigns.gate_doubts [--seeds 20] [--weeks 13] [--only WORD]

A model is trained on a month of clean rows and serves. Then a month of bad rows comes: a model is trained
and judged on them, with default settings. Shown are the verdicts, and the quality on clean rows of the model
that serves afterwards, beside that of the first one. Honest models are those of weeks whose numbers,
categories and labels drift, each compared with the one of the week before.

The models are scikit-learn's: a whole pipeline run takes half a minute, and the gate sees nothing of a model
but its predictions. The checks of the ExampleValidator, which stop some of these data earlier, are left out.
"""

import argparse
import pathlib
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn import ensemble, metrics

from benchmarks.tables import format_table
from components.evaluator.gate.default_checks import DefaultChecks, ValueThen, run_checks
from components.evaluator.gate.labelled_predictions import (
    LabelledPredictions,
    LabelTally,
    ProblemType,
)
from components.evaluator.gate.slice_columns import Codes
from pipelines.config.load import load_config
from pipelines.data.leaks import find_leaks
from pipelines.data.profile import profile_csv
from pipelines.tabular.infer import infer_kinds

ROWS = 3_000
NUMBERS = ("miles", "minutes", "hour", "party")
CATEGORIES = ("city", "company")
LABEL = "label"
CITIES = np.array(["Austin", "Boston", "Chicago", "Denver"])
COMPANIES = np.array(["blue", "green", "red"])

Table = pd.DataFrame


def month(problem_type: ProblemType, seed: int, week: float = 0.0, rows: int = ROWS) -> Table:
    """Returns rows of a month; with the weeks, distances grow and the shares of cities and labels move."""
    draw = np.random.default_rng(seed)
    shares = np.array([0.2, 0.25 + 0.004 * week, 0.35 - 0.004 * week, 0.2])
    table = pd.DataFrame(
        {
            "miles": draw.gamma(2, 2, rows) * 1.01**week,
            "minutes": draw.gamma(3, 4, rows),
            "hour": draw.integers(0, 24, rows).astype(float),
            "party": draw.integers(1, 6, rows).astype(float),
            "city": CITIES[draw.choice(4, rows, p=shares)],
            "company": COMPANIES[draw.choice(3, rows)],
        }
    )
    score = (
        0.25 * (table["minutes"] - 12)
        + 0.4 * (table["miles"] / 1.01**week - 4)
        + np.select([table["city"] == city for city in CITIES], [-1.0, 0.5, 1.2, -0.4])
        - 0.3 * (table["party"] - 3)
        + 0.02 * week
    ).to_numpy()
    if problem_type == "binary":
        table[LABEL] = (draw.logistic(size=rows) < score).astype(float)
    elif problem_type == "multi-class":
        table[LABEL] = np.digitize(score + draw.logistic(size=rows), [-1.2, 1.2]).astype(float)
    else:
        table[LABEL] = np.exp(0.3 * (score + draw.normal(size=rows))) * 10 * 1.002**week
    return table


Spoil = Callable[[Table, np.random.Generator], Table]


def _shuffled(share: float) -> Spoil:
    def spoil(table: Table, draw: np.random.Generator) -> Table:
        labels = table[LABEL].to_numpy().copy()
        rows = np.flatnonzero(draw.random(len(labels)) < share)
        labels[rows] = draw.permutation(labels[rows])
        return table.assign(**{LABEL: labels})

    return spoil


def _inverted(where: Callable[[Table], Any], share: float = 1.0) -> Spoil:
    """Turns the label round: yes and no, the first class and the last, large and small numbers."""

    def spoil(table: Table, draw: np.random.Generator) -> Table:
        labels = table[LABEL]
        if labels.nunique() <= 3:
            other = labels.max() - labels
        else:
            ranks = labels.rank(method="first").astype(int).to_numpy()
            other = pd.Series(np.sort(labels.to_numpy())[len(ranks) - ranks], labels.index)
        rows = where(table) & (draw.random(len(table)) < share)
        return table.assign(**{LABEL: labels.mask(rows, other)})

    return spoil


def _other_rule(table: Table, draw: np.random.Generator) -> Table:
    order = np.argsort(
        table["hour"] + 10 * (table["company"] == "red") + draw.normal(size=len(table))
    )
    labels = np.empty(len(table))
    labels[order] = np.sort(table[LABEL].to_numpy())
    return table.assign(**{LABEL: labels})


def _following(table: Table, draw: np.random.Generator) -> Table:
    order = np.argsort(table[LABEL] + 1e-6 * draw.random(len(table)))
    hours = np.empty(len(table))
    hours[order] = np.sort(table["hour"].to_numpy())
    return table.assign(hour=hours)


def _following_category(table: Table, draw: np.random.Generator) -> Table:
    names = np.array(["blue", "green", "red"])
    rank = pd.qcut(table[LABEL].rank(method="first"), 3, labels=False).to_numpy()
    classes = table[LABEL].to_numpy() if table[LABEL].nunique() <= 3 else rank
    return table.assign(company=names[classes.astype(int)])


def _one_city_without(table: Table, draw: np.random.Generator) -> Table:
    return table.assign(
        **{LABEL: table[LABEL].mask(table["city"] == "Chicago", table[LABEL].min())}
    )


def _mirrored(table: Table, draw: np.random.Generator) -> Table:
    rows = table["city"].isin(["Boston", "Denver"])
    return table.assign(minutes=table["minutes"].mask(rows, 24 - table["minutes"]))


def _swapped(table: Table, draw: np.random.Generator) -> Table:
    return table.assign(city=table["city"].replace({"Austin": "Chicago", "Chicago": "Austin"}))


def _times_100(table: Table, draw: np.random.Generator) -> Table:
    rows = draw.random(len(table)) < 0.5
    return table.assign(minutes=table["minutes"].mask(rows, 100 * table["minutes"]))


def _priors(table: Table, draw: np.random.Generator) -> Table:
    high = table[LABEL] > table[LABEL].median() if table[LABEL].nunique() > 3 else table[LABEL] > 0
    keep = ~high | (draw.random(len(table)) < 0.3)
    return table[keep].reset_index(drop=True)


def _late(table: Table, draw: np.random.Generator) -> Table:
    """The label of the last third of the rows is not known yet, and reads as its least value."""
    rows = np.arange(len(table)) % 3 == 0
    return table.assign(**{LABEL: table[LABEL].mask(rows, table[LABEL].min())})


def _column_shuffled(table: Table, draw: np.random.Generator) -> Table:
    return table.assign(minutes=draw.permutation(table["minutes"].to_numpy()))


def everywhere(table: Table) -> Any:
    """Returns True for all rows."""
    return np.ones(len(table), bool)


BAD: dict[str, Spoil] = {
    "label from another rule": _other_rule,
    "label joined to wrong rows": _shuffled(1.0),
    "a number reordered to follow the label": _following,
    "a category that is the label": _following_category,
    'one city all "no"': _one_city_without,
    "a column mirrored in two cities": _mirrored,
    "two cities swapped": _swapped,
    "label inverted in one city": _inverted(lambda table: table["city"] == "Boston"),
    "10 % of the labels inverted": _inverted(everywhere, 0.1),
    "20 % of the labels inverted": _inverted(everywhere, 0.2),
    "40 % of the labels inverted": _inverted(everywhere, 0.4),
    "all labels inverted": _inverted(everywhere),
    "10 % of the labels shuffled": _shuffled(0.1),
    "20 % of the labels shuffled": _shuffled(0.2),
    "40 % of the labels shuffled": _shuffled(0.4),
    "60 % of the labels shuffled": _shuffled(0.6),
    "a third of the labels not yet known": _late,
    "a column times 100 in half of the rows": _times_100,
    "a column joined to wrong rows": _column_shuffled,
    "priors shifted": _priors,
}


@dataclass
class Served:
    """A model that serves, and what is known of it from its push."""

    model: Any
    settings: DefaultChecks


def _features(table: Table) -> pd.DataFrame:
    codes = {
        name: pd.Categorical(table[name], categories=values).codes
        for name, values in (("city", CITIES), ("company", COMPANIES))
    }
    return table[list(NUMBERS)].assign(**codes)


def _train(problem_type: ProblemType, table: Table, seed: int) -> Any:
    make = (
        ensemble.HistGradientBoostingRegressor
        if problem_type == "regression"
        else ensemble.HistGradientBoostingClassifier
    )
    model = make(random_state=seed, max_iter=40, max_leaf_nodes=8, categorical_features=[4, 5])
    return model.fit(_features(table), table[LABEL])


def _predictions(model: Any, table: Table, problem_type: ProblemType) -> Any:
    if problem_type == "regression":
        return model.predict(_features(table))
    odds = np.zeros((len(table), 3 if problem_type == "multi-class" else 2))
    odds[:, model.classes_.astype(int)] = model.predict_proba(_features(table))
    return odds[:, 1] if problem_type == "binary" else odds


def judge(
    problem_type: ProblemType, table: Table, served: Served | None, seed: int, folder: pathlib.Path
) -> tuple[str, tuple[str, ...], Served]:
    """Trains and judges a model on a table; returns the verdict, the doubts, and the model."""
    evaluated = np.random.default_rng(seed).random(len(table)) < 1 / 3
    training, evaluation = table[~evaluated], table[evaluated]
    model = _train(problem_type, training, seed)
    said = {"candidate": _predictions(model, evaluation, problem_type)}
    if served is not None:
        said["baseline"] = _predictions(served.model, evaluation, problem_type)
    columns: dict[str, Any] = {name: evaluation[name].to_numpy() for name in NUMBERS}
    for name in CATEGORIES:
        values = pd.Categorical(evaluation[name])
        columns[name] = Codes(values.codes.astype(np.int8), tuple(values.categories))
    labels = evaluation[LABEL].to_numpy()
    given = LabelledPredictions.of(labels, said, None, problem_type, columns)
    tally = LabelTally.of(training[LABEL].to_numpy(), np.ones(len(training)), problem_type)
    leaks = _leaks(table, problem_type, folder) if served is not None else ()
    settings = replace(served.settings if served else DefaultChecks(), known_doubts=leaks)
    found = run_checks(given, "candidate", "baseline" if served else None, tally, settings)
    then = tuple(
        ValueThen(one.metric, one.value or 0.0, one.reference or 0.0, found.intervals[one.metric])
        for one in found.checks
        if one.against == "trivial"
    )
    pushed = Served(model, DefaultChecks(baseline_then=then, slices_then=found.slices))
    failed = [check for check in found.checks if not check.passed]
    verdict = "stopped" if failed or found.failures else "held" if found.doubts else "pushed"
    return verdict, found.doubts, pushed


def _leaks(table: Table, problem_type: ProblemType, folder: pathlib.Path) -> tuple[str, ...]:
    file = folder / "rows.csv"
    table.to_csv(file, index=False)
    profile = profile_csv([file])
    config = load_config(data=str(file), label=LABEL)
    kinds = infer_kinds(profile, config)
    regression = problem_type == "regression"
    found = find_leaks(profile, kinds, LABEL, regression, (*NUMBERS, *CATEGORIES))
    return tuple(leak.evidence for leak in found)


def quality(problem_type: ProblemType, model: Any, table: Table) -> float:
    """Returns the AUC, the accuracy, or the share of the variance that a model explains."""
    said = _predictions(model, table, problem_type)
    if problem_type == "binary":
        return float(metrics.roc_auc_score(table[LABEL], said))
    if problem_type == "multi-class":
        return float(metrics.accuracy_score(table[LABEL], said.argmax(axis=1)))
    return float(metrics.r2_score(table[LABEL], said))


def bad_data(
    problem_type: ProblemType, seeds: range, only: str, folder: pathlib.Path
) -> list[tuple[Any, ...]]:
    """Returns a row for each kind of bad data: verdicts, and the quality before and after."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in BAD if only in name}
    after: dict[str, list[float]] = {name: [] for name in counts}
    before, unguarded = [], {name: [] for name in counts}
    clean = month(problem_type, 10_000, rows=10_000)
    for seed in seeds:
        _, _, first = judge(problem_type, month(problem_type, seed), None, seed, folder)
        before.append(quality(problem_type, first.model, clean))
        for name in counts:
            draw = np.random.default_rng(20_000 + seed)
            table = BAD[name](month(problem_type, 1_000 + seed), draw)
            verdict, _, second = judge(problem_type, table, first, 2_000 + seed, folder)
            counts[name][verdict] += 1
            bad = quality(problem_type, second.model, clean)
            unguarded[name].append(bad)
            after[name].append(bad if verdict == "pushed" else before[-1])
    return [
        (
            name,
            *(str(counts[name][verdict]) for verdict in ("pushed", "held", "stopped")),
            f"{np.mean(before):.3f}",
            f"{np.mean(after[name]):.3f}",
            f"{np.min(after[name]):.3f}",
            f"{np.mean(unguarded[name]):.3f}",
        )
        for name in counts
    ]


def honest_data(
    problem_type: ProblemType, seeds: range, weeks: int, folder: pathlib.Path
) -> tuple[Counter[str], list[str]]:
    """Returns the verdicts on models of successive weeks, and the doubts."""
    counts: Counter[str] = Counter()
    doubts: list[str] = []
    for seed in seeds:
        _, _, served = judge(problem_type, month(problem_type, 30_000 + seed), None, seed, folder)
        for week in range(1, weeks + 1):
            table = month(problem_type, 40_000 + 100 * seed + week, week)
            verdict, found, model = judge(problem_type, table, served, 100 * seed + week, folder)
            counts[verdict] += 1
            doubts += found
            if verdict == "pushed":
                served = model
    return counts, doubts


def main() -> None:
    """Prints a table for each problem type."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--weeks", type=int, default=13)
    parser.add_argument("--only", default="", help="a word in the kinds of bad data to measure")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(args.seeds)
    header = ("bad data", "pushed", "held", "stopped", "before", "after", "worst", "if pushed")
    kinds: tuple[ProblemType, ...] = ("binary", "multi-class", "regression")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for problem_type in kinds:
            rows = bad_data(problem_type, seeds, args.only, folder)
            print(f"\n{problem_type}, {ROWS} rows a month, {len(seeds)} seeds")
            print(format_table(header, rows), flush=True)
        for problem_type in kinds if args.weeks else ():
            counts, doubts = honest_data(problem_type, seeds, args.weeks, folder)
            print(f"\nhonest, {problem_type}: {dict(counts)} of {counts.total()}")
            print("\n".join(f"  {doubt[:150]}" for doubt in doubts), flush=True)


if __name__ == "__main__":
    main()
