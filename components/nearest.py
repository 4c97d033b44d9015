"""Sorts valid names by their similarity to a misspelled one, for error messages."""

import difflib
from collections.abc import Iterable


def nearest_first(name: str, choices: Iterable[str], min_similarity: float = 0.0) -> list[str]:
    """Returns the choices by their similarity to `name`, from 1 (equal) down to `min_similarity`."""
    matcher = difflib.SequenceMatcher(b=name)
    similarity: dict[str, float] = {}
    for choice in choices:
        matcher.set_seq1(choice)
        # Two upper bounds of the ratio, which are computed much faster, rule most choices out.
        if matcher.real_quick_ratio() >= min_similarity and matcher.quick_ratio() >= min_similarity:
            similarity[choice] = matcher.ratio()
    near = (choice for choice in similarity if similarity[choice] >= min_similarity)
    return sorted(near, key=lambda choice: -similarity[choice])
