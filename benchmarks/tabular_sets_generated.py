"""Generated data sets for `tabular_default.py`, whose best possible score is known.

Each has one difficulty. `best` of a data set computes the prediction for a row's cells from the rules that
generated the data; its score is limited by chance alone.
"""

import numpy as np
import pandas as pd

from benchmarks.tabular_sets import Array, DataSet

SEED = 7
_TOPIC_WEIGHTS = (1.0, -1.0, 0.6, 0.0)  # effect of a topic's words on the label
_NUM_WORDS = 600  # per topic
_COPIES = 20


def generated() -> tuple[DataSet, ...]:
    """Returns the data sets."""
    return (
        DataSet(
            "imbalanced",
            "2 % positive",
            "fraud",
            "binary",
            _imbalanced,
            categories=("channel",),
            best=_imbalanced_best,
        ),
        DataSet(
            "dates",
            "hour and weekday matter",
            "late",
            "binary",
            _dates,
            categories=("depot",),
            dates=("ordered_at",),
            best=_dates_best,
        ),
        DataSet("text", "topic words", "negative", "binary", _text, texts=("review",), best=_text_best),
        DataSet(
            "currency",
            "$1,250.00, 15 % missing",
            "cost",
            "regression",
            _currency,
            categories=("plan",),
            amounts=("income", "balance"),
            best=_currency_best,
        ),
        DataSet("wide", "300 columns, 10 matter", "label", "binary", _wide, best=_wide_best),
        DataSet("duplicates", "each row 20 times", "positive", "binary", _duplicates, best=_duplicates_best),
        DataSet(
            "groups",
            "patients",
            "readmitted",
            "binary",
            _groups,
            categories=("ward",),
            unused=("patient",),
            settings=('split.by="column"', 'split.column="patient"'),
            best=_groups_best,
        ),
        DataSet(
            "time",
            "time order, drift",
            "churned",
            "binary",
            _time,
            categories=("region",),
            dates=("day",),
            settings=('split.by="time"', 'split.column="day"'),
            best=_time_best,
        ),
    )


def _draw(generator: np.random.Generator, probability: Array) -> Array:
    return (generator.random(len(probability)) < probability).astype(int)


def _sigmoid(logits: Array) -> Array:
    return 1 / (1 + np.exp(-np.asarray(logits, float)))


def _imbalanced() -> pd.DataFrame:
    generator = np.random.default_rng(SEED)
    size = 20_000
    table = pd.DataFrame(
        {
            "amount": np.exp(generator.normal(4, 1, size)).round(2),
            "age_days": generator.integers(0, 2_000, size),
            "distance_km": generator.exponential(30, size).round(1),
            "channel": generator.choice(["shop", "web", "phone"], size, p=[0.6, 0.3, 0.1]),
            "attempts": generator.poisson(1.2, size),
        }
    )
    table["fraud"] = _draw(generator, _imbalanced_best(table))
    return table


def _imbalanced_best(table: pd.DataFrame) -> Array:
    amount = np.log(table["amount"].astype(float)) - 4
    far = table["distance_km"].astype(float) > 60
    young = table["age_days"].astype(float) < 150
    channel = table["channel"].map({"shop": -0.8, "web": 0.6, "phone": 1.0})
    attempts = table["attempts"].astype(float).clip(upper=5)
    return _sigmoid(-5.5 + 0.9 * amount + 1.6 * far + 1.4 * young + channel + 0.5 * attempts)


def _dates() -> pd.DataFrame:
    generator = np.random.default_rng(SEED)
    size = 12_000
    minutes = generator.integers(0, 365 * 24 * 60, size)
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(minutes, unit="min")
    table = pd.DataFrame(
        {
            "ordered_at": times.strftime("%Y-%m-%d %H:%M:%S"),
            "depot": generator.choice(["north", "south", "east"], size),
            "items": generator.integers(1, 12, size),
        }
    )
    table["late"] = _draw(generator, _dates_best(table))
    return table


def _dates_best(table: pd.DataFrame) -> Array:
    times = pd.to_datetime(table["ordered_at"])
    hour, weekday = times.dt.hour, times.dt.weekday
    rush = ((hour >= 7) & (hour <= 9)) | ((hour >= 16) & (hour <= 18))
    night = (hour >= 22) | (hour <= 4)
    weekend = weekday >= 5
    depot = table["depot"].map({"north": 0.4, "south": -0.4, "east": 0.0})
    logits = -0.9 + 1.8 * (rush & ~weekend) + 1.2 * weekend - 1.3 * night + depot
    return _sigmoid(logits + 0.08 * (table["items"].astype(float) - 6))


def _words(topic: int) -> list[str]:
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    words = [a + b for a in syllables for b in syllables]
    order = np.random.default_rng(topic).permutation(len(words))
    return [f"{words[index]}{'nsrl'[topic]}" for index in order[:_NUM_WORDS]]


def _word_odds() -> dict[str, float]:
    """Returns the effect of each word on the log of the odds."""
    odds: dict[str, float] = {}
    for topic, weight in enumerate(_TOPIC_WEIGHTS):
        strengths = np.random.default_rng(100 + topic).exponential(1.0, _NUM_WORDS)
        odds.update(zip(_words(topic), weight * strengths, strict=True))
    return odds


def _text() -> pd.DataFrame:
    generator = np.random.default_rng(SEED)
    size = 6_000
    vocabularies = [_words(topic) for topic in range(len(_TOPIC_WEIGHTS))]
    popularity = 1 / np.arange(1, _NUM_WORDS + 1) ** 0.7
    popularity /= popularity.sum()
    reviews = []
    for _ in range(size):
        topics = generator.choice(4, generator.integers(6, 30), p=[0.1, 0.1, 0.1, 0.7])
        ranks = generator.choice(_NUM_WORDS, len(topics), p=popularity)
        words = [vocabularies[topic][rank] for topic, rank in zip(topics, ranks, strict=True)]
        reviews.append(" ".join(words).capitalize() + ".")
    table = pd.DataFrame({"review": reviews})
    table["negative"] = _draw(generator, _text_best(table))
    return table


def _text_best(table: pd.DataFrame) -> Array:
    odds = _word_odds()
    words = table["review"].str.lower().str.rstrip(".").str.split()
    return _sigmoid(np.array([sum(odds[word] for word in text) for text in words]) - 0.5)


def _currency() -> pd.DataFrame:
    generator = np.random.default_rng(SEED)
    size = 8_000
    income = np.exp(generator.normal(10.5, 0.5, size)).round(2)
    balance = generator.normal(0, 1, size) * 0.2 * income
    table = pd.DataFrame(
        {
            "income": [f"${value:,.2f}" for value in income],
            "balance": [f"{'-' if value < 0 else ''}${abs(value):,.2f}" for value in balance],
            "plan": generator.choice(["basic", "plus", "pro"], size),
            "years": generator.integers(0, 30, size),
        }
    )
    for column in ("income", "balance"):
        table.loc[generator.random(size) < 0.15, column] = ""
    cost = _currency_best(table) + generator.normal(0, 400, size)
    table["cost"] = cost.round(2)
    return table


def read_amounts(cells: pd.Series) -> pd.Series:
    """Returns the numbers of cells such as `-$1,250.00`; NaN for an empty one."""
    return pd.to_numeric(cells.astype("string").str.replace("[$,]", "", regex=True)).astype(float)


def _currency_best(table: pd.DataFrame) -> Array:
    income = read_amounts(table["income"]).fillna(30_000)
    balance = read_amounts(table["balance"])
    plan = table["plan"].map({"basic": 0.02, "plus": 0.03, "pro": 0.05})
    debts = (-balance).clip(lower=0).fillna(5_000)
    years = table["years"].astype(float)
    return np.asarray(1_000 + plan * income + 0.1 * debts + 600 * np.sqrt(years), float)


def _wide() -> pd.DataFrame:
    generator = np.random.default_rng(SEED)
    numbers = generator.normal(0, 1, (4_000, 300)).round(4)
    table = pd.DataFrame(numbers, columns=[f"x{index}" for index in range(300)])
    table["label"] = _draw(generator, _wide_best(table))
    return table


def _wide_best(table: pd.DataFrame) -> Array:
    x = [table[f"x{index * 30}"].astype(float) for index in range(10)]
    linear = 1.0 * x[0] - 0.9 * x[1] + 0.8 * x[2] - 0.7 * x[3] + 0.6 * x[4] - 0.5 * x[5]
    return _sigmoid(
        linear + 0.8 * (np.abs(x[6]) - 0.8) + 1.2 * (x[7] > 0.5) - 0.8 * (x[8] > 1.0) + 0.4 * x[9]
    )


def _duplicates() -> pd.DataFrame:
    """Measures in coarse steps, like those of mammograms: few different rows, a label for each copy."""
    generator = np.random.default_rng(SEED)
    patterns = generator.normal(0, 1, (500, 6)).round(1)
    table = pd.DataFrame(
        np.repeat(patterns, _COPIES, axis=0),
        columns=["area", "gray", "gradient", "noise", "contrast", "shape"],
    )
    table["positive"] = _draw(generator, _duplicates_best(table))
    return table.sample(frac=1, random_state=SEED)


def _duplicates_best(table: pd.DataFrame) -> Array:
    area, gray, shape = (table[name].astype(float) for name in ("area", "gray", "shape"))
    contrast = table["contrast"].astype(float)
    return _sigmoid(-3.6 + 1.4 * area + 1.2 * gray * (contrast > 0) + 0.9 * np.abs(shape))


def _groups() -> pd.DataFrame:
    generator = np.random.default_rng(SEED)
    patients = 900
    visits = generator.integers(1, 16, patients)
    patient = np.repeat(np.arange(patients), visits)
    age = generator.integers(20, 90, patients)[patient]
    effect = generator.normal(0, 1.0, patients)[patient]
    size = len(patient)
    table = pd.DataFrame(
        {
            "patient": [f"P{number:04d}" for number in patient],
            "age": age,
            "ward": generator.choice(["a", "b", "c", "d"], size),
            "nights": generator.poisson(4, size),
            "pulse": generator.normal(75, 12, size).round(),
            "weight_kg": (60 + 15 * generator.normal(0, 1, patients)[patient]).round(1),
        }
    )
    table["readmitted"] = _draw(generator, _sigmoid(_group_logits(table) + effect))
    return table


def _group_logits(table: pd.DataFrame) -> Array:
    ward = table["ward"].map({"a": -0.6, "b": 0.0, "c": 0.4, "d": 0.9})
    age, nights = table["age"].astype(float), table["nights"].astype(float)
    pulse = np.abs(table["pulse"].astype(float) - 75)
    return np.asarray(-2.0 + ward + 0.03 * (age - 50) + 0.15 * nights + 0.04 * pulse, float)


def _groups_best(table: pd.DataFrame) -> Array:
    """Predicts for new patients, whose own effect is unknown; it does not change the order."""
    return _sigmoid(_group_logits(table))


def _time() -> pd.DataFrame:
    generator = np.random.default_rng(SEED)
    size = 9_000
    days = np.sort(generator.integers(0, 540, size))
    dates = pd.Timestamp("2023-01-01") + pd.to_timedelta(days, unit="D")
    table = pd.DataFrame(
        {
            "day": dates.strftime("%Y-%m-%d"),
            "price": (20 + days / 30 + generator.normal(0, 3, size)).round(2),  # inflation
            "usage": generator.exponential(10, size).round(1),
            "calls": generator.poisson(1.5, size),
            "region": generator.choice(["n", "s", "e", "w"], size),
        }
    )
    table["churned"] = _draw(generator, _time_best(table))
    return table


def _time_best(table: pd.DataFrame) -> Array:
    days = (pd.to_datetime(table["day"]) - pd.Timestamp("2023-01-01")).dt.days
    dear = table["price"].astype(float) - 20 - days / 30  # relative to the price of its day
    usage = np.minimum(table["usage"].astype(float), 20)
    calls = table["calls"].astype(float)
    region = table["region"].map({"n": 0.5, "s": -0.5, "e": 0.2, "w": 0.0})
    return _sigmoid(-0.6 + 0.25 * dear - 0.08 * usage + (0.5 - days / 1_500) * calls + region)
