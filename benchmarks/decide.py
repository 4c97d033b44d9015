"""Recall, precision and cost of `trainer.decide` on tables with a rare class, next to scikit-learn's.

python -m benchmarks.decide [--only NAME ...] [--work FOLDER] [--set KEY=VALUE ...]

`TABLES` names the share to which rows of the rarer class, the positive one, are reduced. Both models are
judged on the rows of the Evaluator. scikit-learn's is a HistGradientBoostingClassifier in a
TunedThresholdClassifierCV with the same goal. `agree`: `load().predict`, `serve` and the Evaluator decide
alike. `--work` keeps the runs. `benchmarks/tabular_sets.py` describes how to install the tables.
"""

import argparse
import pathlib
import sys
import tempfile
from typing import Any

import numpy as np
import pandas as pd
from sklearn import compose, ensemble, metrics, model_selection, pipeline, preprocessing

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from benchmarks import tables, tabular_run  # noqa: E402
from benchmarks.tabular_sets import DataSet, shipped  # noqa: E402
from benchmarks.tabular_sets_generated import generated  # noqa: E402
from pipelines.config.toml import flat_settings  # noqa: E402
from pipelines.serving.model import ModelFolder, load_model  # noqa: E402
from pipelines.serving.server import open_inference  # noqa: E402

TABLES: dict[str, float | None] = {
    "caravan": None, "default": None, "imbalanced": None,
    "flchain": 0.03, "hdma": 0.05, "aids": 0.08, "fair": 0.1, "benefits": 0.01,
}  # fmt: skip
"""Share of the rarer class; None keeps all rows, which are 6 %, 3 % and 2 % positive."""

COSTS = {"false_positive": 1, "false_negative": 20}
GOALS: dict[str, Any] = {
    "0.5": None, "accuracy": "accuracy", "f1": "f1", "balanced": "balanced",
    "recall 0.8": {"recall": 0.8}, "precision 0.5": {"precision": 0.5}, "cost 1:20": {"cost": COSTS},
}  # fmt: skip
HEADER = ("table", "rows", "positive", "decide", "threshold", "recall", "precision", "cost", "agree",
          "sklearn recall", "precision", "cost")  # fmt: skip


def thinned(data: DataSet, share: float | None) -> tuple[pd.DataFrame, str]:
    """Returns the table with that share of the rarer class, and the name of this class."""
    table = data.load()
    names = table[data.label].astype(str)
    rarer = str(names.value_counts().index[-1])
    if share is not None:
        wanted = round(share / (1 - share) * (names != rarer).sum())
        drawn = table[names == rarer].sample(wanted, random_state=1).index
        table = table[(names != rarer) | table.index.isin(drawn)]
    return table, rarer


def outcome(labels: Any, taken: Any) -> tuple[str, str, str]:
    """Returns recall, precision and cost."""
    missed, wrong = (labels & ~taken).sum(), (taken & ~labels).sum()
    return (
        f"{metrics.recall_score(labels, taken):.3f}",
        f"{metrics.precision_score(labels, taken, zero_division=0):.3f}",
        f"{COSTS['false_positive'] * wrong + COSTS['false_negative'] * missed}",
    )


def score(goal: Any, labels: Any, taken: Any) -> float:
    """Returns the quality of decisions, for scikit-learn's search of a threshold."""
    if goal == "balanced":
        return float(metrics.balanced_accuracy_score(labels, taken))
    if goal in ("accuracy", "f1"):
        return float(getattr(metrics, f"{goal}_score")(labels, taken))
    recall, precision, cost = map(float, outcome(labels, taken))
    if "recall" in goal:
        return precision if recall >= goal["recall"] else recall - 1
    if "precision" in goal:
        return 1 + recall if precision >= goal["precision"] else precision
    return -cost


def scikit_learn(data: DataSet, goal: Any, train: pd.DataFrame, rows: pd.DataFrame, positive: str) -> Any:
    """Returns the decisions of scikit-learn's model about rows."""
    features = [name for name in train if name not in (data.label, *data.unused)]
    words = [name for name in features if train[name].dtype == object or name in data.categories]
    encoder = preprocessing.OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=250
    )
    columns = compose.make_column_transformer((encoder, words), remainder="passthrough")
    model = pipeline.make_pipeline(columns, ensemble.HistGradientBoostingClassifier(random_state=1))
    if goal is not None:
        scorer = metrics.make_scorer(lambda labels, taken: score(goal, labels, taken))
        model = model_selection.TunedThresholdClassifierCV(model, scoring=scorer, random_state=1)
    model.fit(train[features], (train[data.label] == positive).astype(int))
    return model.predict(rows[features]) == 1


def compare(data: DataSet, goal: str, work: pathlib.Path, settings: list[str]) -> list[str]:
    """Runs the pipeline with a goal, and returns a row of the results."""
    table, positive = thinned(data, TABLES[data.name])
    path = work / data.name / "data.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)
    decide = {} if GOALS[goal] is None else flat_settings({"trainer": {"decide": GOALS[goal]}})
    settings = [f"data.positive={positive}", *(f"{key}={value}" for key, value in decide.items()), *settings]
    run = tabular_run.run(data, path, work / data.name / goal.replace(" ", "_"), REPOSITORY, tuple(settings))
    evaluated, trained = (
        tabular_run.read_rows(tabular_run.serialized_split(run.root, split)).astype({data.label: str})
        for split in ("eval", "train")
    )
    labels = (evaluated[data.label] == positive).to_numpy()
    (folder,) = run.root.glob("artifacts/Trainer/*/model/Format-Serving")
    model = load_model(ModelFolder(folder))
    predicted = model.predict(evaluated.drop(columns=data.label))["class"] == positive
    cells = evaluated.astype(object).where(evaluated.notna(), None)
    inputs = [
        {"name": name, "shape": [len(cells)], "datatype": "BYTES", "data": cells[name].tolist()}
        for name in model.columns
    ]
    request = open_inference.infer(model, {"inputs": inputs, "outputs": [{"name": "class"}]}, "model")
    answer = request.answer(model.run(request.signature.name, request.inputs.tensors))
    served = np.array(answer["outputs"][0]["data"]) == positive
    counts = run.record["confusion"]
    evaluator = [counts["true_positives"], counts["false_positives"], counts["false_negatives"]]
    mine = [(labels & predicted).sum(), (~labels & predicted).sum(), (labels & ~predicted).sum()]
    agree = "yes" if (served == predicted).all() and evaluator == mine else "NO"
    theirs = scikit_learn(data, GOALS[goal], trained, evaluated, positive)
    share = f"{100 * (table[data.label].astype(str) == positive).mean():.1f} %"
    ours = (f"{counts['threshold']:.4f}", *outcome(labels, predicted), agree)
    return [data.name, str(len(table)), share, goal, *ours, *outcome(labels, theirs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "decide")
    parser.add_argument("--set", action="append", default=[], dest="settings", help="setting of all runs")
    options = parser.parse_args()
    data = {one.name: one for one in (*shipped(), *generated())}
    rows = []
    for name in options.only:
        for goal in GOALS:
            rows.append(compare(data[name], goal, options.work, options.settings))
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    print(tables.format_table(HEADER, rows))


if __name__ == "__main__":
    main()
