import warnings

import pytest

from pipelines.config import PipelineConfig

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kfp warns of its own versions
    import kfp  # noqa: F401


@pytest.fixture
def config_of():
    """Returns a function that makes a configuration which Kubeflow takes, with changes by section."""

    def make(kubeflow=(), **sections):
        return PipelineConfig.model_validate(
            {
                "name": "taxi",
                "data": {"path": "/mnt/pipelines/data/taxi.csv", "label": "tips"},
                "kubeflow": {
                    "image": "registry.example.com/pipelines:1.0",
                    "pipeline_root": "minio://mlpipeline/v2/artifacts",
                    "root": "/mnt/pipelines/taxi",
                    "volumes": [{"claim": "pipelines", "path": "/mnt/pipelines"}],
                    **dict(kubeflow),
                },
                **sections,
            }
        )

    return make
