"""Compares our Shapley values with SHAP's for the same background rows.

    PYTHONPATH=folder/of/shap python -m benchmarks.campaigns.explanations [ROOT=rows.csv ...]

- `linear`: logistic regression on breast_cancer, with `shap.LinearExplainer`, which is exact.
- `trees`: LightGBM on breast_cancer and diabetes, with TreeSHAP (interventional), which is exact.
- Each ROOT: the live model and rows of a CSV, with `shap.PermutationExplainer`, which estimates, too, but
  from ten times as many predictions.

`error` is the root mean square of the differences, relative to that of SHAP's values; `same_first` is the
share of rows with the same strongest column. It needs `pip install shap`.
"""

import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import pipelines
from components.evaluator.report_details.shapley import log_odds, number_cells, shapley_values
from pipelines.serving.cells import to_cells
from pipelines.serving.explanations import background_rows
from pipelines.serving.model import class_scores, signature_inputs

_NUM_ROWS = 20
_NUM_SERVED = 5
_NUM_BACKGROUND = 32
_ROUNDS = 10  # of SHAP's permutations, of which each uses all background rows
_RESULTS = Path(__file__).with_suffix(".json")


def compared(ours: Any, reference: Any) -> dict[str, float]:
    difference = np.sqrt(np.mean((ours - reference) ** 2) / np.mean(reference**2))
    same = np.abs(ours).argmax(axis=1) == np.abs(reference).argmax(axis=1)
    return {"error": float(f"{difference:.2g}"), "same_first": round(float(same.mean()), 2)}


def of_arrays(predict: Any, rows: Any, background: Any) -> Any:
    """Returns our values for a model of arrays of numbers."""
    pool = np.concatenate([rows, background])
    columns = np.arange(pool.shape[1])
    return shapley_values(
        lambda cells: predict(pool[cells, columns]), number_cells(pool.T.tolist()), len(rows)
    )[1]


def linear() -> dict[str, float]:
    import shap
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import scale

    features, labels = load_breast_cancer(return_X_y=True)
    features = scale(features)
    model = LogisticRegression().fit(features, labels)
    rows, background = features[:_NUM_ROWS], features[-_NUM_BACKGROUND:]
    masker = shap.maskers.Independent(background, max_samples=_NUM_BACKGROUND)
    reference = shap.LinearExplainer(model, masker).shap_values(rows)
    return compared(of_arrays(model.decision_function, rows, background), reference)


def trees(name: str) -> dict[str, float]:
    import lightgbm
    import shap
    from sklearn import datasets

    features, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    objective = "regression" if name == "diabetes" else "binary"
    settings = {"objective": objective, "verbose": -1, "seed": 1, "num_threads": 1, "learning_rate": 0.05}
    model = lightgbm.train(settings, lightgbm.Dataset(features, labels), 200)
    rows, background = features[:_NUM_ROWS], features[-_NUM_BACKGROUND:]
    explainer = shap.TreeExplainer(model, background, feature_perturbation="interventional")
    ours = of_arrays(lambda values: model.predict(values, raw_score=True), rows, background)
    return compared(ours, explainer.shap_values(rows))


def served(root: str, file: str) -> dict[str, float]:
    """Returns the comparison for a live model, the error of the sums, and the seconds for one row."""
    import shap

    model = pipelines.load(root)
    with Path(file).open(newline="") as stream:
        rows = [row for _, row in zip(range(_NUM_SERVED), csv.DictReader(stream), strict=False)]
    given = [{name: _typed(row[name], column.type) for name, column in model.columns.items()} for row in rows]
    model.explain(given[:1])  # the first call prepares the graph
    start = time.perf_counter()
    explanation = model.explain(given[:1])
    seconds = time.perf_counter() - start
    explanation = model.explain(given)
    background = background_rows(model)
    cells, _ = to_cells([*given, *background], model.columns)
    signature = model.fast_signature()

    def score(numbers: Any, class_id: int | None) -> Any:
        mixed = {
            name: [cells[name][int(row)] for row in column]
            for name, column in zip(sorted(model.columns), np.asarray(numbers).T, strict=True)
        }
        outputs = model.run(signature.name, signature_inputs(mixed, signature, len(numbers)))
        scores = class_scores(outputs, signature.method)
        if scores is None or class_id is None:
            return next(iter(outputs.values())).reshape(-1).astype(np.float64)
        return log_odds(scores[0], class_id)

    numbers = number_cells([cells[name] for name in sorted(model.columns)])
    ids: list[Any] = [None] * len(given)
    if explanation.classes is not None:
        names = [name.removeprefix("probability_") for name in model.predict(given) if "probability_" in name]
        ids = [names.index(name) for name in explanation.classes]
    reference = []
    for row, class_id in enumerate(ids):
        masker = shap.maskers.Independent(numbers[len(given) :].astype(float), max_samples=_NUM_BACKGROUND)
        explainer = shap.PermutationExplainer(lambda part, c=class_id: score(part, c), masker, seed=1)
        calls = _ROUNDS * (2 * numbers.shape[1] + 1)
        reference.append(
            explainer(numbers[row : row + 1].astype(float), max_evals=calls, silent=True).values[0]
        )
    ours = np.stack(list(explanation.contributions.values()), axis=1)
    direct = np.array([score(numbers[[row]], class_id)[0] for row, class_id in enumerate(ids)])
    return {
        "columns": len(model.columns),
        **compared(ours, np.array(reference)),
        "largest_error_of_a_sum": float(f"{np.abs(explanation.base + ours.sum(axis=1) - direct).max():.1g}"),
        "seconds_for_a_row": round(seconds, 3),
    }


def _typed(cell: str, kind: str) -> Any:
    if not cell:
        return None
    return cell if kind == "BYTES" else float(cell)


def main() -> None:
    results: dict[str, Any] = {
        "linear": linear(),
        "trees": {name: trees(name) for name in ("breast_cancer", "diabetes")},
    }
    results["served"] = {}
    for argument in sys.argv[1:]:
        root, _, file = argument.partition("=")
        results["served"][Path(file).stem] = served(root, file)
    _RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(_RESULTS.read_text())


if __name__ == "__main__":
    main()
