"""Values of options such as `--param name=value`, by name."""

from collections.abc import Sequence

from pipelines.errors import BadInputError


def parse_named(values: Sequence[str], option: str) -> dict[str, str]:
    """Returns the values of an option by name.

    Raises:
        BadInputError: One has no `=`.
    """
    found = {}
    for item in values:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise BadInputError(f"{option} takes name=value. Received: {item!r}")
        found[name] = value
    return found
