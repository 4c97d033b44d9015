"""Generated tables for `spoiled_data.py`."""

import numpy as np
import pandas as pd
import sklearn.metrics

NUM_TRIPS = 3_000


def trips(seed: int, num_rows: int = NUM_TRIPS) -> pd.DataFrame:
    """Returns the trips of a month; the tip of a guest depends on minutes, city and party."""
    generator = np.random.default_rng(seed)
    minutes = generator.gamma(3, 4, num_rows).round(1)
    city = generator.choice(["Chicago", "Boston", "Austin"], num_rows, p=[0.5, 0.3, 0.2])
    party = generator.integers(1, 6, num_rows)
    logits = 0.25 * (minutes - 12) + 1.5 * (city == "Chicago") - 0.3 * party
    tipped = generator.random(num_rows) < 1 / (1 + np.exp(-logits))
    return pd.DataFrame(
        {"minutes": minutes, "city": city, "party": party, "tipped": np.where(tipped, "yes", "no")}
    )


def with_shuffled_labels(table: pd.DataFrame, label: str, share: float) -> pd.DataFrame:
    """Returns the table with shuffled labels in a share of its rows."""
    generator = np.random.default_rng(11)
    rows = np.flatnonzero(generator.random(len(table)) < share)
    labels = table[label].to_numpy().copy()
    labels[rows] = generator.permutation(labels[rows])
    return table.assign(**{label: labels})


def with_flipped_labels(
    table: pd.DataFrame, label: str, old: str, new: str, share: float
) -> pd.DataFrame:
    """Returns the table with a share of the labels `old` turned into `new`."""
    generator = np.random.default_rng(12)
    flipped = (table[label] == old) & (generator.random(len(table)) < share)
    return table.assign(**{label: table[label].mask(flipped, new)})


def hopeless_reviews() -> tuple[pd.DataFrame, float]:
    """Returns reviews that are nearly independent of their label, and the best possible AUC."""
    generator = np.random.default_rng(13)
    words = np.array(
        [a + b + c for a in ("ba", "do", "ki", "lu") for b in "mnprst" for c in "aeiou"]
    )
    effects = generator.normal(0, 0.028, len(words))
    chosen = generator.integers(0, len(words), (3_000, 8))
    probability = 1 / (1 + np.exp(-effects[chosen].sum(axis=1)))
    negative = (generator.random(len(chosen)) < probability).astype(int)
    reviews = [" ".join(words[row]) + "." for row in chosen]
    auc = float(sklearn.metrics.roc_auc_score(negative, probability))
    return pd.DataFrame({"review": reviews, "negative": negative}), auc


def orders() -> pd.DataFrame:
    """Returns orders in the form that shops export; `refund` is another form of the label `returned`."""
    generator = np.random.default_rng(14)
    size = 3_000
    price = np.exp(generator.normal(3.5, 0.8, size))
    discount = generator.uniform(0, 0.6, size)
    minutes = generator.integers(0, 200 * 24 * 60, size)
    ordered = pd.Timestamp("2024-02-01") + pd.to_timedelta(minutes, unit="min")
    tone = generator.random(size) < 0.4
    good, bad = (
        ["great", "lovely", "sturdy", "warm", "bright", "quick"],
        ["broken", "late", "torn", "wrong", "cheap", "thin"],
    )
    filler = [
        "the",
        "parcel",
        "came",
        "with",
        "a",
        "box",
        "and",
        "paper",
        "my",
        "colour",
        "size",
        "was",
    ]
    reviews = [
        " ".join([*generator.choice(filler, 5), *generator.choice(bad if is_bad else good, 2)])
        for is_bad in tone
    ]
    logits = -1 + 2.2 * tone + 0.6 * (np.log(price) - 3.5) - 2 * discount
    returned = generator.random(size) < 1 / (1 + np.exp(-logits))
    return pd.DataFrame(
        {
            "price": [f"${value:,.2f}" for value in price],
            "discount": [f"{value:.2f}".replace(".", ",") for value in discount],
            "ordered": ordered.strftime("%Y-%m-%d %H:%M:%S"),
            "review": reviews,
            "zip": [
                f"{number:05d}" for number in generator.choice([2134, 10001, 60601, 94110], size)
            ],
            "refund": np.where(returned, "money back", "kept"),
            "returned": returned.astype(int),
        }
    )
