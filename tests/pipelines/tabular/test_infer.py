import re
import shlex

import lightgbm
import numpy as np
import pytest

from estimator_core.boosted_trees.settings import BoostingSettings
from pipelines.config.load import load_config
from pipelines.data.dialect import Dialect
from pipelines.data.formats.cell_format import TextFormat
from pipelines.data.formats.number_format import NumberFormat
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError
from pipelines.tabular.infer import infer_plan
from pipelines.tabular.label import check_label_column
from tests.pipelines.data.tables import write_table


def plan_for(folder, columns, label, *settings):
    """Infers the plan of a table given as {name: list of cells}."""
    file = write_table(folder, columns)
    config = load_config(data=str(file), label=label, settings=settings)
    return infer_plan(profile_csv([file]), config)


X = [number * 0.37 for number in range(300)]
WORDS = ["p", "q"]


def rows(labels, count=60, **columns):
    """Returns a table of numbers whose labels repeat."""
    return {"x": X[:count], **columns, "y": (labels * count)[:count]}


def refused(folder, columns, settings, message):
    with pytest.raises(BadInputError, match=message):
        plan_for(folder, columns, "y", *settings)


@pytest.mark.parametrize(
    ("values", "problem_type", "classes"),
    [
        (["no", "yes"], "binary", ("no", "yes")),
        (["true", "false"], "binary", ("false", "true")),
        ([0, 1], "binary", ("0", "1")),
        (["0.0", "1.0"], "binary", ("0", "1")),
        (["b", "a", "c"], "multi-class", ("a", "b", "c")),
        ([10, 9, 8], "multi-class", ("8", "9", "10")),
        (list(range(30)), "regression", ()),
        ([0.5, 1.5, 2.5], "regression", ()),
    ],
)
def test_the_problem_type_follows_from_the_label_values(tmp_path, values, problem_type, classes):
    plan = plan_for(tmp_path, rows(values), "y")
    assert plan.label.problem_type == problem_type
    assert plan.label.classes == classes


def test_the_problem_type_can_be_set(tmp_path):
    columns = rows([0, 1, 2, 3])
    plan = plan_for(tmp_path, columns, "y", "data.problem_type=regression")
    assert plan.label.problem_type == "regression"
    assert plan.label.mean == 1.5
    assert plan.label.stddev == pytest.approx(1.25**0.5)  # variance of 0, 1, 2, 3
    refused(tmp_path, columns, ["data.problem_type=binary"], "2 classes; received 4")
    refused(tmp_path, rows([0, 1]), ["data.problem_type=multi-class"], "3 classes or more; received 2")


def test_rows_without_a_label_are_not_counted(tmp_path):
    columns = {"x": X, "y": [*["p", "q"] * 90, *[""] * 120]}
    training = plan_for(tmp_path, columns, "y").training
    assert (training.model, training.early_stopping) == ("wide_deep", False)
    refused(tmp_path, columns, ["trainer.decide=f1"], r"at least 200 rows \(there are 180\)")


def test_roles_of_columns(tmp_path):
    columns = {
        "row": range(3_000),
        "real": [number * 0.1 for number in range(3_000)],
        "hour": [number % 24 for number in range(3_000)],
        "city name": ["Oslo", "Rome", ""] * 1_000,
        "code": [f"c{number % 2_100}" for number in range(3_000)],
        "uuid": [f"u{number}" for number in range(3_000)],
        "same": ["x"] * 3_000,
        "gone": [""] * 3_000,
        "rare": ["1.5"] + [""] * 2_998 + ["2.5"],
        "y": ["p", "q"] * 1_500,
    }
    plan = plan_for(tmp_path, columns, "y")
    assert {feature.column for feature in plan.numeric} == {"real", "hour"}
    assert plan.numeric[1].center == 11.5  # the mean of 0 to 23
    categorical = {feature.column: feature for feature in plan.categorical}
    assert set(categorical) == {"hour", "city name", "code"}
    assert categorical["city name"].num_values == 2
    assert categorical["city name"].hash_buckets is None
    assert categorical["code"].hash_buckets == 4_200  # twice 2,100 distinct values
    assert set(plan.ignored) == {"row", "uuid", "same", "gone", "rare"}
    assert plan.ignored["row"] == "numbers the rows"
    assert plan.slices == ("city name",)


def test_the_configuration_goes_before_the_inference(tmp_path):
    columns = {"n": [1, 2, 3] * 20, "row": range(60), "z": X[:60], "y": WORDS * 30}
    settings = ['data.categorical=["n"]', 'data.numeric=["row"]', 'data.exclude=["z"]']
    plan = plan_for(tmp_path, columns, "y", *settings)
    assert [feature.column for feature in plan.categorical] == ["n"]
    assert [feature.column for feature in plan.numeric] == ["row"]
    assert plan.ignored == {"z": "excluded by data.exclude"}
    refused(tmp_path, columns, ['data.exclude=["w"]'], "There is no column 'w'")


def test_labels_that_are_missing_or_written_in_two_ways(tmp_path):
    plan = plan_for(tmp_path, rows(["p"] * 30 + ["q"] * 20 + [""] * 10), "y")
    assert plan.label.majority_share == 0.6  # 30 of 50
    plan = plan_for(tmp_path, rows(["1", "1.0", "0"]), "y")
    assert (plan.label.problem_type, plan.label.classes) == ("binary", ("0", "1"))
    assert plan.label.majority_share == pytest.approx(2 / 3)


NUMBERS = [*X[:57], "oops", "oops", "none"]
BEYOND_FLOAT = ["1e200", "inf", "-inf", "1e39"]
NO_STOPPING = "trainer.early_stopping=false"
CLUSTER = ("trainer.workers=1", "trainer.ps=1")
UNLIKE_NUMBERS = [0, 1] * 29 + [0, "1_0"]


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        pytest.param(rows(["p"]), (), r"lines 2 to 61.*every label is 'p'", id="one label"),
        pytest.param(
            rows(["+", "-"]),
            (),
            r"every label is '\+'.* 30 rows count as unlabelled: .*'-'\. If one of",
            id="a label that is missing",
        ),
        pytest.param(rows(WORDS * 5 + [""] * 50), (), "10 rows have a label", id="few labels"),
        pytest.param(
            rows(WORDS, x=["1"] * 60), (), r"no column is left.*'x': has the same value", id="no column"
        ),
        pytest.param(
            rows(WORDS, z=X[:60]),
            ("columns.z=text", 'data.exclude=["z"]'),
            r"\[columns\] z = 'text': data\.exclude names this",
            id="a column twice",
        ),
        pytest.param(
            rows(WORDS, b=NUMBERS),
            ('data.numeric=["b"]',),
            r"b = .*data\.csv, line 59: 'oops' is not a number, nor are 2 others of 60 cells.* Correct",
            id="text",
        ),
        *(
            (rows([*X[:59], label]), (), rf"data\.csv, line 61, column 'y': the label '{label}'")
            for label in BEYOND_FLOAT
        ),
        (rows(UNLIKE_NUMBERS), (), "line 61, column 'y': the label '1_0' is not a number"),
        # 2^24
        (rows(["16777216.0", "16777217.0"]), (), "line 3, column 'y': the class 16777217 is beyond 16777216"),
        (rows([2**53, 2**53 + 1]), (), f"the class {2**53 + 1} is beyond {2**53}"),
        (rows([2**63, 0]), (), f"the class {2**63} is beyond 16777216"),  # no int64, so a float column
        (rows([1_700_000_000 + n for n in range(60)]), (), "Subtract a constant such as 17000000"),
    ],
)
def test_what_cannot_be_learned(tmp_path, columns, settings, message):
    refused(tmp_path, columns, settings, message)


def test_labels_that_only_just_can_be_learned(tmp_path):
    assert plan_for(tmp_path, rows([2**53, 0]), "y").label.classes[1] == str(2**53)
    plan = plan_for(tmp_path, rows(UNLIKE_NUMBERS), "y", "data.problem_type=multi-class")
    assert plan.label.classes == ("0", "1", "1_0")


def test_a_number_beyond_float32_counts_as_missing(tmp_path):
    plan = plan_for(tmp_path, rows([0, 1], b=[*X[:59], "1e39"]), "y")
    assert [part.has_missing for part in plan.numeric] == [False, True]


def test_similar_names_and_semicolons_get_advice(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("size,species\n1,a\n")
    with pytest.raises(BadInputError, match=r"there is no label column 'specie'\. Did you mean 'species'"):
        check_label_column(profile_csv([file]), "specie")
    for mark in ";^~: \x01":
        file.write_text(f"a{mark}y\n1{mark}0\n2{mark}1\n")
        with pytest.raises(
            BadInputError, match=r"seem to be separated by .*--set 'data\.delimiter="
        ) as error:
            check_label_column(profile_csv([file]), "y")
        (option,) = re.findall("--set ('.*?')", str(error.value))
        config = load_config(data=str(file), label="y", settings=shlex.split(option))
        assert config.data.delimiter == mark
    file.write_text("a name: b\n1\n")  # that of a column
    with pytest.raises(BadInputError, match=r"no label column 'y'\. Columns: 'a name: b'"):
        check_label_column(profile_csv([file]), "y")
    file.write_text("a;y\n1,5;0\n2,5;1\n")
    with pytest.raises(
        BadInputError, match=r"line 2 .*separated by semicolons: give --set 'data\.delimiter=\";\"'"
    ):
        profile_csv([file])
    file.write_text("a,y\n1,5;0,3\n")  # separated by commas: the usual advice
    with pytest.raises(BadInputError, match="Put a field that contains a comma in double quotes"):
        profile_csv([file])


def test_what_is_written_otherwise_than_float_reads_it_becomes_features(tmp_path):
    columns = {
        "price": [f"${number},000.50" if number % 4 else "" for number in range(1, 121)],
        "at": [f"2014-01-{number % 28 + 1:02d} {number % 24:02d}:00" for number in range(120)],
        "born": [f"19{number % 60 + 20}-{number % 12 + 1:02d}-01" for number in range(120)],
        "vip": ["Yes", "no", "NO"] * 40,
        "zip": [f"{number % 7:05d}" for number in range(120)],
        "note": [f"it came {number} days late" for number in range(120)],
        "y": ["p", "q"] * 60,
    }
    file = write_table(tmp_path, columns, ";")
    config = load_config(data=str(file), label="y")
    plan = infer_plan(profile_csv([file], Dialect(";")), config)
    price, at, born = plan.numeric
    assert price.number_format == NumberFormat(".", "USD")
    assert (price.column, price.has_missing) == ("price", True)
    # 1 to 120 without the multiples of 4, whose mean is 62: (7260 - 1860) / 90 = 60.
    assert price.center == pytest.approx(60_000.5)
    assert (at.column, at.date, born.date) == ("at", "iso", "iso")
    parts = [(part.column, part.part) for part in plan.categorical if part.date]
    # Four weeks tell nothing of months, and there is no time of day in the other column.
    assert parts == [("at", "weekday"), ("at", "hour"), ("born", "month"), ("born", "weekday")]
    words = {part.column: (part.num_values, part.words) for part in plan.categorical if not part.date}
    assert words == {"vip": (2, ("yes", "no")), "zip": (7, None)}
    assert [(part.column, part.has_pairs) for part in plan.text] == [("note", False)]
    assert plan.text_columns == ("zip",)
    assert plan.text_formats == {"zip": TextFormat(width=5)}
    assert set(plan.columns) == set(columns)


def test_dates_that_cannot_be_read_are_not_used(tmp_path):
    columns = rows([0, 1], d=["01/02/2014", "03/04/2014"] * 30)
    plan = plan_for(tmp_path, columns, "y")
    assert plan.ignored == {"d": "day and month cannot be told apart (set data.dates)"}
    assert plan_for(tmp_path, columns, "y", "data.dates=day-first").numeric[1].column == "d"


@pytest.mark.parametrize(
    ("num_rows", "settings", "model"),
    [
        (300, (), "auto"),
        (199, (), "wide_deep"),  # too few to hold some out
        (300, (NO_STOPPING,), "wide_deep"),
        (300, CLUSTER, "wide_deep"),
        (300, ("trainer.model=linear", *CLUSTER), "linear"),
        (50, ("trainer.model=boosted_trees",), "boosted_trees"),
    ],
)
def test_models_are_compared_where_rows_can_be_held_out(tmp_path, num_rows, settings, model):
    plan = plan_for(tmp_path, rows(WORDS, num_rows), "y", *settings)
    assert plan.training.model == model
    says_why = model == "wide_deep"
    assert bool(plan.training.reason) == says_why
    assert plan.notes()[1].endswith(plan.training.reason)


@pytest.mark.parametrize(
    ("label", "n_trees"),
    [
        (["a", "b"], 2_000),
        ([f"class {number:02}" for number in range(16)], 250),  # 4,000 trees in all
        ([number * 0.5 for number in range(80)], 2_000),
    ],
)
def test_trees_are_made_for_the_rows_and_the_classes(tmp_path, label, n_trees):
    columns = {"x": [number * 0.37 for number in range(8_000)], "y": (label * 4_000)[:8_000]}
    trees = plan_for(tmp_path, columns, "y").training.trees
    assert (trees.n_trees, trees.learning_rate, trees.max_depth) == (n_trees, 0.05, 6)
    assert trees.min_node_examples == 20
    assert trees.min_node_weight * 8_000 == pytest.approx(1e-3)
    assert trees.batch_size * trees.num_batches > 8_000
    settings = ("trainer.n_trees=9", "trainer.max_depth=3")
    trees = plan_for(tmp_path, columns, "y", *settings).training.trees
    assert (trees.n_trees, trees.max_depth) == (9, 3)
    grown_to_the_end = plan_for(tmp_path, columns, "y", NO_STOPPING)
    assert grown_to_the_end.training.trees.n_trees == min(n_trees, 800)


def test_leaves_are_small_enough_for_classes_that_are_told_apart(tmp_path):
    """A limit of the Hessians ends the growing where p * (1 - p) falls to 0; with 2.5 the loss was 0.0153."""
    random = np.random.default_rng(2)
    classes = random.integers(0, 3, 680)
    matrix = 8.0 * np.eye(3)[classes] + random.normal(size=(680, 3))
    columns = {f"x{at}": matrix[:340, at].tolist() for at in range(3)}
    names = [f"kind {number}" for number in classes[:340]]
    trees = plan_for(tmp_path, {**columns, "y": names}, "y").training.trees
    settings = BoostingSettings(
        trees.num_batches,
        max_depth=trees.max_depth,
        learning_rate=trees.learning_rate,
        l2_regularization=trees.l2_regularization,
        min_node_weight=trees.min_node_weight,
        min_node_examples=trees.min_node_examples,
    )
    own = {**settings.parameters(340, 3, 1.0), "objective": "multiclass", "num_class": 3}
    defaults = {"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1}
    losses = []
    for parameters, num_trees in ((own, 400), (defaults, 100)):
        data = lightgbm.Dataset(matrix[:340], classes[:340], params=parameters)
        chances = lightgbm.train(parameters, data, num_trees).predict(matrix[340:])
        losses.append(-np.log(chances[np.arange(340), classes[340:]]).mean())
    assert losses[0] < losses[1]


@pytest.mark.parametrize(("num_rows", "num_buckets"), [(900, 0), (1_000, 10), (20_000, 20)])
def test_quantile_buckets_need_rows_for_each(tmp_path, num_rows, num_buckets):
    """Two columns of numbers: ten buckets of each need 50 rows."""
    columns = {
        "x": [number * 0.37 for number in range(num_rows)],
        "z": [number * 0.11 for number in range(num_rows)],
        "y": [number % 2 for number in range(num_rows)],
    }
    assert plan_for(tmp_path, columns, "y").num_buckets == num_buckets


def test_groups_of_the_split_are_those_of_the_held_out_rows(tmp_path):
    columns = rows([0, 1], who=["ann", "bob", "cyd"] * 20)
    plan = plan_for(tmp_path, columns, "y", "split.by=column", "split.column=who")
    assert plan.group == "who"
    assert "who" not in plan.columns
    assert plan.read_columns == ("y", "x", "who")
    assert plan_for(tmp_path, columns, "y").group is None


def test_trees_of_text_alone_are_refused(tmp_path):
    words = ["late", "early", "slow", "quick", "warm", "cold", "clean", "dirty", "kind", "rude"]
    columns = {
        "note": [f"{words[number % 10]} and {words[number // 10]} ride {number}" for number in range(60)],
        "y": [0, 1] * 30,
    }
    settings = ("columns.note=text", "trainer.model=boosted_trees")
    refused(tmp_path, columns, settings, r"trees need numbers or categories, and .*data\.csv has")
    plan = plan_for(tmp_path, columns, "y", "columns.note=text")
    assert len(plan.text) == 1


@pytest.mark.parametrize(
    ("num_rows", "settings", "steps"),
    [
        (900, (), 3_200),
        (900, (NO_STOPPING,), 800),
        (9_600, (NO_STOPPING,), 1_000),  # ten epochs of 6,400 rows, 64 at a time
        (9_600, (), 4_000),
        (9_600, ("trainer.batch_size=1",), 40_000),
        (9_600, ("trainer.batch_size=1", NO_STOPPING), 20_000),
        (9_600, ("trainer.train_steps=7",), 7),
    ],
)
def test_the_steps_of_a_training(tmp_path, num_rows, settings, steps):
    columns = {"x": [n * 0.37 for n in range(num_rows)], "y": [n % 2 for n in range(num_rows)]}
    assert plan_for(tmp_path, columns, "y", *settings).training.train_steps == steps


@pytest.mark.parametrize(
    ("decide", "note"),
    [
        ("", "positive class: 'late', 25 % of the rows; predicted at p > 0.5"),
        ("=0.25", "positive class: 'late', 25 % of the rows; predicted at p > 0.25"),
        (
            ".recall=0.8",
            "positive class: 'late', 25 % of the rows; predicted at p > a threshold that is chosen on "
            "held-out rows (recall of at least 0.8)",
        ),
    ],
)
def test_the_positive_class_is_named(tmp_path, decide, note):
    """The labels sort as "late", "punctual"."""
    settings = ["data.positive=late", *([f"trainer.decide{decide}"] if decide else [])]
    plan = plan_for(tmp_path, rows(["late", "punctual", "punctual", "punctual"], 300), "y", *settings)
    assert plan.label.classes == ("punctual", "late")
    assert plan.notes()[2] == note
    assert plan.training.decide == ({"recall": 0.8} if "recall" in decide else 0.25 if decide else None)
    assert type(plan).model_validate(plan.model_dump(mode="json")) == plan


THREE, TWO, NUMBER = ["a", "b", "c"], ["a", "b"], [0.5, 1.5]
F1, INTERVAL = "trainer.decide=f1", "trainer.interval="


@pytest.mark.parametrize(
    ("num_rows", "values", "settings", "message"),
    [
        (300, THREE, [F1], "is for two classes, and the label 'y' has 3 classes"),
        (300, NUMBER, ["trainer.decide=0.3"], "is for two classes, and the label 'y' is a number"),
        (199, TWO, [F1], "takes at least 200 rows (there are 199). Or give a threshold"),
        (300, TWO, [F1, NO_STOPPING], "takes trainer.early_stopping = true"),
        (300, TWO, [F1, *CLUSTER], "takes a training without trainer.workers"),
        (300, TWO, ["data.positive=c"], "data.positive = 'c'; the classes are 'a' and 'b'"),
        (300, THREE, ["data.positive=c"], "data.positive = 'c': this is for two classes"),
        (300, NUMBER, ["data.positive=1"], "data.positive = 1: this is for two classes"),
        (300, TWO, [f"{INTERVAL}0.9"], "intervals are for numbers, and the label 'y' has 2 classes"),
        (199, NUMBER, [f"{INTERVAL}0.9"], "at least 19 held-out training rows, and there are 0."),
        # Two thirds of the rows train, and all of them are held out once.
        (300, NUMBER, [f"{INTERVAL}0.995"], "takes at least 399 held-out training rows"),
        (300, NUMBER, [f"{INTERVAL}0.99", "trainer.folds=1"], "199 held-out training rows, and there are 33"),
        (300, NUMBER, [f"{INTERVAL}0.9", NO_STOPPING], "takes trainer.early_stopping"),
    ],
)
def test_decisions_that_can_not_be_made(tmp_path, num_rows, values, settings, message):
    refused(tmp_path, rows(values, num_rows), settings, re.escape(message))


def test_decisions_that_need_no_held_out_rows(tmp_path):
    plan = plan_for(tmp_path, rows([0, 1]), "y", "trainer.decide=0.3", "data.positive=0")
    assert plan.label.classes == ("1", "0")
    assert not plan_for(tmp_path, rows(THREE), "y", "trainer.decide=accuracy").decides
