import pytest
from pipelines.runners.local import LocalRunner

from pipelines.beam.runners import RUNNERS, find_runner
from pipelines.errors import BadInputError


def test_a_runner_is_found_by_its_name(monkeypatch):
    other = object()
    monkeypatch.setitem(RUNNERS, "other", other)
    assert find_runner("other") is other
    assert isinstance(find_runner("local"), LocalRunner)


def test_an_unknown_name_lists_the_runners_the_nearest_first(monkeypatch):
    monkeypatch.setitem(RUNNERS, "locker", None)
    monkeypatch.setitem(RUNNERS, "cluster", None)
    # Of "lokal": local 2*4/10, locker 2*3/11 (lo, k), kubeflow 2*2/13 (k, l), beam 2*1/9, cluster 2*1/12.
    message = r"--runner lokal is not available\. Available runners: local, locker, kubeflow, beam, cluster\."
    with pytest.raises(BadInputError, match=message):
        find_runner("lokal")


@pytest.mark.parametrize("name", ["flink", "", "Local"])
def test_what_is_not_there_is_refused(name):
    message = r"is not available\. Available runners: (\w+), (\w+), (\w+)\."
    with pytest.raises(BadInputError, match=message):
        find_runner(name)
