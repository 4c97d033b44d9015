import pytest

from pipelines.config.load import load_config
from pipelines.runs.plan.data_plan import columns_with_leading_zeros, plan_data, read_data

MODULE = "def preprocessing_fn(inputs):\n    return inputs\n\ndef trainer_fn(args, schema):\n    pass\n"


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    file = tmp_path_factory.mktemp("leading_zeros") / "module_with_codes.py"
    file.write_text(MODULE)
    return file


@pytest.fixture
def learn(tmp_path, module):
    """Returns a function that plans a run of a module, with settings."""
    file = tmp_path / "data.csv"
    rows = (f"000{number % 7 + 30},{number},{number / 2},0{number % 9}.5" for number in range(90))
    file.write_text("zip,count,y,part\n" + "\n".join(rows) + "\n")

    def make(*settings):
        config = load_config(data=str(file), label="y", settings=(f"module.file={module}", *settings))
        return plan_data(config, read_data(config))

    return make


def notes(plan):
    return [finding for finding in plan.findings if "leading zeros" in finding]


def test_a_module_that_loses_leading_zeros_is_told_how_to_keep_them(learn):
    plan = learn()
    assert columns_with_leading_zeros(plan.profile) == ("zip",)
    assert plan.text_columns == ()
    (note,) = notes(plan)
    assert note.startswith("the module gets 'zip' as int64, without the leading zeros")
    assert '[columns] zip = "category"' in note


@pytest.mark.parametrize("setting", ["columns.zip=category", "columns.zip=text", 'data.categorical=["zip"]'])
def test_they_stay_text_where_the_configuration_says_so(learn, setting):
    plan = learn(setting)
    assert plan.text_columns == ("zip",)
    assert notes(plan) == []


def test_nothing_is_said_of_a_column_that_the_user_calls_a_number(learn):
    plan = learn("columns.zip=number", "columns.count=category")
    assert plan.text_columns == ()  # `count` has no leading zeros: the module gets whole numbers
    assert notes(plan) == []
