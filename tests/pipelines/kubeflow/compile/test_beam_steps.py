import pytest

from pipelines.config.beam import BeamConfig
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.admission import check_for_steps, step_options
from pipelines.kubeflow.compile.pipeline_file import compile_pipeline

ENGINES = {
    "flink": {"master": "localhost:8081"},
    "spark": {"master": "spark://host:7077"},
    "dataflow": {
        "project": "a-project",
        "region": "europe-west1",
        "temp_location": "gs://bucket/temp",
        "worker_image": "image:1",
    },
}


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_an_engine_beside_the_steps_is_refused_before_a_run(config_of, engine):
    beam = {"runner": engine, engine: ENGINES[engine]}
    with pytest.raises(BadInputError, match=rf'beam.runner = "{engine}".*does not work on Kubeflow'):
        check_for_steps(config_of(beam=beam))
    with pytest.raises(BadInputError, match="does not work on Kubeflow"):
        compile_pipeline(config_of(beam=beam))


def test_processes_and_options_are_those_of_each_step(config_of):
    beam = {"direct": {"workers": 3}, "args": ["--temp_location=/tmp/b"]}
    check_for_steps(config_of(beam=beam))
    config = BeamConfig.model_validate(beam)
    assert step_options(config) == (
        "--runner=components.beam.processes.ProcessesRunner",
        "--direct_num_workers=3",
        "--direct_running_mode=multi_processing",
        "--temp_location=/tmp/b",
    )
    assert step_options(BeamConfig()) == ()
