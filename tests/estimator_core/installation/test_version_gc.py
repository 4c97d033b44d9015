"""The expected values are those of tf.estimator 2.15."""

import os

import pytest

from estimator_core.installation import version_gc as gc

VERSIONS = (7, 8, 3, 4, 12)


EITHER = gc._union(gc._largest_export_versions(1), gc._mod_export_version(7))


@pytest.mark.parametrize(
    ("keep", "versions", "expected"),
    [
        (gc._largest_export_versions(2), VERSIONS, [12, 8]),  # in the order of their paths
        (gc._largest_export_versions(9), VERSIONS, [12, 3, 4, 7, 8]),
        (gc._one_of_every_n_export_versions(1), VERSIONS, [12, 3, 4, 7, 8]),
        (gc._one_of_every_n_export_versions(2), VERSIONS, [12, 4, 8]),
        (gc._one_of_every_n_export_versions(3), VERSIONS, [12, 3, 4, 8]),
        (gc._one_of_every_n_export_versions(4), VERSIONS, [12, 4, 8]),
        # Version 0 counts to the first.
        (gc._one_of_every_n_export_versions(3), [0, 3], [3]),
        (gc._one_of_every_n_export_versions(2), [0, 3], [0, 3]),
        (gc._mod_export_version(4), VERSIONS, [12, 4, 8]),
        (EITHER, VERSIONS, [12, 7]),
        (gc._negation(EITHER), VERSIONS, [3, 4, 8]),
    ],
)
def test_which_versions_are_kept(keep, versions, expected):
    paths = keep([gc.Path(f"p{version}", version) for version in versions])
    assert [path.export_version for path in paths] == expected


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
