import os
from pathlib import Path

import pytest
import tomllib

from pipelines.config.load import load_config
from tests.pipelines.cli.invocation import invoke

FILES = [".gitignore", "README.md", "data", "pipeline.toml", "test_trips.py", "trips.py"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*words, code=0):
    return invoke("init", *words, code=code)


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_project_has_a_configuration_a_module_its_test_and_data(here):
    ran = init("trips")
    assert "next: cd trips && estimator-pipelines run --config pipeline.toml" in ran.stdout
    assert sorted(os.listdir("trips")) == FILES
    assert not any(b"project_name" in text for text in content(here / "trips").values())
    config = load_config(Path("trips/pipeline.toml"))
    assert (config.name, config.module.file) == ("trips", "trips/trips.py")
    assert Path(config.data.path).read_text().count("\n") == 6_001


def test_the_default_is_the_folder_here_and_its_name(here, monkeypatch):
    (here / "my-trips 2").mkdir()
    monkeypatch.chdir(here / "my-trips 2")
    ran = init()
    assert "next: estimator-pipelines run" in ran.stdout
    assert load_config(Path("pipeline.toml")).name == "my_trips_2"


def test_nothing_is_written_where_a_file_is_in_the_way(here):
    folder = here / "trips"
    folder.mkdir()
    (folder / "trips.py").write_text("mine")
    (folder / "data").mkdir()
    (folder / "data" / "trips.csv").write_text("mine, too")
    (folder / "other.txt").write_text("not in the way")
    before = content(folder)
    ran = init("trips", code=2)
    assert "trips already has data/trips.csv, trips.py, which is not overwritten" in ran.stderr
    assert content(folder) == before


def test_files_that_are_not_in_the_way_stay(here):
    (here / "trips").mkdir()
    (here / "trips" / "other.txt").write_text("mine")
    init("trips")
    assert (here / "trips" / "other.txt").read_text() == "mine"


def test_a_folder_that_is_a_file_is_refused(here):
    (here / "trips").write_text("mine")
    ran = init("trips", code=2)
    assert "trips is a file" in ran.stderr
    assert (here / "trips").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("components", "it is a package of estimator-pipelines"),
        ("pipelines", "it is a package of estimator-pipelines"),
        ("estimator_core", "it is a package of estimator-pipelines"),
        ("random", "it is a module of Python's standard library"),
        ("numpy", "it is an installed module: "),
        ("my-model", "it has to be a name that Python can import"),
        ("2nd", "it has to be a name that Python can import"),
        ("class", "it has to be a name that Python can import"),
        ("../up", "it has to be a name that Python can import"),
        ("", "it has to be a name that Python can import"),
    ],
)
def test_a_name_that_python_would_not_import_as_this_module_is_refused(here, name, reason):
    ran = init("folder", "--name", name, code=2)
    assert ran.stderr.startswith(f"--name {name}: {reason}")
    assert "Give another --name, such as " in ran.stderr
    assert not list(here.iterdir())


def test_the_name_of_a_folder_is_refused_for_the_same_reasons(here):
    ran = init("components", code=2)
    assert ran.stderr.startswith("The name of the folder, components: it is a package of")
    init("components", "--name", "trips")


def test_own_data_get_the_configuration_that_plan_writes(here):
    rows = "".join(f"{number % 7},{'yes' if number % 3 else 'no'}\n" for number in range(300))
    (here / "orders.csv").write_text("size,late\n" + rows)
    init("orders", "--data", "orders.csv", "--label", "late")
    assert sorted(os.listdir("orders")) == [".gitignore", "README.md", "pipeline.toml"]
    text = Path("orders/pipeline.toml").read_text()
    settings = tomllib.loads(text)
    assert settings["name"] == "orders"
    assert settings["data"] == {"path": "../orders.csv", "label": "late"}
    assert '\n# "size" = "number"' in text
    assert load_config(Path("orders/pipeline.toml")).module is None


@pytest.mark.parametrize("example", ["keras_model", "recommender", "run_fn", "tpu"])
def test_an_example_is_a_project_with_data(here, example):
    init("mine", "--example", example)
    files = [".gitignore", "data.csv", "generate.py", "model.py", "pipeline.toml"]
    assert sorted(os.listdir("mine")) == files
    config = load_config(Path("mine/pipeline.toml"))
    assert (config.name, config.module.file) == ("mine", "mine/model.py")
    header, *rows = Path(config.data.path).read_text().splitlines()
    assert config.data.label in header.split(",")
    assert len(rows) >= 3_000


def test_nothing_is_overwritten_by_an_example(here):
    (here / "data.csv").write_text("mine")
    ran = init("--example", "tpu", "--name", "pumps", code=2)
    assert "already has data.csv, which is not overwritten" in ran.stderr
    assert os.listdir(here) == ["data.csv"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--example", "recomender"), "there is no such example. Examples: recommender, "),
        (("--example", "tpu", "--data", "x.csv"), "--example has its own data."),
        (("--data", "none.csv", "--label", "y"), "There is no file or folder none.csv"),
        (("--data", "none.csv"), "data.label is missing: give --label COLUMN"),
        (("--label", "y"), "--label y is a column of --data, which is missing. Give both."),
    ],
)
def test_nothing_is_written_for_data_that_cannot_be_used(here, words, message):
    ran = init("orders", *words, code=2)
    assert message in ran.stderr
    assert not list(here.iterdir())
