"""Where things are: each source file has its test file where its name says."""

import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]

# Lists of names, tested through whatever uses them.
WITHOUT_A_TEST_OF_ITS_OWN = {
    "estimator_core/logs.py",  # the one logger
    "estimator_core/tf1.py",  # names of TensorFlow's
    "estimator_core/spec/keys.py",  # constants, compared with the reference by tests/oracle
    "estimator_core/hooks/initialization.py",  # a class that other hooks are marked by
    "pipelines/__main__.py",
}

SOURCES = [
    path.relative_to(ROOT).as_posix()
    for package in ("estimator_core", "components", "pipelines")
    for path in sorted((ROOT / package).rglob("*.py"))
    if path.name != "__init__.py"
]


def file_for(source):
    folder, _, name = source.rpartition("/")
    return ROOT / "tests" / folder / f"test_{name}"


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_file_has_its_test_file(source):
    assert file_for(source).exists() != (source in WITHOUT_A_TEST_OF_ITS_OWN)


def test_the_exceptions_exist():
    assert set(SOURCES) >= WITHOUT_A_TEST_OF_ITS_OWN
