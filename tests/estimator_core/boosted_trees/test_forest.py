import numpy as np

from estimator_core.boosted_trees.forest import concatenated, constant_trees
from estimator_core.boosted_trees.model_text import forest_from_text
from tests.estimator_core.tree_programs import Table, library_model


def forest_of(trees, **changes):
    table = Table()
    model = library_model(table.matrix, table.labels, trees, **changes)
    return forest_from_text(model.model_to_string())


def same(left, right):
    assert vars(left).keys() == vars(right).keys()
    for name, value in vars(left).items():
        np.testing.assert_array_equal(value, getattr(right, name), err_msg=name)
        assert value.dtype == getattr(right, name).dtype, name


def test_trees_are_parts_that_concatenate_to_the_whole():
    forest = forest_of(5)
    parts = [forest.trees(0, 2), forest.trees(2, 5)]
    assert [part.num_trees for part in parts] == [2, 3]
    assert parts[1].root[0] == 0
    same(concatenated(parts), forest)


def test_leaves_and_siblings():
    forest = forest_of(2)
    inner = ~forest.is_leaf
    assert inner.any()
    assert (forest.threshold[forest.is_leaf] == np.inf).all()
    left = forest.left[inner]
    np.testing.assert_array_equal(forest.depth[left], forest.depth[inner] + 1)
    np.testing.assert_array_equal(forest.depth[left + 1], forest.depth[inner] + 1)
    np.testing.assert_array_equal(forest.count[left] + forest.count[left + 1], forest.count[inner])


def test_a_tree_cut_to_two_layers_is_the_one_that_the_library_grows_with_two():
    cut, two_layers = forest_of(1).truncated(2), forest_of(1, max_depth=2)
    # The library's text has six digits of the values of inner nodes.
    np.testing.assert_allclose(cut.value, two_layers.value, rtol=5e-6)
    for name in ("feature", "threshold", "left", "nan_is_left", "count", "depth", "root", "gain"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(two_layers, name), err_msg=name)


def test_many_trees_are_cut_at_once():
    forest = forest_of(3)
    same(
        forest.truncated(1), concatenated([forest.trees(index, index + 1).truncated(1) for index in range(3)])
    )


def test_constant_trees_are_leaves_that_add_nothing():
    forest = constant_trees(3)
    assert forest.num_trees == forest.num_nodes == 3
    assert forest.is_leaf.all()
    assert not forest.value.any()
    same(concatenated([constant_trees(1), constant_trees(2)]), forest)
