"""The user's training function and the contract by which it is called."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfx.types import standard_component_specs

from components.errors import SettingError
from components.user import code as user_code
from components.user import source as user_source

TRAINER_FN_KEY = "trainer_fn"
RUN_FN_KEY = standard_component_specs.RUN_FN_KEY
USER_CODE_KEY = "user_code"


@dataclass(frozen=True)
class UserFunction:
    """The user's training function.

    Attributes:
        contract: `trainer_fn` or `run_fn`; determines the arguments of the call.
        function: The function.
    """

    contract: str
    function: Callable[..., Any]

    @classmethod
    def load(
        cls, trainer_fn: str | None, run_fn: str | None, module_file: str | None
    ) -> "UserFunction":
        """Loads the function by import path, or from a module file.

        Args:
            trainer_fn: Import path, or name in the module file.
            run_fn: Import path or name of a function with the other contract.
            module_file: Path of a Python file. Without a function name, it must define exactly one of
                `trainer_fn` and `run_fn`.

        Raises:
            AttributeError: The module lacks the function.
            ValueError: It is not clear which function is meant.
        """
        contract, name = (TRAINER_FN_KEY, trainer_fn) if trainer_fn else (RUN_FN_KEY, run_fn)
        if not module_file:
            if not name:
                raise ValueError("Trainer needs a trainer_fn, a run_fn or a module_file.")
            return cls(contract, user_code.load_function(name))
        module = user_code.load_module_file(module_file)
        if name:
            return cls(contract, user_code.get_function(module, name))
        defined = [key for key in (TRAINER_FN_KEY, RUN_FN_KEY) if hasattr(module, key)]
        if len(defined) == 2:
            raise ValueError(
                f"{module_file} defines both trainer_fn and run_fn. Say which one to use: pass "
                "trainer_fn='trainer_fn' or run_fn='run_fn' with module_file."
            )
        contract = defined[0] if defined else TRAINER_FN_KEY
        return cls(contract, user_code.get_function(module, contract))

    @classmethod
    def of_properties(cls, exec_properties: Mapping[str, Any]) -> "UserFunction":
        """Loads the function that the Trainer's execution properties name.

        Raises:
            SettingError: Its source does not match the fingerprint in the properties. The source of a
                module that was imported before is not checked, since the imported code runs.
        """
        trainer_fn, run_fn = exec_properties.get(TRAINER_FN_KEY), exec_properties.get(RUN_FN_KEY)
        module_file = exec_properties.get(standard_component_specs.MODULE_FILE_KEY)
        path = None if module_file else trainer_fn or run_fn
        planned = exec_properties.get(USER_CODE_KEY)
        was_imported = path is not None and path.rpartition(".")[0] in sys.modules
        if not planned or was_imported:
            return cls.load(trainer_fn, run_fn, module_file)
        before = user_source.fingerprint(import_path=path, module_file=module_file)
        loaded = cls.load(trainer_fn, run_fn, module_file)
        after = user_source.fingerprint(import_path=path, module_file=module_file)
        if not before == after == planned:
            raise SettingError(
                f"the code of {module_file or path} was changed after its fingerprint was taken. Run again: "
                "unchanged results are reused."
            )
        return loaded
