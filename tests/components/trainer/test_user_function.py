from pathlib import Path

import pytest

from components.trainer.user_function import UserFunction

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
