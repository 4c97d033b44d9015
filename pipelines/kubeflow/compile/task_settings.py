"""Settings of a step on the cluster: resources, nodes, volumes, secrets, retries, caching."""

from typing import Any

from pipelines.config.kubeflow import KubeflowConfig, StepConfig
from pipelines.kubeflow.compile.dag import END, PLAN, RECORD
from pipelines.kubeflow.run_folder import RUN_ID_VARIABLE
from pipelines.kubeflow.step_environment import RETRIES_VARIABLE, UMASK_VARIABLE
from pipelines.kubeflow.training.training_job import VARIABLE, training_job

NEVER_CACHED = (PLAN, RECORD, END)

_END_RETRIES = 2
"""Number of retries of the step that ends the record of a failed run, since nothing else does."""

_RUN_ID_LABEL = "metadata.labels['pipeline/runid']"


def apply_settings(task: Any, settings: KubeflowConfig, component: str) -> None:
    step = settings.components.get(component, StepConfig())
    is_cached = settings.cache if step.cache is None else step.cache
    task.set_caching_options(component not in NEVER_CACHED and is_cached)
    task.set_display_name(component)
    env = {**settings.env, **step.env}
    job = training_job(settings) if component == "Trainer" else None
    if job is not None:
        env[VARIABLE] = job.model_dump_json(exclude_defaults=True)
    if step.cpu is not None:
        task.set_cpu_request(step.cpu).set_cpu_limit(step.cpu)
    if step.memory is not None:
        task.set_memory_request(step.memory).set_memory_limit(step.memory)
    if step.accelerator is not None:
        task.set_accelerator_type(step.accelerator).set_accelerator_limit(step.accelerators)
    retries = settings.retries if step.retries is None else step.retries
    if component == END and step.retries is None:
        retries = max(retries, _END_RETRIES)
    if retries:
        env[RETRIES_VARIABLE] = str(retries)
        task.set_retry(retries, backoff_duration="30s")  # of a pod that is lost, see docs/kubeflow.md
    if settings.umask is not None:
        env[UMASK_VARIABLE] = settings.umask
    # Not set_env_variable: each call inspects the source of the whole stack.
    task.container_spec.env = {**(task.container_spec.env or {}), **env}
    if settings.backend == "kubeflow":
        _apply_to_pod(task, settings, step)


def _apply_to_pod(task: Any, settings: KubeflowConfig, step: StepConfig) -> None:
    from kfp import kubernetes

    kubernetes.use_field_path_as_env(task, RUN_ID_VARIABLE, _RUN_ID_LABEL)
    for volume in settings.volumes:
        kubernetes.mount_pvc(task, volume.claim, volume.path, volume.sub_path)
    for secret in settings.secrets:
        if secret.env:
            kubernetes.use_secret_as_env(task, secret.name, secret.env)
        if secret.path is not None:
            kubernetes.use_secret_as_volume(task, secret.name, secret.path)
    for key, value in {**settings.node_selector, **step.node_selector}.items():
        kubernetes.add_node_selector(task, key, value)
    for toleration in settings.tolerations:
        kubernetes.add_toleration(
            task,
            key=toleration.key,
            operator=toleration.operator,
            value=toleration.value,
            effect=toleration.effect,
            toleration_seconds=toleration.seconds,
        )
    if step.timeout is not None:
        kubernetes.set_timeout(task, step.timeout)
