"""The tree of the tests mirrors the rooms of the source."""

import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("estimator_core", "components", "pipelines")
ROOMS = sorted(
    {
        path.parent.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__init__.py"
    }
)
FOLDERS_OF_TESTS = sorted(
    {
        path.parent.relative_to(ROOT / "tests").as_posix()
        for package in PACKAGES
        for path in (ROOT / "tests" / package).rglob("test_*.py")
    }
)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_tests_in_the_folder_of_its_name(room):
    assert list((ROOT / "tests" / room).glob("test_*.py"))


@pytest.mark.parametrize("folder", FOLDERS_OF_TESTS)
def test_a_folder_of_tests_is_named_after_a_room(folder):
    assert folder in ROOMS


def test_pipelines_has_three_files_at_its_door():
    files = {path.name for path in (ROOT / "pipelines").glob("*.py")} - {"__init__.py"}
    assert files == {"__main__.py", "atomic_files.py", "errors.py"}
