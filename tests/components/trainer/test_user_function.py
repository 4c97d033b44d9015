import zipfile
from pathlib import Path

import pytest

from components.errors import SettingError
from components.trainer.executor import Executor
from components.trainer.user_function import UserFunction
from components.user import source

MODULE_FILE = str(Path(__file__).with_name("estimator_module.py"))
TRAINER_FN = "tests.components.trainer.estimator_module.trainer_fn"


def test_the_execution_properties_name_it():
    found = UserFunction.from_properties({"module_file": MODULE_FILE, "run_fn": "run_fn"})
    assert (found.contract, found.function.__name__) == ("run_fn", "run_fn")
    found = UserFunction.from_properties({"trainer_fn": TRAINER_FN})
    assert (found.contract, found.function.__name__) == ("trainer_fn", "trainer_fn")
    # The executor chooses among the contracts of a module file.
    properties = {"module_file": MODULE_FILE}
    assert UserFunction.from_properties(properties).contract == "run_fn"
    assert UserFunction.from_properties(properties, Executor.CONTRACTS).contract == "trainer_fn"


def test_a_module_is_loaded_from_the_wheel_that_a_runner_has_made(tmp_path):
    wheel = tmp_path / "tfx_user_code_Trainer-0.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("module_in_a_wheel.py", "from a_neighbour import N\ndef run_fn(args): return N\n")
        file.writestr("a_neighbour.py", "N = 7\n")
    properties = {"module_path": f"module_in_a_wheel@{wheel}", "user_code": "that of the module file"}
    loaded = UserFunction.from_properties(properties)
    assert (loaded.contract, loaded.function(None)) == ("run_fn", 7)


def test_a_module_file_with_neither_lists_what_it_has(tmp_path):
    module = tmp_path / "module.py"
    module.write_text("def train_fn(): pass\n")
    with pytest.raises(AttributeError, match=r"does not define 'trainer_fn'.*train_fn"):
        UserFunction.load(None, None, str(module))


def test_a_module_file_that_was_changed_since_its_fingerprint_is_not_called(tmp_path):
    module = tmp_path / "module.py"
    module.write_text("def trainer_fn(): return 1\n")
    properties = {"module_file": str(module), "trainer_fn": "trainer_fn"}
    properties["user_code"] = source.fingerprint(module_file=str(module))
    assert UserFunction.from_properties(properties).function() == 1
    module.write_text("def trainer_fn(): return 2\n")
    with pytest.raises(SettingError, match=r"the code of .*module\.py was changed after"):
        UserFunction.from_properties(properties)


def test_of_a_module_that_was_imported_before_what_was_imported_counts(monkeypatch):
    monkeypatch.setattr(source, "fingerprint", None)  # it takes long, and is compared with nothing
    UserFunction.from_properties({"trainer_fn": TRAINER_FN})
    UserFunction.from_properties({"trainer_fn": TRAINER_FN, "user_code": "of an older source"})
