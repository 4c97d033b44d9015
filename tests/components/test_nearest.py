import difflib
import random

import pytest

from components.nearest import nearest_first


def test_the_most_similar_choice_is_first_and_none_is_lost():
    # 2 * matching characters / all characters: 8/10 (met, r), 6/9 (me, e) and 0.
    assert nearest_first("meter", ["kilo", "meet", "metre"]) == ["metre", "meet", "kilo"]
    assert nearest_first("q", ["b", "c", "a"]) == ["b", "c", "a"]  # equally similar
    assert nearest_first("", ["a", "b"]) == ["a", "b"]
    assert nearest_first("a", []) == []


@pytest.mark.parametrize(("min_similarity", "found"), [(0.66, ["abd"]), (0.67, [])])
def test_choices_below_the_similarity_are_left_out(min_similarity, found):
    # "abc" and "abd" share 2 of 3 characters: 2 * 2 / 6 = 0.667; "xyz" shares none.
    assert nearest_first("abc", ["xyz", "abd"], min_similarity) == found


@pytest.mark.parametrize("min_similarity", [0.0, 0.5, 0.75])
def test_no_similar_choice_is_ruled_out_too_early(min_similarity):
    draw = random.Random(1)
    names = ["".join(draw.choices("abc", k=draw.randrange(1, 7))) for _ in range(40)]
    for name in names:
        ratios = {choice: difflib.SequenceMatcher(None, choice, name).ratio() for choice in set(names)}
        similar = {choice for choice, ratio in ratios.items() if ratio >= min_similarity}
        nearest = nearest_first(name, names, min_similarity)
        assert set(nearest) == similar
        in_order = [ratios[choice] for choice in nearest]
        assert in_order == sorted(in_order, reverse=True)
