import weakref

import pytest

from pipelines.root import Root
from pipelines.serving.server.metrics import ServerMetrics
from pipelines.serving.server.request import RequestError
from pipelines.serving.server.tf_serving import status
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


def make(tmp_path, loader, metrics, number=1, **settings):
    return ServedVersions(Root(tmp_path), "m", metrics, number, load=loader, **settings)


def number(versions, **given):
    return versions.find("m", **given).model.version


@pytest.mark.more
def test_the_newest_version_takes_the_place_of_the_former(versions, tmp_path, loader):
    add_model(tmp_path / "serving" / "3")
    assert versions.refresh()
    assert not versions.refresh()
    add_model(tmp_path / "serving" / "4")
    assert number(versions) == 3
    assert versions.refresh()
    assert (number(versions), versions.versions()) == (4, [4])
    assert loader.loaded == [3, 4]


@pytest.mark.more
def test_a_rollback_brings_the_former_version_back(versions, tmp_path, loader):
    for version in "34":
        add_model(tmp_path / "serving" / version)
    versions.refresh()
    (tmp_path / "withdrawn").mkdir()
    (tmp_path / "serving" / "4").rename(tmp_path / "withdrawn" / "4")
    versions.refresh()
    assert number(versions) == 3
    assert loader.loaded == [4, 3]


@pytest.mark.more
def test_a_rollback_brings_a_version_back_that_was_loaded_before(versions, tmp_path, loader):
    for version in "34":
        add_model(tmp_path / "serving" / version)
        versions.refresh()
    (tmp_path / "serving" / "4").rename(tmp_path / "elsewhere")
    assert versions.refresh()
    assert (number(versions), loader.loaded) == (3, [3, 4, 3])


@pytest.mark.more
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


@pytest.fixture
def patient(tmp_path, loader, metrics, clock):
    """Versions that wait until files have not changed for 2 s."""
    files_are_new = lambda: 0.0  # noqa: E731
    return make(tmp_path, loader, metrics, quiet_secs=2.0, clock=clock, file_clock=files_are_new)


@pytest.mark.more
def test_old_files_are_loaded_without_waiting_and_new_ones_are_not(tmp_path, loader, metrics):
    add_model(tmp_path / "serving" / "3")
    for age_secs, is_loaded in ((1.9, False), (2.1, True)):
        made = (tmp_path / "serving" / "3" / "saved_model.pb").stat().st_ctime
        file_clock = lambda secs=made + age_secs: secs  # noqa: E731
        versions = make(tmp_path, loader, metrics, quiet_secs=2.0, file_clock=file_clock)
        assert (versions.refresh(), versions.are_changing()) == (is_loaded, not is_loaded)


@pytest.mark.more
def test_a_rollback_never_brings_an_older_version_than_the_former(patient, tmp_path, loader, clock):
    for version in "123":
        add_model(tmp_path / "serving" / version)
    for _ in range(2):
        patient.refresh()
        clock.now += 2.0
    add_model(tmp_path / "serving" / "4")
    for _ in range(2):
        patient.refresh()
        clock.now += 2.0
    (tmp_path / "serving" / "4").rename(tmp_path / "elsewhere")
    for _ in range(3):
        patient.refresh()
        clock.now += 1.0
    assert (number(patient), loader.loaded) == (3, [3, 4, 3])


def test_a_version_is_loaded_once_its_files_have_stopped_changing(patient, tmp_path, loader, clock):
    add_model(tmp_path / "serving" / "3")
    weights = tmp_path / "serving" / "3" / "variables" / "weights"
    weights.parent.mkdir()
    for size in range(5):
        weights.write_bytes(b"x" * size)
        assert not patient.refresh()
        assert patient.are_changing()
        clock.now += 1.9
    assert not patient.refresh()
    clock.now += 0.1
    assert patient.refresh()
    assert (number(patient), loader.loaded, patient.are_changing()) == (3, [3], False)


def test_a_failed_version_is_tried_again_each_time_something_below_it_has_changed(
    versions, tmp_path, loader, clock
):
    versions._clock = clock
    folder = tmp_path / "serving" / "3"
    add_model(folder)
    (folder / "variables").mkdir()
    loader.broken.add(3)
    attempts = []
    for second in range(200):
        clock.now = float(second)
        (folder / "variables" / "weights").write_bytes(b"x" * second)
        versions.refresh()
        if len(loader.loaded) > len(attempts):
            attempts.append(second)
    assert attempts == [0, 2, 6, 14, 30, 62, 122, 182]  # after 2, 4, ... 60 s
    clock.now = 1_000.0
    versions.refresh()  # what was written last
    for _ in range(3):
        clock.now += 1_000.0
        versions.refresh()
    assert len(loader.loaded) == len(attempts) + 1


@pytest.mark.more
def test_a_version_that_was_repaired_is_listed_once(versions, tmp_path, loader, clock):
    versions._clock = clock
    add_model(tmp_path / "serving" / "3")
    versions.refresh()
    loader.broken.add(4)
    add_model(tmp_path / "serving" / "4")
    versions.refresh()
    assert versions.failures() == {4: "it is broken"}
    loader.broken.clear()
    clock.now += 2.0
    (tmp_path / "serving" / "4" / "saved_model.pb").write_bytes(b"repaired")
    assert versions.refresh()
    assert (versions.versions(), versions.failures()) == ([4], {})


@pytest.mark.more
def test_a_version_whose_files_change_later_is_loaded_again(versions, tmp_path, loader):
    add_model(tmp_path / "serving" / "3")
    versions.refresh()
    first = versions.find("m").model
    loader.broken.add(3)
    (tmp_path / "serving" / "3" / "vocabulary").write_bytes(b"a")
    assert not versions.refresh()
    assert versions.find("m").model == first
    assert versions.failures() == {3: "it is broken"}
    (state,) = status(versions, "m", None, None)["model_version_status"]
    assert (state["state"], state["status"]["error_message"]) == ("AVAILABLE", "it is broken")
    versions._clock = lambda: 1e9
    loader.broken.clear()
    (tmp_path / "serving" / "3" / "vocabulary").write_bytes(b"ab")
    assert versions.refresh()
    assert versions.find("m").model is not first
    assert versions.failures() == {}


@pytest.mark.more
def test_files_that_change_while_a_version_is_loaded_are_loaded_again(tmp_path, loader, metrics):
    sizes = iter([b"a", b"ab"])

    def load(folder):
        for content in sizes:
            (folder / "vocabulary").write_bytes(content)
            break
        return loader(folder)

    versions = make(tmp_path, load, metrics)
    add_model(tmp_path / "serving" / "3")
    assert not versions.refresh()
    assert not versions.refresh()
    assert versions.refresh()
    assert loader.loaded == [3, 3, 3]


def test_a_version_that_cannot_be_loaded_takes_no_place_of_another(tmp_path, loader, metrics):
    for version in "34":
        add_model(tmp_path / "serving" / version)
    versions = make(tmp_path, loader, metrics, 2)
    versions.refresh()
    loader.broken.add(5)
    add_model(tmp_path / "serving" / "5")
    assert not versions.refresh()
    assert versions.versions() == [4, 3]


@pytest.mark.more
def test_a_root_that_was_emptied_leaves_the_former_version(versions, tmp_path):
    add_model(tmp_path / "serving" / "3")
    versions.refresh()
    (tmp_path / "serving").rename(tmp_path / "elsewhere")
    assert not versions.refresh()
    assert number(versions) == 3


@pytest.mark.more
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


@pytest.mark.more
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
