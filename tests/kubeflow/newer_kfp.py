"""Reads a compiled pipeline with the kfp of its environment, and submits it to a server.

python newer_kfp.py PIPELINE.yaml URL      prints kfp's version and the id of the run, as JSON
"""

import json
import pathlib
import sys
import tempfile
import warnings

import yaml

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import kfp
    from google.protobuf import json_format
    from kfp import compiler, components
    from kfp.kubernetes import kubernetes_executor_config_pb2
    from kfp.pipeline_spec import pipeline_spec_pb2


def as_message(specification):
    """Returns KFP's message; a field that it does not have is an error."""
    return json_format.ParseDict(specification, pipeline_spec_pb2.PipelineSpec())


def main(file, url):
    """Parses, loads, writes again, uploads and starts the pipeline."""
    text = pathlib.Path(file).read_text(encoding="utf-8")
    specification, platform = yaml.safe_load_all(text)
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    for executor in executors.values():
        json_format.ParseDict(executor, kubernetes_executor_config_pb2.KubernetesExecutorConfig())
    with tempfile.TemporaryDirectory() as folder:
        again = pathlib.Path(folder) / "again.yaml"
        compiler.Compiler().compile(components.load_component_from_text(text), str(again))
        written = next(yaml.safe_load_all(again.read_text(encoding="utf-8")))
    ours, theirs = as_message(specification), as_message(written)
    ours.sdk_version = theirs.sdk_version = ""
    if ours != theirs:
        sys.exit(f"kfp {kfp.__version__} has changed the pipeline by reading and writing it")
    client = kfp.Client(host=url)
    name = specification["pipelineInfo"]["name"]
    pipeline = client.upload_pipeline(str(file), pipeline_name=name)
    (version,) = client.list_pipeline_versions(pipeline.pipeline_id).pipeline_versions
    run = client.run_pipeline(
        experiment_id=client.create_experiment(name).experiment_id,
        job_name=name,
        params={"train_steps": 7},
        pipeline_id=pipeline.pipeline_id,
        version_id=version.pipeline_version_id,
    )
    print(json.dumps({"kfp": kfp.__version__, "run": run.run_id}))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(*sys.argv[1:])
