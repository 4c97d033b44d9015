import pytest

from pipelines.beam.runners import BeamRunner
from pipelines.config.beam import BeamConfig
from pipelines.errors import BadInputError
from pipelines.root import Root

DATAFLOW = {
    "project": "a-project",
    "region": "europe-west1",
    "temp_location": "gs://bucket/t",
    "worker_image": "i",
}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"is what --runner local does.*beam\.direct\.workers.*flink"),
        (
            {"runner": "dataflow", "dataflow": DATAFLOW},
            "root of a run is a local folder.*so is a root on Kubeflow",
        ),
    ],
)
def test_what_is_no_engine_for_a_run_here_is_refused(settings, message):
    with pytest.raises(BadInputError, match=message):
        BeamRunner().check(BeamConfig.model_validate(settings))


@pytest.mark.parametrize(
    "settings",
    [{"direct": {"workers": 2}}, {"runner": "flink", "flink": {"master": "jobs:8081"}}],
)
def test_engines_for_a_run_here_are_accepted(settings):
    BeamRunner().check(BeamConfig.model_validate(settings))


def test_further_options_go_before_those_of_the_engine(tmp_path):
    config = BeamConfig.model_validate(
        {"direct": {"workers": 3}, "args": ["--direct_num_workers=2", "--direct_running_mode=x"]}
    )
    with BeamRunner().beam_options(config, Root(tmp_path)) as options:
        given = [option for option in options if "direct_num_workers" in option]
    assert given == ["--direct_num_workers=3", "--direct_num_workers=2"]
