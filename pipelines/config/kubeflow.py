"""`[kubeflow]` of the configuration: settings of a compiled pipeline and its steps."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from pipelines.config.data import Section, matches

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
# Source: the grammar of references that registries and Kubernetes read (distribution/reference).
_IMAGE = (
    r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?(?::[0-9]+)?/)?"  # host
    rf"{_PART}(?:/{_PART})*"
    r"(?::[A-Za-z0-9_][-A-Za-z0-9._]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_KFP = "KFP_"


def _not_of_kubeflow(name: str) -> str:
    if name.startswith(_KFP):
        raise ValueError(f"{name!r}: Kubeflow sets the variables {_KFP}... itself; rename it")
    return name


def _mount_path(path: str) -> str:
    if "://" in path:
        raise ValueError(
            'give a folder, such as "/mnt/pipelines/NAME": not an object store, because steps lock files and '
            "rename folders, which a bucket does not support. Put it on a volume"
        )
    if not path.startswith("/") or path == "/" or ":" in path or ".." in path.split("/"):
        raise ValueError("give an absolute path in the container other than '/', without ':' or '..'")
    return path


_ObjectName = Annotated[
    str,
    matches(
        rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*",
        "Kubernetes only accepts names of lower-case letters, digits, '-' and '.' (RFC 1123), at most 253 "
        "characters",
    ),
]
_EnvName = Annotated[
    str,
    matches(
        "[A-Za-z_][A-Za-z0-9_]*", "{text!r} is not a valid environment variable: letters, digits and '_'"
    ),
    AfterValidator(_not_of_kubeflow),
]
_ImageName = Annotated[
    str,
    matches(
        _IMAGE,
        'give the name of an image, such as "registry.example.com/pipelines:1.0" or one with "@sha256:..."; '
        "only its host and its tag may contain upper-case letters",
    ),
]
_MountPath = Annotated[str, AfterValidator(_mount_path)]
_Umask = Annotated[
    str, matches("0?[0-7]{3}", 'give three octal digits such as "022", or "002" for a volume of a group')
]
_Cpu = Annotated[str, matches(r"[0-9]+(\.[0-9]+)?|[0-9]+m", 'give cores such as "2", "0.5" or "500m"')]
_Memory = Annotated[
    str,
    matches(
        "[0-9]+(E|Ei|P|Pi|T|Ti|G|Gi|M|Mi|K|Ki)?",
        'give a size as Kubernetes writes it, such as "8Gi" or "500M"',
    ),
]
_LabelKey = Annotated[
    str,
    matches(
        "([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
        '{text!r} is not a valid Kubernetes label key, such as "kubernetes.io/arch" or '
        '"cloud.google.com/gke-accelerator"',
    ),
]
_LabelValue = Annotated[
    str,
    matches(
        "([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", "{text!r} is not a valid Kubernetes label value"
    ),
]
_NodeLabels = dict[_LabelKey, _LabelValue]


def _check_accelerators(step: Any) -> Any:
    if (step.accelerators is None) != (step.accelerator is None):
        raise ValueError('give both accelerators = 1 and accelerator = "nvidia.com/gpu", or neither')
    return step


class VolumeConfig(Section):
    """`[[kubeflow.volumes]]`: a PersistentVolumeClaim that every step mounts.

    Attributes:
        claim: Name of the claim. Several pods must be able to mount it (ReadWriteMany), unless all run on
            one node.
        path: Mount path in the containers.
        sub_path: Folder of the volume that is mounted. Default: the whole volume.
    """

    claim: _ObjectName
    path: _MountPath
    sub_path: str = ""


class SecretConfig(Section):
    """`[[kubeflow.secrets]]`: a Secret, as environment variables or as files.

    Attributes:
        name: Name of the Secret.
        env: Environment variable for each key of the Secret.
        path: Folder in which each key of the Secret becomes a file.
    """

    name: _ObjectName
    env: dict[str, _EnvName] = Field(default_factory=dict)
    path: _MountPath | None = None

    @model_validator(mode="after")
    def _is_used(self) -> "SecretConfig":
        if not self.env and self.path is None:
            raise ValueError('give env = {key = "VARIABLE"}, or path = "/folder", or both')
        return self


class TolerationConfig(Section):
    """`[[kubeflow.tolerations]]`: a taint of nodes that steps may run on nevertheless.

    Attributes:
        key: Key of the taint. Default: any.
        operator: `Equal` compares the value, `Exists` does not.
        value: Value of the taint.
        effect: Effect of the taint. Default: any.
        seconds: Seconds that the taint is tolerated, with `NoExecute`. Default: forever.
    """

    key: _LabelKey | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = None
    effect: Literal["NoExecute", "NoSchedule", "PreferNoSchedule"] | None = None
    seconds: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _fits_operator(self) -> "TolerationConfig":
        if self.operator == "Exists" and self.value is not None:
            raise ValueError('operator = "Exists" compares no value; leave the value out')
        if self.operator == "Equal" and self.key is None:
            raise ValueError('operator = "Equal" needs a key; or set operator = "Exists"')
        return self


class StepConfig(Section):
    """`[kubeflow.components.NAME]`: settings of the step of one component.

    Attributes:
        cpu: Cores, as limit and as request.
        memory: Memory, as limit and as request.
        accelerators: Number of accelerators.
        accelerator: Kind of accelerator: the name of the resource in Kubernetes, such as `nvidia.com/gpu`
            or `google.com/tpu`; on Vertex the type, such as `NVIDIA_TESLA_T4`.
        node_selector: Labels of the nodes that it may run on, in addition to those of `[kubeflow]`.
        retries: Number of retries. Default: that of `[kubeflow]`.
        cache: Skips the step when nothing has changed. Default: that of `[kubeflow]`.
        timeout: Seconds after which it is stopped.
        env: Environment variables, in addition to those of `[kubeflow]`.
    """

    cpu: _Cpu | None = None
    memory: _Memory | None = None
    accelerators: int | None = Field(default=None, ge=1)
    accelerator: str | None = Field(default=None, min_length=1)
    node_selector: _NodeLabels = Field(default_factory=dict)
    retries: int | None = Field(default=None, ge=0)
    cache: bool | None = None
    timeout: int | None = Field(default=None, ge=1)
    env: dict[_EnvName, str] = Field(default_factory=dict)

    _has_both = model_validator(mode="after")(_check_accelerators)


class TrainingJobConfig(Section):
    """`[kubeflow.training_job]`: the cluster of `[trainer] workers` as a job, a pod for each task.

    The chief, the workers and the parameter servers are those of `[trainer]`.

    Attributes:
        kind: `job`, an indexed Job of Kubernetes 1.28 or newer.
        namespace: Namespace of the job. Default: that of the Trainer's pod. Another namespace must have the
            claims, the secrets and the service account, too, and the job is not deleted with the pod.
        cpu: Cores of each task.
        memory: Memory of each task.
        accelerators: Number of accelerators of each task, parameter servers included: the pods of a Job
            share one pod template.
        accelerator: Name of the accelerators' resource in Kubernetes, such as `nvidia.com/gpu`.
        deadline_secs: Seconds after which the job is ended.
        keep_secs: Seconds that a finished job is kept, so that you can look at it.
        restarts: Number of restarts of tasks that were killed, in all.
        service_account: Service account of the tasks' pods. Default: that of the namespace.
        api_server: Address of Kubernetes, such as `http://127.0.0.1:8001` of `kubectl proxy`. Default: the
            cluster that the Trainer runs in. With `--local`, the section has no effect without it.
        poll_secs: Seconds between two requests for the state of the job.
    """

    kind: Literal["job"] = "job"
    namespace: _ObjectName | None = None
    cpu: _Cpu | None = None
    memory: _Memory | None = None
    accelerators: int | None = Field(default=None, ge=1)
    accelerator: str | None = Field(default=None, min_length=1)
    deadline_secs: int = Field(default=86_400, ge=1)
    keep_secs: int = Field(default=86_400, ge=0)
    restarts: int = Field(default=3, ge=0)
    service_account: _ObjectName | None = None
    api_server: str | None = None
    poll_secs: float = Field(default=10, gt=0)

    _has_both = model_validator(mode="after")(_check_accelerators)


class KubeflowConfig(Section):
    """`[kubeflow]`: the compiled pipeline.

    Attributes:
        backend: `kubeflow`, the open-source Kubeflow Pipelines, or `vertex`.
        name: Name of the pipeline on Kubeflow. Default: the name in the configuration.
        image: Image in which every step runs; this package must be installed in it.
        pipeline_root: Address below which Kubeflow keeps its own files: `minio://`, `s3://` or `gs://`.
            Default: the server's; Vertex needs one.
        root: Folder that every step sees, for everything that the runs make: artifacts, the versions that
            are served, records, the schema. On a volume; on Vertex below `/gcs/`.
        code: Folder where the steps see the folder of `pipeline.file` or `pipeline.extend`, in the image or
            on a volume. Default: the same path as here, which must be on a volume.
        volumes: PersistentVolumeClaims that every step mounts.
        env: Environment variables of every step. The compiled file contains their values.
        secrets: Secrets that every step sees.
        node_selector: Labels of the nodes that steps may run on.
        tolerations: Taints that steps tolerate.
        service_account: Service account of the runs that `submit` starts. Default: the server's.
        retries: Number of retries of a step: in its container after an error that may pass, and by Kubeflow
            as configured there.
        umask: Permissions that files of the steps do not get, as octal digits. Default: that of the
            container, or `022` if it is 0, as in Argo's.
        cache: Skips steps when nothing that they depend on has changed.
        parameters: Further keys of the configuration that can be set for each run, such as
            `trainer.learning_rate`, in addition to `data.path`, `trainer.train_steps` and
            `trainer.eval_steps`.
        training_job: Job for the cluster of `[trainer] workers`. Default: it runs in the Trainer's pod.
        components: Settings of single steps, by component; `Plan`, `Record` and `End` are steps, too.
    """

    backend: Literal["kubeflow", "vertex"] = "kubeflow"
    name: str | None = None
    image: _ImageName | None = None
    pipeline_root: str | None = None
    root: _MountPath | None = None
    code: _MountPath | None = None
    volumes: tuple[VolumeConfig, ...] = ()
    env: dict[_EnvName, str] = Field(default_factory=dict)
    secrets: tuple[SecretConfig, ...] = ()
    node_selector: _NodeLabels = Field(default_factory=dict)
    tolerations: tuple[TolerationConfig, ...] = ()
    service_account: _ObjectName | None = None
    retries: int = Field(default=0, ge=0)
    umask: _Umask | None = None
    cache: bool = True
    parameters: tuple[str, ...] = ()
    training_job: TrainingJobConfig | None = None
    components: dict[str, StepConfig] = Field(default_factory=dict)

    def without_env(self) -> "KubeflowConfig":
        """Returns the settings without environment variables, whose values are only for the containers."""
        components = {name: step.model_copy(update={"env": {}}) for name, step in self.components.items()}
        return self.model_copy(update={"env": {}, "components": components})
