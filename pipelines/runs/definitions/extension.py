"""Components of the user's own in the pipeline from a CSV: `[pipeline] extend = "FILE.py:FUNCTION"`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from components.user import code as user_code
from pipelines.errors import BadInputError

if TYPE_CHECKING:
    from tfx.dsl.components.base.base_node import BaseNode


def added_components(extend: str, roles: Mapping[str, "BaseNode"]) -> list["BaseNode"]:
    """Returns the components that the user's function adds."""
    from tfx.dsl.components.base.base_node import BaseNode

    file, _, name = extend.rpartition(":")
    where = f"pipeline.extend = {extend!r}"
    try:
        module = user_code.load_module(user_code.importable_name(file))
        added = getattr(module, name)(dict(roles))
    except (Exception, SystemExit) as error:
        raise BadInputError(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(added, list | tuple) or not all(isinstance(one, BaseNode) for one in added):
        raise BadInputError(
            f"{where}: it must return a list of components. Received: {added!r:.200}"
        )
    taken = {component.id for component in roles.values()}
    for component in added:
        if component.id in taken:
            raise BadInputError(
                f"{where}: there are two components with the id {component.id!r}. Call with_id() on "
                "yours"
            )
        taken.add(component.id)
    return list(added)
