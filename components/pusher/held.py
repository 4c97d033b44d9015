"""The mark of a model that passed the Evaluator but is held: a person decides if it is pushed."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfx.types.artifact import Artifact

HELD_KEY = "held"
"""Custom property of a `ModelBlessing`: 1 if the model is held. `blessed` is 0 then."""


def is_held(blessing: "Artifact") -> bool:
    return blessing.get_int_custom_property(HELD_KEY) == 1


def may_be_pushed(blessings: "Iterable[Artifact]") -> bool:
    """Returns True if all `ModelBlessing`s bless their models, or leave them to a person."""
    return all(
        blessing.get_int_custom_property("blessed") == 1 or is_held(blessing) for blessing in blessings
    )
