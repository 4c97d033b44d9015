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
NO_SCHEMA = (
    "A trainer_fn is called with the schema; pass schema=, such as schema_gen.outputs['schema'], or "
    "transform_graph=, which has it."
)
CONTRACTS = (RUN_FN_KEY, TRAINER_FN_KEY)  # a module that defines both is called as stock TFX does


@dataclass(frozen=True)
class UserFunction:
    contract: str  # `trainer_fn` or `run_fn`; determines the arguments of the call
    function: Callable[..., Any]

    @classmethod
    def load(
        cls,
        trainer_fn: str | None,
        run_fn: str | None,
        module_file: str | None,
        module_path: str | None = None,
        contracts: tuple[str, ...] = CONTRACTS,
    ) -> "UserFunction":
        """Loads the function by import path, from a module file, or from a packaged module.

        Without a name, it is the first of `contracts` that the module defines.
        """
        contract, name = (TRAINER_FN_KEY, trainer_fn) if trainer_fn else (RUN_FN_KEY, run_fn)
        if module_path:
            module = user_code.load_packaged_module(module_path)
        elif module_file:
            module = user_code.load_module_file(module_file)
        elif name:
            return cls(contract, user_code.load_function(name))
        else:
            raise ValueError("Trainer needs a trainer_fn, a run_fn or a module_file.")
        if name:
            return cls(contract, user_code.get_function(module, name))
        contract = next((key for key in contracts if hasattr(module, key)), contracts[-1])
        return cls(contract, user_code.get_function(module, contract))

    @classmethod
    def from_properties(
        cls, exec_properties: Mapping[str, Any], contracts: tuple[str, ...] = CONTRACTS
    ) -> "UserFunction":
        """Loads the function that the Trainer's execution properties name."""
        trainer_fn, run_fn = exec_properties.get(TRAINER_FN_KEY), exec_properties.get(RUN_FN_KEY)
        module_file = exec_properties.get(standard_component_specs.MODULE_FILE_KEY)
        module_path = exec_properties.get(standard_component_specs.MODULE_PATH_KEY)
        path = None if module_file else trainer_fn or run_fn
        planned = exec_properties.get(USER_CODE_KEY)
        was_imported = path is not None and path.rpartition(".")[0] in sys.modules
        if not planned or was_imported or module_path:  # a packaged module can't change any more
            return cls.load(trainer_fn, run_fn, module_file, module_path, contracts)
        before = user_source.fingerprint(import_path=path, module_file=module_file)
        loaded = cls.load(trainer_fn, run_fn, module_file, contracts=contracts)
        after = user_source.fingerprint(import_path=path, module_file=module_file)
        if not before == after == planned:
            raise SettingError(
                f"the code of {module_file or path} was changed after its fingerprint was taken. Run again: "
                "unchanged results are reused."
            )
        return loaded
