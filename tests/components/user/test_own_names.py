import sys

import pytest

import components
from components.user.code import load_module, load_module_file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project with a folder `components`, in which it is run."""
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "features.py").write_text("FACTOR = 2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("own_names_module", None)


IMPORTS = [
    "import components.features",
    "from components import features",
    "from components.trainer import features",  # we have a `trainer`, too
    "import components\ncomponents.features",
]


@pytest.mark.parametrize("has_init", [False, True])
@pytest.mark.parametrize("line", IMPORTS)
def test_a_module_that_means_its_own_folder_is_told_of_both(folder, line, has_init):
    if has_init:
        (folder / "components" / "__init__.py").write_text("")
    (folder / "own_names_module.py").write_text(line)
    for load, given in ((load_module, "own_names_module"), (load_module_file, "own_names_module.py")):
        with pytest.raises(ImportError, match=r"Rename it, for example to my_components, or") as error:
            load(given)
        assert f"({components.__path__[0]}), so {folder}/components can't" in str(error.value)


def test_a_folder_that_the_module_does_not_import_is_no_fault(folder):
    (folder / "own_names_module.py").write_text("from components import Trainer\n")
    assert load_module("own_names_module").Trainer is components.Trainer


def test_without_such_a_folder_the_error_is_pythons(folder):
    (folder / "components" / "features.py").unlink()
    (folder / "components").rmdir()
    (folder / "own_names_module.py").write_text("import components.features")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'components.features'$"):
        load_module("own_names_module")


def test_an_error_about_other_packages_is_left_as_it_is(folder):
    (folder / "own_names_module.py").write_text("import json\njson.features")
    with pytest.raises(AttributeError, match=r"^module 'json' has no attribute 'features'$"):
        load_module("own_names_module")
