"""Damage in one slice is found, although a metric on all examples hides it; honest data are not doubted."""

import json
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest

from components.evaluator.gate.labelled_predictions import LabelledPredictions, concatenate
from components.evaluator.gate.slice_columns import Codes, join_columns, make_column
from components.evaluator.gate.slice_doubts import (
    ALL,
    Slice,
    doubts_about_slices,
    parse_excesses,
    slice_excesses,
)

CITIES = ("Austin", "Boston", "Chicago")


def month(seed, size=1_500, kind="binary"):
    """Returns labels, true answers, and the columns that both depend on."""
    draw = np.random.default_rng(seed)
    codes = draw.choice(3, size, p=[0.2, 0.3, 0.5]).astype(np.int8)
    miles = draw.normal(size=size)
    score = 1.5 * miles + np.array([-1.0, 0.0, 1.0])[codes]
    columns = {"city": Codes(codes, CITIES), "miles": miles}
    if kind == "regression":
        return score + draw.normal(size=size), score, columns
    odds = 1 / (1 + np.exp(-score))
    return (draw.random(size) < odds).astype(float), odds, columns


def of(labels, columns, kind="binary", **predictions):
    return LabelledPredictions.from_batch(labels, predictions, None, kind, columns)


def then(seed=0, kind="binary"):
    labels, truth, columns = month(seed, kind=kind)
    given = of(labels, columns, kind, model=truth)
    return slice_excesses(given, given.answers["model"])


def doubts(labels, columns, candidate, baseline, kind="binary", known=None):
    batch = of(labels, columns, kind, candidate=candidate, baseline=baseline)
    known = then(kind=kind) if known is None else known
    answers = batch.answers
    return [*doubts_about_slices(batch, answers["candidate"], answers["baseline"], known, confidence=0.95)]


def test_the_excess_is_the_loss_beyond_that_of_a_constant_in_units_of_the_whole():
    labels = np.array([1.0] * 60 + [0.0] * 20 + [1.0] * 10 + [0.0] * 70)
    answers = np.array([0.9] * 80 + [0.2] * 80)
    codes = np.repeat(np.array([0, 1], np.int8), 80)
    given = of(labels, {"city": Codes(codes, ("A", "B"))}, model=answers)
    found = {str(one.slice): one for one in slice_excesses(given, given.answers["model"])}
    assert set(found) == {"all examples", "city = 'A'", "city = 'B'"}
    share = 70 / 160
    unit = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    loss = -(0.75 * np.log(0.9) + 0.25 * np.log(0.1))
    constant = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    of_a = found["city = 'A'"]
    assert of_a.excess == pytest.approx((loss - constant) / unit)
    assert of_a.num_examples == 80
    each = np.where(labels[:80] > 0.5, np.log(0.75 / 0.9), np.log(0.25 / 0.1)) / unit
    assert of_a.error == pytest.approx(np.std(each, ddof=1) / np.sqrt(80))


def test_the_scale_of_a_regression_does_not_matter():
    labels, truth, columns = month(1, kind="regression")
    plain, scaled = (of(n * labels, columns, "regression", model=n * truth) for n in (1, 100))
    excesses = (slice_excesses(batch, batch.answers["model"]) for batch in (plain, scaled))
    for one, other in zip(*excesses, strict=True):
        assert one.slice == other.slice
        assert one.excess == pytest.approx(other.excess)


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_labels_that_mean_something_else_in_one_city_are_doubted(kind):
    labels, truth, columns = month(2, kind=kind)
    in_boston = columns["city"].codes == 1
    wrong = np.where(in_boston, -labels if kind == "regression" else 1 - labels, labels)
    (doubt,) = doubts(wrong, columns, truth, truth, kind)
    assert doubt.startswith("the meaning of the new data has changed: the live model has lost more ")
    assert "city = 'Boston' (loss +" in doubt
    assert f"{in_boston.sum()} examples" in doubt
    assert "Austin" not in doubt


def test_a_number_that_means_something_else_in_a_part_of_its_range_is_doubted():
    labels, truth, columns = month(3)
    high = columns["miles"] > np.quantile(columns["miles"], 0.8)
    (doubt,) = doubts(np.where(high, 0.0, labels), columns, truth, truth)
    (last,) = (one.slice for one in then() if one.slice.column == "miles" and one.slice.high is None)
    assert f"miles from {last.low:.5g} (loss +" in doubt


def test_a_model_that_is_worse_in_one_slice_only_is_doubted():
    labels, truth, columns = month(4)
    in_austin = columns["city"].codes == 0
    worse = np.where(in_austin, 0.5, truth)
    (doubt,) = doubts(labels, columns, worse, truth)
    assert doubt.startswith("the model is worse than the live model, by more than chance, in city = 'Au")
    assert doubts(labels, columns, truth, worse, known=()) == []


def test_a_model_that_knows_the_label_is_doubted():
    labels, truth, columns = month(5)
    (doubt,) = doubts(labels, columns, np.where(labels > 0.5, 0.99, 0.01), truth)
    assert doubt.startswith("the model is too good: its loss is 0.01")
    # A served model without any skill is no reason: any sound model is much better.
    assert doubts(labels, columns, truth, np.full(len(labels), 0.001), known=()) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_honest_months_are_seldom_doubted(kind):
    doubted = 0
    for seed in range(100):
        labels, truth, columns = month(100 + seed, kind=kind)
        nearly = truth + np.random.default_rng(seed).normal(0, 0.01, len(truth))
        nearly = nearly if kind == "regression" else np.clip(nearly, 0.001, 0.999)
        known = then(1_000 + seed, kind)
        doubted += bool(doubts(labels, columns, nearly, truth, kind, known))
    assert doubted <= 3


def test_small_slices_missing_values_and_unknown_columns_are_left_out():
    labels, truth, columns = month(6)
    rare = np.full(len(labels), -1, np.int8)
    rare[:40] = 0
    columns = {"rare": Codes(rare, ("x",)), "many": Codes(rare, None), "gone": np.full(len(labels), np.nan)}
    given = of(labels, columns, model=truth)
    assert [one.slice for one in slice_excesses(given, given.answers["model"])] == [ALL]
    known = then()  # of columns that are not there any more
    assert doubts(labels, columns, truth, truth, known=known) == []
    numbers = np.where(np.arange(len(labels)) < 700, np.nan, np.arange(len(labels)))
    assert Slice("n", low=700.0).examples(of(labels, {"n": numbers}, model=truth)).sum() == 800


def test_excesses_travel_as_json():
    found = then()
    assert parse_excesses(json.loads(json.dumps([asdict(one) for one in found]))) == found


def test_columns_are_read_from_lists_and_joined_over_batches():
    text = make_column(pa.array([[b"b"], None, [b"a"], []]), is_category=False)
    assert (text.codes.tolist(), text.names) == ([0, -1, 1, -1], ("b", "a"))
    numbers = make_column(pa.array([[1.5], None, [2.5, 9.0], []]), is_category=False)
    assert np.array_equal(numbers, [1.5, np.nan, 2.5, np.nan], equal_nan=True)
    hours = make_column(pa.array([[7], [8], [7], None]).slice(1), is_category=True)
    assert (hours.codes.tolist(), hours.names) == ([0, 1, -1], ("8", "7"))
    other = make_column(pa.array([[b"c"], [b"a"]]), is_category=True)
    joined = join_columns([{"t": text, "n": numbers}, {"t": other, "n": numbers[:2]}])
    assert joined["t"].names == ("a", "b", "c")
    assert joined["t"].codes.tolist() == [1, -1, 0, -1, 2, 0]
    assert len(joined["n"]) == 6
    many = make_column(pa.array([[str(number).encode()] for number in range(21)]), is_category=True)
    assert many.names is None
    assert join_columns([{"t": text}, {"t": many}])["t"].names is None
    assert join_columns([{"t": text}, {"t": numbers}]) == {}
    part = of(np.ones(4), {"t": text, "n": numbers}, model=np.ones(4))
    joined = concatenate([part, part]).columns
    assert (joined["t"].codes.tolist(), len(joined["n"])) == ([1, -1, 0, -1] * 2, 8)
