import pytest

from pipelines.config import load_config
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError
from pipelines.tabular.infer import check_label_column, infer_plan
from pipelines.tabular.plan import FeaturePlan, TabularPlan


def plan_for(folder, columns, label, *settings):
    """Infers the plan of a table given as {name: list of cells}."""
    file = folder / "data.csv"
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(map(str, row)) for row in ([*columns], *rows)]
    file.write_text("\n".join(lines) + "\n")
    config = load_config(data=str(file), label=label, settings=settings)
    return infer_plan(profile_csv([file]), config)


X = [number * 0.37 for number in range(60)]


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
def test_problem_types(tmp_path, values, problem_type, classes):
    label = (values * 60)[:60]
    plan = plan_for(tmp_path, {"x": X, "y": label}, "y")
    assert plan.label.problem_type == problem_type
    assert plan.label.classes == classes


def test_the_problem_type_can_be_set(tmp_path):
    label = [0, 1, 2, 3] * 15
    plan = plan_for(tmp_path, {"x": X, "y": label}, "y", "data.problem_type=regression")
    assert plan.label.problem_type == "regression"
    assert plan.label.mean == 1.5
    assert plan.label.stddev == pytest.approx(1.25**0.5)  # variance of 0, 1, 2, 3
    with pytest.raises(BadInputError, match="2 classes; received 4"):
        plan_for(tmp_path, {"x": X, "y": label}, "y", "data.problem_type=binary")


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
    columns = {"n": [1, 2, 3] * 20, "row": range(60), "z": X, "y": ["p", "q"] * 30}
    settings = ['data.categorical=["n"]', 'data.numeric=["row"]', 'data.exclude=["z"]']
    plan = plan_for(tmp_path, columns, "y", *settings)
    assert [feature.column for feature in plan.categorical] == ["n"]
    assert [feature.column for feature in plan.numeric] == ["row"]
    assert plan.ignored == {"z": "excluded by data.exclude"}
    with pytest.raises(BadInputError, match="There is no column 'w'"):
        plan_for(tmp_path, columns, "y", 'data.exclude=["w"]')


def test_majority_share_ignores_missing_labels(tmp_path):
    plan = plan_for(tmp_path, {"x": X, "y": ["p"] * 30 + ["q"] * 20 + [""] * 10}, "y")
    assert plan.label.majority_share == 0.6  # 30 of 50


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (["p"] * 60, r"lines 2 to 61.*every label is 'p'"),
        (["+", "-"] * 30, r"every label is '\+'.* 30 rows count as unlabelled: .*'-'\. If one of"),
        (["p", "q"] * 5 + [""] * 50, "10 rows have a label"),
    ],
)
def test_labels_that_cannot_be_learned(tmp_path, label, message):
    with pytest.raises(BadInputError, match=message):
        plan_for(tmp_path, {"x": X, "y": label}, "y")


def test_no_column_is_left(tmp_path):
    with pytest.raises(BadInputError, match=r"no column is left.*'x': has the same value"):
        plan_for(tmp_path, {"x": ["1"] * 60, "y": ["p", "q"] * 30}, "y")


def test_label_column_is_checked(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("size,species\n1,\n2,\n")
    profile = profile_csv([file])
    with pytest.raises(
        BadInputError, match=r"line 1: there is no label column 'specie'\. Did you mean 'species'"
    ):
        check_label_column(profile, "specie")
    with pytest.raises(BadInputError, match="'species' is empty in all 2 rows"):
        check_label_column(profile, "species")
    file.write_text("size;species\n1;a\n")
    with pytest.raises(BadInputError, match="not seem to be separated by commas"):
        check_label_column(profile_csv([file]), "species")


def test_plans_travel_as_json(tmp_path):
    columns = {"x": X, "y": [0, 1] * 30}
    plan = plan_for(tmp_path, columns, "y")
    assert TabularPlan.from_custom_config(plan.training_config()) == plan
    features = FeaturePlan.from_custom_config(plan.feature_config())
    assert features.numeric == plan.numeric
    # What concerns the training only must not make Transform run again.
    other = plan_for(tmp_path, columns, "y", "trainer.train_steps=7")
    assert other.feature_config() == plan.feature_config()
    assert other.training_config() != plan.training_config()
