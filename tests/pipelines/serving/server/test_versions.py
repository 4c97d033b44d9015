import weakref

import pytest

from pipelines.root import Root
from pipelines.serving.server.metrics import ServerMetrics
from pipelines.serving.server.request_error import RequestError
from pipelines.serving.server.versions import LoadedVersion, ServedVersions
from tests.pushed_versions import add_model


class Version:
    def __init__(self, version):
        self.version = version
        self.cycle = self  # as in a model


class Loader:
    """Loads versions by number; those in `broken` fail."""

    def __init__(self):
        self.broken = set()
        self.loaded = []

    def __call__(self, folder):
        self.loaded.append(int(folder.name))
        if int(folder.name) in self.broken:
            raise ValueError("it is broken")
        return LoadedVersion(Version(int(folder.name)), {})


@pytest.fixture
def loader():
    return Loader()


@pytest.fixture
def metrics():
    return ServerMetrics()


@pytest.fixture
def versions(tmp_path, loader, metrics):
    return make(tmp_path, loader, metrics)


def make(tmp_path, loader, metrics, number=1):
    return ServedVersions(Root(tmp_path), "m", metrics, number, load=loader)


def number(versions, **given):
    return versions.find("m", **given).model.version


def test_the_newest_version_takes_the_place_of_the_former(versions, tmp_path, loader):
    add_model(tmp_path / "serving" / "3")
    assert versions.refresh()
    assert not versions.refresh()
    add_model(tmp_path / "serving" / "4")
    assert number(versions) == 3
    assert versions.refresh()
    assert (number(versions), versions.versions()) == (4, [4])
    assert loader.loaded == [3, 4]


def test_a_rollback_brings_the_former_version_back(versions, tmp_path, loader):
    for version in "34":
        add_model(tmp_path / "serving" / version)
    versions.refresh()
    (tmp_path / "withdrawn").mkdir()
    (tmp_path / "serving" / "4").rename(tmp_path / "withdrawn" / "4")
    versions.refresh()
    assert number(versions) == 3
    assert loader.loaded == [4, 3]


def test_a_version_that_cannot_be_loaded_leaves_the_former_one(versions, tmp_path, loader, metrics):
    add_model(tmp_path / "serving" / "3")
    versions.refresh()
    loader.broken.add(4)
    add_model(tmp_path / "serving" / "4")
    for _ in range(3):
        assert not versions.refresh()
    assert number(versions) == 3
    assert versions.failures() == {4: "it is broken"}
    assert loader.loaded == [3, 4]  # it is tried once
    assert b"load_failures_total 1.0" in metrics.text()
    add_model(tmp_path / "serving" / "5")
    versions.refresh()
    assert number(versions) == 5


def test_a_root_that_was_emptied_leaves_the_former_version(versions, tmp_path):
    add_model(tmp_path / "serving" / "3")
    versions.refresh()
    (tmp_path / "serving").rename(tmp_path / "elsewhere")
    assert not versions.refresh()
    assert number(versions) == 3


def test_several_versions_have_numbers_and_labels(tmp_path, loader, metrics):
    for version in "3456":
        add_model(tmp_path / "serving" / version)
    versions = make(tmp_path, loader, metrics, 3)
    versions.refresh()
    assert versions.versions() == [6, 5, 4]
    assert number(versions, version="4") == 4
    assert number(versions, label="latest") == 6
    assert number(versions, label="previous") == 5
    with pytest.raises(RequestError, match=r"Version 3 of 'm' is not loaded. Loaded: 6, 5, 4"):
        versions.find("m", version="3")


def test_there_is_nothing_to_find_before_the_first_version(versions):
    with pytest.raises(RequestError) as raised:
        versions.find("m")
    assert raised.value.status == 503


def test_a_version_that_a_request_held_goes_after_the_request(tmp_path, loader, metrics):
    add_model(tmp_path / "serving" / "3")
    versions = ServedVersions(Root(tmp_path), "m", metrics, load=loader, request_secs=0.0)
    versions.refresh()
    held = versions.find("m").model
    gone = weakref.ref(held)
    add_model(tmp_path / "serving" / "4")
    assert versions.refresh()
    del held
    assert gone() is not None
    assert not versions.refresh()
    assert gone() is None
