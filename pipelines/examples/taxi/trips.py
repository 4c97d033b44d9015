"""Random taxi trips with the columns of the City of Chicago's data, and why they are tipped.

Every effect below works on what the row shows, a missing value included, so `true_probability` is
exact, and no model of these columns can rank the trips better than it does.
"""

import dataclasses
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
Strings: TypeAlias = npt.NDArray[np.object_]

#: Trips are drawn in blocks of this size, each from its own seed: memory does not grow with the
#: number of rows, and fewer rows are always the beginning of more.
BLOCK_ROWS = 20_000

COLUMNS = (
    "pickup_community_area", "fare", "trip_start_month", "trip_start_hour", "trip_start_day",
    "trip_start_timestamp", "pickup_latitude", "pickup_longitude", "dropoff_latitude",
    "dropoff_longitude", "trip_miles", "pickup_census_tract", "dropoff_census_tract",
    "payment_type", "company", "trip_seconds", "dropoff_community_area", "tips",
)  # fmt: skip
#: Columns of whole numbers that may be missing (and are therefore floats in memory).
NULLABLE_INTEGER_COLUMNS = frozenset(
    {
        "pickup_community_area",
        "dropoff_community_area",
        "pickup_census_tract",
        "dropoff_census_tract",
        "trip_seconds",
    }
)

# (name, share of the trips, effect on the log-odds of a good tip); the shares add up to 1.
PAYMENT_TYPES = (
    ("Cash", 0.50, -1.9),
    ("Credit Card", 0.44, 1.0),
    ("No Charge", 0.025, -1.2),
    ("Unknown", 0.02, -0.6),
    ("Prcard", 0.01, 0.4),
    ("Dispute", 0.005, -2.5),
)
COMPANIES = (
    ("Lakefront Taxi Association", 0.27, 0.3),
    ("Prairie Cab", 0.17, -0.3),
    ("Yellow Star Affiliation Services, Inc.", 0.12, 0.1),
    ("Midway & Loop Dispatch", 0.09, 0.5),
    ("Windy City Cabs, Ltd.", 0.06, -0.5),
    ('Northside "Express" Taxi, LLC', 0.035, 0.2),
    ("Blue Line Cab Company", 0.025, 0.0),
    ("4053 - 61217 A. Okafor, Independent", 0.01, 0.6),
    ("2192 - 73487 Z. Nowak, Independent", 0.008, -0.4),
    ("5129 - 98755 M. Haile", 0.006, 0.1),
    ("3094 - 24059 G. Lopez Cab Corp.", 0.004, 0.0),
    ("6743 - 78771 L. Chen, Owner-Operator", 0.002, 0.0),
)
COMPANY_MISSING_EFFECT = -0.1  # the companies' shares leave a fifth of the trips without one

# (community area, share of the pick-ups, share of the drop-offs, effect as the destination,
#  latitude, longitude in degrees)
AREAS = (
    (8, 0.33, 0.28, 0.2, 41.8996, -87.6333),
    (32, 0.24, 0.21, 0.3, 41.8809, -87.6327),
    (28, 0.11, 0.12, 0.1, 41.8743, -87.6635),
    (76, 0.08, 0.05, 0.7, 41.9803, -87.9090),
    (6, 0.07, 0.09, 0.0, 41.9442, -87.6559),
    (7, 0.06, 0.08, 0.1, 41.9227, -87.6495),
    (33, 0.03, 0.05, -0.1, 41.8572, -87.6196),
    (56, 0.03, 0.02, 0.5, 41.7925, -87.7697),
    (24, 0.02, 0.04, -0.2, 41.9012, -87.6764),
    (77, 0.02, 0.03, -0.4, 41.9868, -87.6634),
    (41, 0.006, 0.02, -0.3, 41.7941, -87.5923),
    (49, 0.004, 0.01, -0.7, 41.7063, -87.6234),
)
AREA_MISSING_SHARE = 0.06
FIRST_TIMESTAMP_SECS = 1_356_998_400  # 2013-01-01 00:00 UTC, a Tuesday
DAYS = 3 * 365
SECS_PER_DAY = 86_400
# Trips begin mostly in the evening: the weight of each hour of the day, midnight first.
HOUR_WEIGHTS = (4, 3, 2, 2, 1, 1, 2, 4, 6, 6, 5, 5, 5, 5, 5, 5, 6, 7, 8, 8, 7, 6, 6, 5)

GOOD_TIP_FARE_SHARE = 0.2


@dataclasses.dataclass(frozen=True)
class Trips:
    """A block of trips as columns, in the order of `COLUMNS`; `None` or NaN means missing.

    Attributes:
        columns: name -> array of shape [rows]. Floats are rounded as they are written.
        true_probability: float64 [rows], the probability of a tip above a fifth of the fare.
        good_tip: bool [rows], whether there was one: a draw with `true_probability`.
    """

    columns: dict[str, npt.NDArray[np.generic]]
    true_probability: FloatArray
    good_tip: npt.NDArray[np.bool_]


def generate(rows: int, seed: int) -> Iterator[Trips]:
    """Returns an iterator over `rows` trips in blocks of at most `BLOCK_ROWS`.

    Raises:
        ValueError: If `rows` or `seed` is out of range.
    """
    if rows < 1:
        raise ValueError(f"rows must be at least 1. Received: rows={rows}")
    if seed < 0:
        raise ValueError(f"seed must not be negative. Received: seed={seed}")
    return (
        _head(_block(np.random.default_rng([seed, block])), min(BLOCK_ROWS, rows - start))
        for block, start in enumerate(range(0, rows, BLOCK_ROWS))
    )


def _block(rng: np.random.Generator) -> Trips:
    """Draws `BLOCK_ROWS` trips."""
    n = BLOCK_ROWS
    hour = rng.choice(24, n, p=np.array(HOUR_WEIGHTS) / sum(HOUR_WEIGHTS))
    day_number = rng.integers(0, DAYS, n)
    timestamp = (
        FIRST_TIMESTAMP_SECS
        + day_number * SECS_PER_DAY
        + hour * 3600
        + rng.integers(0, 4, n) * 900  # the city rounds to quarters of an hour
    )
    dates = timestamp.astype("datetime64[s]")
    month = dates.astype("datetime64[M]").astype(np.int64) % 12 + 1
    weekday = (dates.astype("datetime64[D]").astype(np.int64) + 4) % 7 + 1  # 1 is Sunday

    miles = np.round(rng.lognormal(0.9, 0.9, n), 1)
    miles[rng.random(n) < 0.04] = 0.0  # the meter was not running
    rush = np.isin(hour, (7, 8, 16, 17, 18))
    pace = rng.lognormal(np.where(rush, 0.15, -0.1), 0.35, n)  # 1 is four minutes a mile
    minutes = 3 + miles * 4 * pace
    seconds = np.round(minutes).astype(np.int64) * 60.0
    seconds[rng.random(n) < 0.03] = np.nan
    fare = np.round(3.25 + 1.8 * miles + 0.25 * minutes + rng.integers(0, 3, n), 2)

    payment = rng.choice(len(PAYMENT_TYPES), n, p=[share for _, share, _ in PAYMENT_TYPES])
    company_shares = [share for _, share, _ in COMPANIES]
    company = rng.choice(len(COMPANIES) + 1, n, p=[*company_shares, 1 - sum(company_shares)])
    pickup = rng.choice(len(AREAS), n, p=[area[1] for area in AREAS])
    dropoff = rng.choice(len(AREAS), n, p=[area[2] for area in AREAS])
    pickup_known = rng.random(n) >= AREA_MISSING_SHARE
    dropoff_known = rng.random(n) >= AREA_MISSING_SHARE

    probability = 1 / (
        1 + np.exp(-_log_odds(payment, company, dropoff, dropoff_known, hour, weekday, miles, seconds))
    )
    good_tip = rng.random(n) < probability
    area_numbers = np.array([area[0] for area in AREAS], np.float64)
    tract = 17_031_000_000 + area_numbers[dropoff] * 10_000 + rng.integers(1, 9, n) * 100
    tract_known = dropoff_known & (rng.random(n) < 0.6)
    values: dict[str, npt.NDArray[np.generic]] = {
        "pickup_community_area": np.where(pickup_known, area_numbers[pickup], np.nan),
        "fare": fare,
        "trip_start_month": month,
        "trip_start_hour": hour,
        "trip_start_day": weekday,
        "trip_start_timestamp": timestamp,
        **_coordinates(rng, "pickup", pickup, pickup_known),
        **_coordinates(rng, "dropoff", dropoff, dropoff_known),
        "trip_miles": miles,
        "pickup_census_tract": np.full(n, np.nan),  # the column is empty in the city's data too
        "dropoff_census_tract": np.where(tract_known, tract, np.nan),
        "payment_type": _names(PAYMENT_TYPES, payment),
        "company": _names(COMPANIES, company),
        "trip_seconds": seconds,
        "dropoff_community_area": np.where(dropoff_known, area_numbers[dropoff], np.nan),
        "tips": _tips(rng, fare, good_tip),
    }
    return Trips({name: values[name] for name in COLUMNS}, probability, good_tip)


def _log_odds(
    payment: IntArray,
    company: IntArray,
    dropoff: IntArray,
    dropoff_known: npt.NDArray[np.bool_],
    hour: IntArray,
    weekday: IntArray,
    miles: FloatArray,
    seconds: FloatArray,
) -> FloatArray:
    """Returns the log-odds of a good tip, float64 [rows]."""
    payment_effect = np.array([effect for _, _, effect in PAYMENT_TYPES])
    company_effect = np.array([effect for _, _, effect in COMPANIES] + [COMPANY_MISSING_EFFECT])
    area_effect = np.array([area[3] for area in AREAS])
    # A long trip is tipped well up to a point, one without miles hardly; a slow one annoys.
    distance = np.where(miles > 0, 0.6 * np.tanh((miles - 2.5) / 3), -0.8)
    pace = seconds / 60 / (3 + 4 * miles)
    slowness = np.where(np.isnan(seconds), 0.0, -0.9 * np.clip(np.nan_to_num(pace) - 1, -0.5, 1))
    circumstances = (
        0.5 * np.sin(2 * np.pi * (hour - 14) / 24)  # best at eight in the evening
        + np.where((weekday == 1) | (weekday == 7), -0.3, 0.1)
        + distance
        + slowness
        + np.where(dropoff_known, area_effect[dropoff], 0.0)
    )
    # Who pays cash seldom tips on the record, in any circumstances: an interaction that a
    # linear model has to miss.
    weight = np.where(payment == 0, 0.4, 1.0)
    return payment_effect[payment] + company_effect[company] + weight * circumstances


def _tips(rng: np.random.Generator, fare: FloatArray, good_tip: npt.NDArray[np.bool_]) -> FloatArray:
    """Returns tips in dollars, clearly on the right side of a fifth of the fare: [rows]."""
    good = np.ceil(fare * rng.uniform(1.05, 1.7, fare.size) * GOOD_TIP_FARE_SHARE * 100) / 100
    poor = np.floor(fare * rng.uniform(0.3, 0.95, fare.size) * GOOD_TIP_FARE_SHARE * 100) / 100
    none = rng.random(fare.size) < 0.8
    return np.where(good_tip, good, np.where(none, 0.0, poor))


def _coordinates(
    rng: np.random.Generator, end: str, area: IntArray, known: npt.NDArray[np.bool_]
) -> dict[str, FloatArray]:
    """Returns latitude and longitude in degrees of one of a few places in each area."""
    place = rng.integers(0, 4, area.size)
    result = {}
    for axis, column in (("latitude", 4), ("longitude", 5)):
        centre = np.array([row[column] for row in AREAS])[area]
        result[f"{end}_{axis}"] = np.where(known, np.round(centre + 0.004 * place, 6), np.nan)
    return result


def _names(choices: tuple[tuple[str, float, float], ...], index: IntArray) -> Strings:
    """Returns the chosen names; the index after the last one means missing."""
    return np.array([name for name, _, _ in choices] + [None], np.object_)[index]


def _head(trips: Trips, rows: int) -> Trips:
    """Returns the first `rows` of a block."""
    return Trips(
        {name: column[:rows] for name, column in trips.columns.items()},
        trips.true_probability[:rows],
        trips.good_tip[:rows],
    )
