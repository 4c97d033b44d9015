"""The expected values are those of tf.estimator 2.15."""

import os

import pytest

from estimator_core.installation import version_gc as gc

VERSIONS = (7, 8, 3, 4, 12)


def kept(keep, versions=VERSIONS):
    paths = keep([gc.Path(f"p{version}", version) for version in versions])
    return [path.export_version for path in paths]


def test_the_versions_of_the_largest_exports_are_kept():
    assert kept(gc._largest_export_versions(2)) == [12, 8]  # in the order of their paths
    assert kept(gc._largest_export_versions(9)) == [12, 3, 4, 7, 8]


@pytest.mark.parametrize(
    ("n", "expected"), [(1, [12, 3, 4, 7, 8]), (2, [12, 4, 8]), (3, [12, 3, 4, 8]), (4, [12, 4, 8])]
)
def test_one_of_every_n(n, expected):
    assert kept(gc._one_of_every_n_export_versions(n)) == expected


def test_one_of_every_n_counts_version_0_to_the_first():
    assert kept(gc._one_of_every_n_export_versions(3), [0, 3]) == [3]
    assert kept(gc._one_of_every_n_export_versions(2), [0, 3]) == [0, 3]


def test_multiples_and_what_is_made_of_filters():
    assert kept(gc._mod_export_version(4)) == [12, 4, 8]
    either = gc._union(gc._largest_export_versions(1), gc._mod_export_version(7))
    assert kept(either) == [12, 7]
    assert kept(gc._negation(either)) == [3, 4, 8]


def test_paths_are_parsed(tmp_path):
    for name in ("10", "9", "temp-3"):
        (tmp_path / name).mkdir()

    def parser(path):
        name = os.path.basename(path.path)
        return path._replace(export_version=int(name)) if name.isdigit() else None

    paths = gc._get_paths(str(tmp_path), parser)
    assert paths == [(str(tmp_path / "10"), 10), (str(tmp_path / "9"), 9)]


def test_a_path_without_a_version_is_refused():
    with pytest.raises(ValueError, match=r"has no version yet.*'here'"):
        gc._largest_export_versions(1)([gc.Path("here", None)])
