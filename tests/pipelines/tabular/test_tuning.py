import json

import pytest

from components.tuner.search_space import Choice, Range
from pipelines.config.load import load_config
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError
from pipelines.runs.definitions.model_code import choose_model_code
from pipelines.tabular.tuning import SETTINGS, with_values

ROWS = 300
TREES, DEPTH = "trainer.model=boosted_trees", "tuner.space.max_depth="


@pytest.fixture
def choose(tmp_path):
    def make(*settings, rows=ROWS):
        file = tmp_path / f"data-{rows}.csv"
        file.write_text(
            "g,x,y\n" + "".join(f"g{n // 30},{n}.5,{'yes' if n % 3 else 'no'}\n" for n in range(rows))
        )
        config = load_config(data=str(file), label="y", settings=("tuner.trials=9", *settings))
        return choose_model_code(config, profile_csv([file]))

    return make


def test_auto_searches_all_models_and_tries_what_each_has_without_a_search_first(choose):
    code = choose()
    model, *others = code.tuning.space.parameters
    assert model == Choice("model", ("boosted_trees", "wide_deep", "linear"))
    for one in others:
        assert one.name.startswith(f"{one.when.value}.")
    firsts = code.tuning.first_trials
    assert [one["model"] for one in firsts] == ["boosted_trees", "wide_deep", "linear"]
    for values in firsts:
        assert code.tuning.space.contains(values)
        plan = with_values(code.plan, values)
        same = code.plan.training.model_copy(update={"model": values["model"]})
        assert plan.training == same
    assert (code.tuning.trials, code.tuning.metric, code.tuning.direction) == (9, "average_loss", "minimize")
    assert code.tuning.own_validation


def test_rows_are_held_out_in_folds_by_the_tuner_if_not_otherwise(choose):
    assert choose().tuning.folds == 3
    assert choose(rows=2_000).tuning.folds == 1
    assert choose("tuner.folds=5", rows=2_000).tuning.folds == 5
    code = choose(rows=100)
    assert not code.tuning.own_validation
    assert "model" not in code.tuning.space.names  # auto is wide_deep then
    by_column = ("split.by=column", "split.column=g", "trainer.early_stopping=false")
    assert choose(*by_column).tuning.group == "held_out_group"
    assert choose().tuning.group is None
    with pytest.raises(BadInputError, match=r"tuner\.group = 'x' is for modules"):
        choose("tuner.group=x")


def test_values_reach_the_settings_of_their_model_all_of_which_are_fields(choose):
    plan = choose().plan
    values = {"model": "boosted_trees", "boosted_trees.max_depth": 3, "boosted_trees.n_trees": 70}
    found = with_values(plan, values).training
    assert (found.model, found.trees.max_depth, found.trees.n_trees) == ("boosted_trees", 3, 70)
    assert found.max_steps("boosted_trees") == 70 * 3 * plan.training.trees.num_batches
    assert found.learning_rate == plan.training.learning_rate
    deep = choose("trainer.model=wide_deep").plan
    found = with_values(deep, {"hidden_units": "128,64", "dropout": 0.4}).training
    assert (found.hidden_units, found.dropout) == ((128, 64), 0.4)
    line = choose("trainer.model=linear").plan
    assert with_values(line, {"learning_rate": 0.07}).training.linear_learning_rate == 0.07
    assert with_values(line, {}) == line
    training = choose().plan.training
    for model, settings in SETTINGS.items():
        fields = type(training.trees if model == "boosted_trees" else training).model_fields
        assert {one.field for one in settings.values()} <= set(fields)


def test_a_space_and_a_metric_of_ones_own(choose):
    code = choose(TREES, f"{DEPTH}{{low = 8, high = 9}}")
    assert code.tuning.space.parameters == (Range("max_depth", 8, 9),)
    assert code.tuning.first_trials == ({"max_depth": 6},)  # the default, though it is not in the space
    code = choose("tuner.space.linear={learning_rate = [0.1, 0.2]}")
    assert code.tuning.space.names == ("model", "linear.learning_rate")
    assert [one["model"] for one in code.tuning.first_trials] == ["linear"]
    assert choose("tuner.metric=auc").tuning.direction == "maximize"
    assert choose("tuner.metric=average_loss").tuning.direction == "minimize"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["tuner.space.rate=[1, 2]"], "trainer.model is 'auto'.*tuner.space.boosted_trees.rate"),
        (["tuner.space.trees={a = [1, 2]}"], "tuner.space.trees: there is no such model"),
        (
            ["trainer.model=linear", "tuner.space.wide_deep={dropout = [0.1, 0.2]}"],
            "tuner.space.wide_deep: it is not trained. Models here: linear",
        ),
        (
            [TREES, "tuner.space.max_dept=[1, 2]"],
            "boosted_trees has no setting 'max_dept' to search. Did you mean 'max_depth'",
        ),
        (
            [TREES, f"{DEPTH}{{low = 1, high = 99}}"],
            "tuner.space.max_depth: 99 is not allowed; the setting takes from 1 to 16",
        ),
        (
            [TREES, f"{DEPTH}{{low = 1.5, high = 3}}"],
            "1.5 is not an integer",
        ),
        (
            ["trainer.model=wide_deep", "tuner.space.learning_rate={low = 0.0, high = 1.0}"],
            "0.0 is not allowed; the setting takes above 0",
        ),
        (["trainer.model=wide_deep", "tuner.space.hidden_units=['a']"], "'a' is not a list of layers"),
        (
            [TREES, f"{DEPTH}{{low = 2, high = 5, default = 3}}"],
            "max_depth.default = 3: the first trial of a generic model uses the values of .trainer.",
        ),
        (["tuner.metric=accurac"], "'accurac'.*binary problem. Did you mean 'accuracy'"),
        (["tuner.metric=root_mean_squared_error"], "no such metric for a binary problem"),
    ],
)
def test_faults_are_found_before_anything_runs(choose, settings, message):
    with pytest.raises(BadInputError, match=message):
        choose(*settings)


CODE = "def preprocessing_fn(inputs):\n    return inputs\n\n\ndef trainer_fn(args, schema):\n    return {}\n"


def test_a_module_names_its_settings(choose, tmp_path):
    file = tmp_path / "tuned_code.py"
    file.write_text(CODE)
    module = f"module.file={json.dumps(str(file))}"
    code = choose(module, "tuner.space.units=[32, 64]")
    assert code.tuning.space.parameters == (Choice("units", (32, 64)),)
    assert code.tuning.firsts == ({},)
    assert not code.tuning.own_validation
    for settings, message in (
        ([], "tuner.space is missing"),
        (["tuner.space.m={a = [1, 2]}"], "tuner.space.m: groups of settings are for the generic models"),
        (["tuner.space.a=[1, 2]", "tuner.metric=gini"], "'gini': it is not known whether higher"),
    ):
        with pytest.raises(BadInputError, match=message):
            choose(module, *settings)
    assert choose(module, "tuner.space.a=[1]", "tuner.metric=gini", "tuner.direction=maximize")


@pytest.mark.parametrize(
    ("by", "what"), [("column", "the column 'x'"), ("time", "the day or the week of 'x'")]
)
def test_a_module_names_what_is_held_out_together(choose, tmp_path, by, what):
    file = tmp_path / f"grouped_by_{by}.py"
    file.write_text(CODE)
    module = f"module.file={json.dumps(str(file))}"
    settings = [module, "tuner.space.units=[32, 64]", f"split.by={by}", "split.column=x"]
    with pytest.raises(BadInputError, match=f"tuner.group is missing: .*preprocessing_fn return {what}"):
        choose(*settings)
    assert choose(*settings, "tuner.group=customer").tuning.group == "customer"
