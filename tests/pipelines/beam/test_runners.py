import pytest

from pipelines.beam.runners import RUNNERS, BeamRunner, find_runner
from pipelines.config.beam import BeamConfig
from pipelines.errors import BadInputError

DATAFLOW = {
    "project": "a-project", "region": "europe-west1", "temp_location": "gs://bucket/t", "worker_image": "i",
}  # fmt: skip
LOCAL_ROOT = "the root is a folder .on Kubeflow.*which Dataflow cannot read"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"is the same as --runner local.*beam\.direct\.workers.*flink"),
        ({"runner": "dataflow", "dataflow": DATAFLOW}, LOCAL_ROOT),
    ],
)
def test_what_is_no_engine_for_a_run_here_is_refused(settings, message):
    with pytest.raises(BadInputError, match=message):
        BeamRunner().check(BeamConfig.model_validate(settings))


@pytest.mark.parametrize(
    "settings", [{"direct": {"workers": 2}}, {"runner": "flink", "flink": {"master": "jobs:8081"}}]
)
def test_engines_for_a_run_here_are_accepted(settings):
    BeamRunner().check(BeamConfig.model_validate(settings))


def test_further_options_go_before_those_of_the_engine(tmp_path):
    args = ["--direct_num_workers=2", "--direct_running_mode=x"]
    config = BeamConfig.model_validate({"direct": {"workers": 3}, "args": args})
    with BeamRunner().beam_options(config, tmp_path) as options:
        given = [option for option in options if "direct_num_workers" in option]
    assert given == ["--direct_num_workers=3", "--direct_num_workers=2"]


def test_the_local_runner_accepts_all_settings_and_gives_beam_those_of_the_user(tmp_path):
    runner = find_runner("local")
    config = BeamConfig.model_validate({"args": ["--max_cache_memory_usage_mb=50"]})
    runner.check(config)
    with runner.beam_options(config, tmp_path) as options:
        assert options == ("--max_cache_memory_usage_mb=50",)
    assert list(tmp_path.iterdir()) == []


def test_a_runner_is_found_by_its_name(monkeypatch):
    other = object()
    monkeypatch.setitem(RUNNERS, "other", other)
    assert find_runner("other") is other
    assert find_runner("local") is RUNNERS["local"]


@pytest.mark.parametrize(
    ("name", "runners"),
    [
        # Of "lokal": local 2*4/10, kubeflow 2*2/13 (k, l), beam 2*1/9.
        ("lokal", "local, kubeflow, beam"),
        ("flink", r"(\w+), (\w+), (\w+)"),
        ("", r"(\w+), (\w+), (\w+)"),
        ("Local", r"(\w+), (\w+), (\w+)"),
    ],
)
def test_an_unknown_name_lists_the_runners_the_nearest_first(name, runners):
    message = rf"--runner {name} is not available\. Available runners: {runners}\."
    with pytest.raises(BadInputError, match=message):
        find_runner(name)
