import pytest

from pipelines.beam.runners import RUNNERS, BeamRunner, find_runner
from pipelines.config.beam import BeamConfig
from pipelines.errors import BadInputError

DATAFLOW = {
    "project": "a-project",
    "region": "europe-west1",
    "temp_location": "gs://bucket/t",
    "worker_image": "i",
}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"is the same as --runner local.*beam\.direct\.workers.*flink"),
        (
            {"runner": "dataflow", "dataflow": DATAFLOW},
            "the root is a folder .on Kubeflow.*which Dataflow cannot read",
        ),
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
    config = BeamConfig.model_validate(
        {"direct": {"workers": 3}, "args": ["--direct_num_workers=2", "--direct_running_mode=x"]}
    )
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


def test_an_unknown_name_lists_the_runners_the_nearest_first():
    # Of "lokal": local 2*4/10, kubeflow 2*2/13 (k, l), beam 2*1/9.
    message = r"--runner lokal is not available\. Available runners: local, kubeflow, beam\."
    with pytest.raises(BadInputError, match=message):
        find_runner("lokal")


@pytest.mark.parametrize("name", ["flink", "", "Local"])
def test_what_is_not_there_is_refused(name):
    message = r"is not available\. Available runners: (\w+), (\w+), (\w+)\."
    with pytest.raises(BadInputError, match=message):
        find_runner(name)
