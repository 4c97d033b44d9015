"""For griffe: a class that is made by `__new__` has the parameters of it in the reference."""

from typing import Any

import griffe


class NewIsInit(griffe.Extension):
    """Shows `__new__` in the place of an `__init__` that is not there."""

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Copies the signature."""
        made_by = cls.members.get("__new__")
        if made_by is None or "__init__" in cls.members or not isinstance(made_by, griffe.Function):
            return
        init = griffe.Function(
            "__init__", parameters=made_by.parameters, returns=None, lineno=made_by.lineno,
            endlineno=made_by.endlineno,
        )  # fmt: skip
        cls.set_member("__init__", init)
