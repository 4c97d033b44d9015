from pathlib import Path

import pytest

from components.errors import SettingError
from components.trainer.user_function import UserFunction
from components.user import source

MODULE_FILE = str(Path(__file__).with_name("estimator_module.py"))


def test_the_execution_properties_name_it() -> None:
    found = UserFunction.of_properties({"module_file": MODULE_FILE, "run_fn": "run_fn"})
    assert (found.contract, found.function.__name__) == ("run_fn", "run_fn")
    path = "tests.components.trainer.estimator_module.trainer_fn"
    found = UserFunction.of_properties({"trainer_fn": path})
    assert (found.contract, found.function.__name__) == ("trainer_fn", "trainer_fn")


def test_a_module_file_with_both_contracts_must_say_which() -> None:
    with pytest.raises(ValueError, match="defines both trainer_fn and run_fn"):
        UserFunction.load(None, None, MODULE_FILE)


def test_a_module_file_with_neither_lists_what_it_has(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("def train_fn(): pass\n")
    with pytest.raises(AttributeError, match=r"does not define 'trainer_fn'.*train_fn"):
        UserFunction.load(None, None, str(module))


def test_a_module_file_that_was_changed_since_its_fingerprint_is_not_called(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("def trainer_fn(): return 1\n")
    properties = {
        "module_file": str(module),
        "trainer_fn": "trainer_fn",
        "user_code": source.fingerprint(module_file=str(module)),
    }
    assert UserFunction.of_properties(properties).function() == 1
    module.write_text("def trainer_fn(): return 2\n")
    with pytest.raises(SettingError, match=r"the code of .*module\.py was changed after"):
        UserFunction.of_properties(properties)


def test_of_a_module_that_was_imported_before_what_was_imported_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = "tests.components.trainer.estimator_module.trainer_fn"
    monkeypatch.setattr(source, "fingerprint", None)  # it takes long, and is compared with nothing
    UserFunction.of_properties({"trainer_fn": path})
    UserFunction.of_properties({"trainer_fn": path, "user_code": "of an older source"})
