from pathlib import Path

import pytest
import tomllib

from pipelines.config.load import load_config
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.errors import BadInputError

MINIMAL = '[data]\npath = "data.csv"\nlabel = "y"\n'
THRESHOLD = '[[evaluator.thresholds]]\nmetric = "auc"\n'


def write(folder, text):
    file = folder / "pipeline.toml"
    file.write_text(text)
    return file


def test_data_and_label_are_enough():
    config = load_config(data="folder/trips.csv", label="tips")
    assert (config.data.path, config.data.label) == ("folder/trips.csv", "tips")
    assert (config.name, config.module) == ("trips", None)
    assert load_config(data="x/my trips (1).csv", label="y").name == "my-trips--1"


def test_paths_of_a_file_are_relative_to_it_and_set_goes_before_options_before_the_file(tmp_path):
    file = write(tmp_path, MINIMAL + '[module]\nfile = "code.py"\n')
    config = load_config(file)
    assert config.data.path == str(tmp_path / "data.csv")
    assert config.module.file == str(tmp_path / "code.py")
    file = write(tmp_path, MINIMAL + "[trainer]\ntrain_steps = 10\neval_steps = 20\n")
    config = load_config(file, data="b.csv", settings=["trainer.train_steps=30", "data.label=z"])
    assert (config.data.path, config.data.label) == ("b.csv", "z")
    assert (config.trainer.train_steps, config.trainer.eval_steps) == (30, 20)


def test_set_takes_toml_values_and_plain_text(tmp_path):
    settings = [
        "trainer.hidden_units=[8, 4]",
        "evaluator.label=tips_xf",
        'data.exclude=["a"]',
        'evaluator.thresholds=[{metric = "auc", lower = 0.6}]',
        "trainer.custom_config.rate=0.5",
    ]
    config = load_config(data="a.csv", label="y", settings=settings)
    assert config.trainer.hidden_units == (8, 4)
    assert config.evaluator.label == "tips_xf"
    assert config.evaluator.thresholds[0].lower == 0.6
    assert config.trainer.custom_config == {"rate": 0.5}


def test_a_missing_file_a_name_that_is_too_long_and_a_quoted_setting(tmp_path):
    with pytest.raises(BadInputError, match=r"none\.toml does not exist"):
        load_config(tmp_path / "none.toml")
    given = load_config(data="a", label="b", settings=['columns."a.b"="number"'])
    assert given.columns == {"a.b": "number"}
    with pytest.raises(BadInputError, match=r"\(5000 characters\) cannot be read: File name too"):
        load_config(Path("x" * 5000))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[trainer]\ntrain_step = 5\n", r"trainer\.train_step = 5.*mean train_steps"),
        ("[trianer]\ntrain_steps = 5\n", "trianer.*mean trainer"),
        ("[trainer]\ntrain_steps = 0\n", r"trainer\.train_steps = 0.*greater than"),
        ("[trainer]\nhidden_units = [8, 0]\n", r"hidden_units\.1 = 0: .* greater than or equal to 1"),
        (f"[trainer]\ntrain_steps = {2**31}\n", r"less than or equal to 2147483647"),
        ("[trainer]\nlearning_rate = inf\n", r"learning_rate = inf: .* finite"),
        (f"[trainer]\nseed = {'9' * 5000}\n", r"9999999999\.\.\. on line 5 has 5000 digits"),
        (f"x = {'[' * 5000}{']' * 5000}\n", "its values are nested too deeply"),
        (f"[trainer.custom_config]\nx = {'[' * 60}{']' * 60}\n", "nested more than 50 levels deep"),
        (
            "[trainer.custom_config.a]\nb = [1, 2020-01-02]\n",
            r"custom_config\.a\.b\[1\] = 2020-01-02 is a date, which JSON does not have; write it as text",
        ),
        (f"{THRESHOLD}lowr = 1\n", r"evaluator\.thresholds\.0\.lowr.*mean lower"),
        (THRESHOLD, "at least one of lower"),
        ("[module]\n", "exactly one of path"),
        ('[beam]\nargs = ["workers=2"]\n', "'workers=2' is not a Beam option"),
        ('[example_validator]\non_anomalies = "stop"\n', "'stop'.*'warn', 'fail' or 'fail_if_broken'"),
        ('[schema]\npaht = "s"\n', r"schema\.paht = 's': .* Did you mean path\?"),
        ('[schema]\npath = "s.pbtxt"\ninfer_feature_shape = true\n', "no effect with a path"),
    ],
)
def test_values_that_cannot_be_used(tmp_path, text, message):
    with pytest.raises(BadInputError, match=f"(?s){message}") as error:
        load_config(write(tmp_path, MINIMAL + text))
    assert str(tmp_path / "pipeline.toml") in str(error.value)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[data]\nlabel = 'y'\n", r"data\.path is missing.*--data"),
        ("[data]\npath = 'y'\n", r"data\.label is missing.*--label"),
        ("[data\n", "not valid TOML.*line 1"),
    ],
)
def test_what_every_configuration_needs(tmp_path, text, message):
    with pytest.raises(BadInputError, match=message):
        load_config(write(tmp_path, text))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("trainer", r"section\.key=value, received 'trainer'"),
        ("columns.a.b=number", r"is quoted: --set 'columns\.\"a\.b\"=number'"),
        ("data.path.x=1", r"data\.path is not a section"),
        ("evaluator.slices.x=1", r"x=1: evaluator\.slices is a list\. .*'evaluator\.slices=\[\.\.\.\]'"),
        (f"trainer.seed={'9' * 5000}", r"^--set trainer\.seed=9+\.\.\..* has 5000 digits"),
        (f"trainer.custom_config.x={'[' * 5000}{']' * 5000}", "nested too deeply"),
        (f"trainer.custom_config{'.x' * 5000}=1", "nested more than 50 levels deep"),
        ("data.positive=true", "True: input should be a valid string"),  # not the class 1
        (f"data{'.x' * 5000}=1", r"data\.x.*there is no such key"),
    ],
)
def test_settings_that_cannot_be_used(setting, message):
    with pytest.raises(BadInputError, match=message) as error:
        load_config(data="a.csv", label="y", settings=["evaluator.slices=[[]]", setting])
    assert len(str(error.value)) < 600


def test_the_schema_section(tmp_path):
    config = load_config(write(tmp_path, MINIMAL + '[schema]\npath = "s.pbtxt"\n'))
    assert config.schema_.path == str(tmp_path / "s.pbtxt")
    assert PipelineConfig.model_validate(config.model_dump(mode="json")) == config


def test_a_cluster_of_the_trainer(tmp_path):
    assert load_config(data="a.csv", label="y").trainer.workers == 0
    file = write(tmp_path, MINIMAL + "[trainer]\nworkers = 2\nps = 1\n")
    config = load_config(file, settings=["trainer.ps=3", "trainer.evaluator=true"])
    assert (config.trainer.workers, config.trainer.ps, config.trainer.evaluator) == (2, 3, True)
    assert PipelineConfig.model_validate(config.model_dump(mode="json")) == config


@pytest.mark.parametrize("content", ["", 'url = "mysql://pipe:s3cret@db:3307/mlmd"'])
def test_the_section_of_the_metadata_store_that_runs_had_is_to_be_removed(tmp_path, content):
    file = write(tmp_path, f"{MINIMAL}[metadata]\n{content}")
    with pytest.raises(BadInputError) as error:
        load_config(file)
    assert (
        str(error.value) == f"{file}: [metadata]: runs no longer use a metadata store. Remove this section."
    )
    with pytest.raises(BadInputError, match=r"^\[metadata\]: runs no longer use a metadata store"):
        load_config(data="d.csv", label="y", settings=("metadata.url=mysql://pipe@db/mlmd",))


@pytest.mark.parametrize(
    "text",
    [
        *('"accuracy"', '"f1"', '"balanced"', "{recall = 0.8}", "{precision = 1}", "0.3"),
        "{cost = {false_positive = 1, false_negative = 20.5}}",
    ],
)
def test_goals_of_a_decision_threshold(tmp_path, text):
    config = load_config(write(tmp_path, MINIMAL + f"[trainer]\ndecide = {text}\n"))
    assert config.trainer.decide == tomllib.loads(f"decide = {text}")["decide"]
    assert PipelineConfig.model_validate(config.model_dump(mode="json")) == config


@pytest.mark.parametrize(
    "text",
    [
        *('"F1"', '"recall"', "0", "1", "1.5", "true", "[0.3]", "nan", "{recall = 0}", "{recall = 1.1}"),
        *("{f1 = 0.8}", '{recall = "high"}', "{recall = 0.8, precision = 0.5}", "{cost = 3}", "{}"),
        *("{cost = {false_positive = 1}}", "{cost = {false_positive = 1, false_negative = -1}}"),
        "{cost = {false_positive = 1, false_negative = inf}}",
    ],
)
def test_what_is_no_goal_of_a_decision_threshold(tmp_path, text):
    with pytest.raises(BadInputError, match=r'trainer\.decide = .*: give "accuracy", .*, such as 0\.3\.$'):
        load_config(write(tmp_path, MINIMAL + f"[trainer]\ndecide = {text}\n"))
