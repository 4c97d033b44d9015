import pytest

import estimator_core
from components.user import code as user_code


def test_a_function_by_import_path_is_found_in_the_current_directory(tmp_path, monkeypatch):
    (tmp_path / "project_in_cwd.py").write_text("def trainer_fn():\n    return 'mine'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    assert user_code.load_function("project_in_cwd.trainer_fn")() == "mine"


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ("no_such_project.taxi.trainer_fn", ModuleNotFoundError, r"No module 'no_such_project'.*PYTHONPATH"),
        ("imports_nothing.run_fn", ModuleNotFoundError, r"^No module named 'no_such_dependency'$"),
        ("trainer_fn", ValueError, r"Received: 'trainer_fn'"),
    ],
)
def test_a_function_that_cannot_be_loaded(tmp_path, monkeypatch, function, error, message):
    (tmp_path / "imports_nothing.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(error, match=message):
        user_code.load_function(function)


def test_a_missing_function_lists_the_nearest_first(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("def preprocessing_fn(): pass\ndef train_fn(): pass\n")
    module = user_code.load_module_file(str(path))
    with pytest.raises(AttributeError, match=r"does not define 'trainer_fn'.* train_fn, preprocessing_fn"):
        user_code.get_function(module, "trainer_fn")


def test_a_module_file_sees_its_neighbours_and_is_read_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    (tmp_path / "neighbour_of_module.py").write_text("VALUE = 1\n")
    path = tmp_path / "json.py"  # The name of an installed module must not matter.
    path.write_text("from neighbour_of_module import VALUE\ndef run_fn(): return VALUE\n")
    assert user_code.load_module_file(str(path)).run_fn() == 1
    path.write_text("def run_fn(): return 'edited'\n")
    assert user_code.load_module_file(str(path)).run_fn() == "edited"


def test_a_module_file_by_the_name_under_which_others_import_it(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    path = tmp_path / "importable_by_name.py"
    path.write_text("def preprocessing_fn(): pass\ndef other(): pass\nVALUE = 1\n")
    name = user_code.importable_name(str(path))
    module = user_code.load_module(name)
    assert (name, module.__file__) == ("importable_by_name", str(path))
    assert user_code.function_names(module) == ["other", "preprocessing_fn"]


@pytest.mark.parametrize("name", ["json", "__main__"])
def test_a_module_file_whose_name_is_taken(tmp_path, monkeypatch, name):
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    path = tmp_path / f"{name}.py"
    path.write_text("")
    with pytest.raises(ImportError, match=f"the module name '{name}' is taken by .* Rename"):
        user_code.importable_name(str(path))


def test_a_file_that_is_no_module_or_does_not_exist(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(ValueError, match=r"must be a \.py file\. Received: .*notes\.txt"):
        user_code.importable_name(str(tmp_path / "notes.txt"))
    for function in (user_code.importable_name, user_code.load_module_file):
        with pytest.raises(FileNotFoundError, match=r"none\.py"):
            function(str(tmp_path / "none.py"))


def test_a_module_of_before_finds_tf_estimator_and_tfma_export(uninstalled, tmp_path, caplog):
    path = tmp_path / "classic.py"
    path.write_text(
        "import tensorflow as tf\n"
        "import tensorflow_model_analysis as tfma\n"
        "def receiver() -> tf.estimator.export.ServingInputReceiver:\n"
        "    return tfma.export.EvalInputReceiver\n"
    )
    caplog.set_level("INFO")
    module = user_code.load_module_file(str(path))
    assert module.receiver() is estimator_core.export.EvalInputReceiver
    assert "tfma.export are those of estimator_core" in caplog.text
