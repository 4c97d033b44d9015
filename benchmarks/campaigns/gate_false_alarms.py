"""Measures how often the gate's default checks stop a sound model, and if they stop bad ones.

    python -m benchmarks.campaigns.gate_false_alarms [--seeds 20]

For each seed the data are drawn anew: a first month trains the baseline, a second one the candidate, and
the checks use a third of it. The baseline's score when it was pushed is from a fourth of its own month. The
models are scikit-learn's: a whole pipeline run takes half a minute, and the checks see nothing of a
model but its predictions.

A bad model is derived from a sound one, or trained on damaged labels; each tests one check.
"""

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from sklearn import (
    compose,
    datasets,
    ensemble,
    linear_model,
    neural_network,
    pipeline,
    preprocessing,
)

from components.evaluator.gate.default_checks import DefaultChecks, run_checks
from components.evaluator.gate.labelled_predictions import (
    LabelledPredictions,
    LabelTally,
    ProblemType,
)

Array = npt.NDArray[np.float64]
Data = tuple[Array, Array]

SETTINGS = {
    "no tolerance": DefaultChecks(tolerance=0.0),
    "tolerance 2 %": DefaultChecks(tolerance=0.02),
    "5 %, the default": DefaultChecks(),
}
_SHOWN = "5 %, the default"


@dataclass(frozen=True)
class Months:
    """Data of two months.

    Attributes:
        problem_type: Type of the label.
        first: Features and labels that the baseline is trained on.
        first_evaluated: Features and labels that the baseline was evaluated on when it was pushed.
        second: Features and labels that the candidate is trained on.
        evaluated: Features and labels that both models are evaluated on.
    """

    problem_type: ProblemType
    first: Data
    first_evaluated: Data
    second: Data
    evaluated: Data


def _months(problem_type: ProblemType, x: Array, y: Array, draw: np.random.Generator) -> Months:
    order = draw.permutation(len(y))
    ends = [int(share * len(y)) for share in (0.3, 0.4, 0.8)]
    parts = [(x[index], y[index]) for index in np.split(order, ends)]
    return Months(problem_type, *parts)


def _drawn(problem_type: ProblemType, size: int, signal: float) -> Callable[[int], Months]:
    """Returns a function of the seed; two of six features are informative, one of them nonlinear."""

    def draw_months(seed: int) -> Months:
        draw = np.random.default_rng(seed)
        x = draw.normal(size=(size, 6))
        score = signal * (x[:, 0] - 0.7 * np.abs(x[:, 1]) + 0.5)
        if problem_type == "regression":
            y = np.exp(0.5 * (score + draw.normal(size=size)))  # a long tail, like prices
        elif problem_type == "binary":
            y = (draw.uniform(size=size) < 1 / (1 + np.exp(-score))).astype(float)
        else:
            y = np.digitize(score + draw.logistic(size=size), [-1.0, 1.0]).astype(float)
        return _months(problem_type, x, y, draw)

    return draw_months


def _with_rare_classes(problem_type: ProblemType, size: int) -> Callable[[int], Months]:
    """Returns a function of the seed; all but 3 % of the examples, or 2 x 3 %, are of one class."""

    def draw_months(seed: int) -> Months:
        draw = np.random.default_rng(seed)
        x = draw.normal(size=(size, 6))
        score = x[:, 0] - 0.7 * np.abs(x[:, 1]) + draw.normal(size=size)
        ends = np.quantile(score, [0.03, 0.97] if problem_type == "multi-class" else [0.97])
        return _months(problem_type, x, np.digitize(score, ends).astype(float), draw)

    return draw_months


def _bundled(problem_type: ProblemType, load: Callable[..., Data]) -> Callable[[int], Months]:
    def draw_months(seed: int) -> Months:
        x, y = load(return_X_y=True)
        return _months(problem_type, x, y.astype(float), np.random.default_rng(seed))

    return draw_months


HONEST: dict[str, Callable[[int], Months]] = {
    "binary, 1,500 rows": _drawn("binary", 1_500, 1.5),
    "binary, weak, 15,000": _drawn("binary", 15_000, 0.5),
    "binary, 60,000 rows": _drawn("binary", 60_000, 1.5),
    "multi-class, 1,500": _drawn("multi-class", 1_500, 2.0),
    "multi-class, 50,000": _drawn("multi-class", 50_000, 2.0),
    "binary, rare, 15,000": _with_rare_classes("binary", 15_000),
    "multi-class, rare, 15,000": _with_rare_classes("multi-class", 15_000),
    "regression, 1,500": _drawn("regression", 1_500, 1.0),
    "regression, 50,000": _drawn("regression", 50_000, 1.0),
    "breast cancer": _bundled("binary", datasets.load_breast_cancer),
    "wine": _bundled("multi-class", datasets.load_wine),
    "digits": _bundled("multi-class", datasets.load_digits),
    "diabetes": _bundled("regression", datasets.load_diabetes),
}

MODELS = ("linear", "network", "trees")


def _model(kind: str, problem_type: ProblemType, num_rows: int, seed: int) -> object:
    regression = problem_type == "regression"
    if kind == "linear":
        model = (
            linear_model.Ridge() if regression else linear_model.LogisticRegression(max_iter=1_000)
        )
    elif kind == "network":
        make = neural_network.MLPRegressor if regression else neural_network.MLPClassifier
        model = make(
            (32, 16), random_state=seed, early_stopping=num_rows > 10_000, max_iter=40, alpha=0.1
        )
    else:
        make = (
            ensemble.HistGradientBoostingRegressor
            if regression
            else ensemble.HistGradientBoostingClassifier
        )
        return make(random_state=seed, max_iter=40, max_leaf_nodes=8)
    scaled = pipeline.make_pipeline(preprocessing.StandardScaler(), model)
    if not regression:
        return scaled
    return compose.TransformedTargetRegressor(scaled, transformer=preprocessing.StandardScaler())


def _predictions(kind: str, months: Months, data: Data, seed: int) -> tuple[Array, Array]:
    """Returns the predictions of a model trained on `data`, for the evaluated examples of both months."""
    x, y = data
    model = _model(kind, months.problem_type, len(y), seed).fit(x, y)
    found = []
    for features, _ in (months.evaluated, months.first_evaluated):
        if months.problem_type == "regression":
            found.append(model.predict(features))
        else:
            odds = model.predict_proba(features)
            found.append(odds[:, 1] if months.problem_type == "binary" else odds)
    return found[0], found[1]


def _then(months: Months, said: Array) -> tuple[str, float, float]:
    """Returns the metric, the baseline's value and the trivial model's value when it was pushed."""
    problem_type, (_, labels) = months.problem_type, months.first_evaluated
    tally = LabelTally.of(months.first[1], np.ones(len(months.first[1])), problem_type)
    given = LabelledPredictions.of(labels, {"candidate": said}, None, problem_type)
    metric = run_checks(given, "candidate", None, tally, DefaultChecks()).checks[0]
    return metric.metric, metric.value or 0.0, metric.reference or 0.0


def stopped_by(
    months: Months, candidate: Array, both: tuple[Array, Array], settings: DefaultChecks
) -> set[tuple[str, str]]:
    """Returns the checks that stop a model: (against, metric or loss)."""
    labels, trained = months.evaluated[1], months.second[1]
    baseline, said_then = both
    settings = replace(settings, baseline_then=_then(months, said_then))
    given = LabelledPredictions.of(
        labels, {"candidate": candidate, "baseline": baseline}, None, months.problem_type
    )
    tally = LabelTally.of(trained, np.ones(len(trained)), months.problem_type)
    checks = run_checks(given, "candidate", "baseline", tally, settings).checks
    return {
        ("itself" if number == 4 else check.against, ("metric", "loss")[number % 2])
        for number, check in enumerate(checks)
        if not check.passed
    }


def _sharpened(odds: Array, power: float) -> Array:
    """Returns overconfident probabilities in the same order."""
    logits = power * np.log(np.clip(odds, 1e-9, 1) / np.clip(1 - odds, 1e-9, 1))
    return 1 / (1 + np.exp(-np.clip(logits, -30, 30)))


def _bad_models(
    seed: int,
) -> dict[str, tuple[tuple[str, str], Months, Array, tuple[Array, Array]]]:
    """Returns the tested check, the data, the candidate and the baseline, by the name of the bad model."""
    draw = np.random.default_rng(1_000 + seed)
    found = {}
    for name in ("binary, 1,500 rows", "multi-class, 1,500", "regression, 1,500"):
        months = HONEST[name](seed)
        x, y = months.second
        both = _predictions("linear", months, months.first, seed)
        good = both[0]
        noise = good[draw.permutation(len(good))]
        kind = name.partition(",")[0]
        detected_by = "loss" if kind == "multi-class" else "metric"  # accuracy need not be better
        found[f"{kind}: answers of other examples"] = ("trivial", detected_by), months, noise, both
        labels = y.copy()
        moved = draw.uniform(size=len(y)) < 0.6
        labels[moved] = draw.permutation(labels[moved])
        mixed, _ = _predictions("trees", months, (x, labels), seed)
        found[f"{kind}: trained on labels 60 % shuffled"] = (
            ("baseline", "loss"), months, mixed, both,
        )  # fmt: skip
        seen = months.evaluated[1].copy()
        moved = draw.uniform(size=len(seen)) < 0.6
        seen[moved] = draw.permutation(seen[moved])
        damaged = replace(months, second=(x, labels), evaluated=(months.evaluated[0], seen))
        found[f"{kind}: all of the month 60 % shuffled"] = (
            ("itself", "metric"), damaged, mixed, both,
        )  # fmt: skip
        if kind == "binary":
            found["binary: in order, far too sure"] = (
                ("trivial", "loss"), months, _sharpened(good, 12.0), both,
            )  # fmt: skip
            muddled = 0.5 * good + 0.5 * draw.uniform(size=len(good))
            found["binary: half noise"] = ("baseline", "metric"), months, muddled, both
        if kind == "multi-class":
            rare = np.where(months.evaluated[1] == 1, 0.0, months.evaluated[1])
            rare[draw.uniform(size=len(rare)) > 0.015] = 0.0
            skewed = replace(months, second=(x, 0 * y), evaluated=(months.evaluated[0], rare))
            wrong = np.full((len(rare), 3), 0.3)
            wrong[np.arange(len(rare)), (draw.uniform(size=len(rare)) > 0.426).astype(int)] = 0.4
            found["multi-class: right in 43 %, a constant in 98 %"] = (
                ("trivial", "metric"), skewed, wrong, (wrong, both[1]),
            )  # fmt: skip
    return found


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = range(parser.parse_args().seeds)
    warnings.simplefilter("ignore")  # a network that has not converged is a sound model, too

    kinds = [(whom, what) for whom in ("trivial", "baseline") for what in ("metric", "loss")]
    kinds.append(("itself", "metric"))
    print(f"Honest models stopped, of {len(seeds)} seeds, by check: against the trivial model")
    print(
        "(metric, loss), the baseline (metric, loss), and of the baseline against itself as pushed"
    )
    print(f"{'data':26}{'model':9}{'eval':>7}  " + "".join(f"{name:^27}" for name in SETTINGS))
    totals: dict[str, Counter[tuple[str, str]]] = {name: Counter() for name in SETTINGS}
    runs = 0
    for name, draw_months in HONEST.items():
        for kind in MODELS:
            counts = {setting: Counter() for setting in SETTINGS}
            for seed in seeds:
                months = draw_months(seed)
                baseline = _predictions(kind, months, months.first, seed)
                candidate, _ = _predictions(kind, months, months.second, seed + 100)
                for setting, checks in SETTINGS.items():
                    stops = stopped_by(months, candidate, baseline, checks)
                    counts[setting].update(stops)
                    totals[setting].update(stops)
                    totals[setting][("any", "")] += bool(stops)
            runs += len(seeds)
            size = len(months.evaluated[1])
            cells = ("".join(f"{counts[s][key]:5}" for key in kinds) for s in SETTINGS)
            print(f"{name:26}{kind:9}{size:7,}  " + "  ".join(cells), flush=True)
    for setting, counter in totals.items():
        by_check = ", ".join(f"{' '.join(key)} {counter[key]}" for key in kinds)
        print(f"{setting}: {counter[('any', '')]} of {runs} models stopped ({by_check})")

    print(f"\nBad models stopped, of {len(seeds)} seeds, at {_SHOWN}")
    print(f"{'model':50}{'stopped':>8}  {'its check':20}{'by its check':>12}")
    stopped: Counter[str] = Counter()
    by_its_check: Counter[str] = Counter()
    aims = {}
    for seed in seeds:
        for name, (aim, months, candidate, baseline) in _bad_models(seed).items():
            stops = stopped_by(months, candidate, baseline, SETTINGS[_SHOWN])
            stopped[name] += bool(stops)
            by_its_check[name] += aim in stops
            aims[name] = " ".join(aim)
    for name, aim in aims.items():
        print(f"{name:50}{stopped[name]:8}  {aim:20}{by_its_check[name]:12}")


if __name__ == "__main__":
    main()
